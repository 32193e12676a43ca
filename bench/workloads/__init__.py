"""The workloads, in the order of the table. Each is small and runs alone: `python -m bench --only NAME`."""

from bench.servers import CONNECTOR, TUNED_CONNECTOR
from bench.workloads.access_rules import AccessRules
from bench.workloads.busy_log import BusyLog
from bench.workloads.chaos import LoopLagUnderFaults
from bench.workloads.compaction import Compaction
from bench.workloads.connect import FileConnectors, IdleConnectors, KilledWorker, SourceLatency
from bench.workloads.connect_jdbc import JdbcSinks
from bench.workloads.connect_lake import LakeSinks
from bench.workloads.console_lists import ConsoleLists
from bench.workloads.console_search import ConsoleSearch
from bench.workloads.failover import Failover, ManyLeaders
from bench.workloads.form import Workload
from bench.workloads.groups import CommitOffsets, JoinGroups, LoadGroups, RebalanceGroup
from bench.workloads.idle_tls import IdleTlsConnections
from bench.workloads.java import JavaThroughput
from bench.workloads.latency import ProduceToConsume
from bench.workloads.librdkafka import LibrdkafkaThroughput
from bench.workloads.logins import ScramLogins
from bench.workloads.lookup import Lookup
from bench.workloads.memory import ResidentMemory
from bench.workloads.mirror import Mirroring
from bench.workloads.partitions import MemoryPerPartition, StartWithPartitions
from bench.workloads.quotas import Quotas
from bench.workloads.recovery import RecoveryScan
from bench.workloads.replicated import ReplicatedThroughput, RollingRestart
from bench.workloads.services import RegistryRequests, RegistryStart, RestProduce
from bench.workloads.spark_avro import SparkAvro
from bench.workloads.spark_bulk import SparkRead, SparkWrite
from bench.workloads.spark_streams import SparkFirstRow, SparkLatency
from bench.workloads.sql_server import SqlServer
from bench.workloads.start import StartToFirstAck
from bench.workloads.stream_plans import StreamLatency, StreamThroughput
from bench.workloads.synchronous import SynchronousProducers
from bench.workloads.tls import TlsThroughput
from bench.workloads.transactions import TransactionalProducer
from bench.workloads.whole_stack import WholeStack

WORKLOADS: tuple[Workload, ...] = (
    *(
        JavaThroughput(record_bytes=record_bytes, partition_count=partition_count, compression=compression)
        for record_bytes in (100, 1000)
        for partition_count in (1, 6)
        for compression in ("none", "lz4")
    ),
    LibrdkafkaThroughput(record_bytes=100),
    LibrdkafkaThroughput(record_bytes=1000),
    SynchronousProducers(producer_count=1, client="librdkafka"),
    SynchronousProducers(producer_count=16, client="librdkafka"),
    SynchronousProducers(producer_count=1, client="raw"),
    SynchronousProducers(producer_count=16, client="raw"),
    ProduceToConsume(),
    StartToFirstAck(),
    ResidentMemory(),
    Compaction(),
    RecoveryScan(),
    BusyLog(),
    MemoryPerPartition(),
    StartWithPartitions(),
    Lookup(),
    JoinGroups(),
    RebalanceGroup(),
    CommitOffsets(partition_count=1),
    CommitOffsets(partition_count=10),
    LoadGroups(),
    TransactionalProducer(),
    SparkRead(record_bytes=100, record_count=4_000_000, targets={CONNECTOR: 2.5, TUNED_CONNECTOR: 1.4}),
    SparkRead(record_bytes=1000, record_count=900_000, targets={TUNED_CONNECTOR: 1.1}),
    SparkRead(record_bytes=80, record_count=1_200_000, targets={CONNECTOR: 2.0}, what="json"),
    SparkLatency(
        "spark-micro-batch",
        "micro-batches, records copied",
        what="copy",
        is_real_time=False,
        targets={"p50": 0.6, "p99": None},
    ),
    SparkLatency(
        "spark-real-time-copy",
        "real-time tier, records copied, beside micro-batches",
        what="copy",
        is_real_time=True,
        targets={"p50": 0.05, "p99": 0.15},
    ),
    SparkLatency(
        "spark-real-time-count",
        "real-time tier, records counted by key, beside micro-batches",
        what="count",
        is_real_time=True,
        targets={"p50": 0.05, "p99": 0.15},
    ),
    SparkWrite(),
    SparkAvro("read", record_count=2_400_000, target=8.0),
    SparkAvro("write", record_count=600_000, target=3.0),
    SparkFirstRow(),
    SparkLatency(
        "spark-30-queries",
        "30 queries at once on 2 cores, real-time tier beside micro-batches",
        what="copy",
        is_real_time=True,
        targets={"p50": 0.05, "p99": None},
        query_count=30,
        rate=20,
    ),
    ReplicatedThroughput(record_bytes=100),
    ReplicatedThroughput(record_bytes=1000),
    Failover(),
    ManyLeaders(),
    RollingRestart(),
    LoopLagUnderFaults(),
    TlsThroughput(client="java"),
    TlsThroughput(client="librdkafka"),
    ScramLogins(),
    AccessRules(),
    Quotas(),
    IdleTlsConnections(),
    RegistryRequests(),
    RegistryStart(),
    RestProduce(),
    StreamThroughput(),
    StreamLatency(),
    SqlServer(),
    FileConnectors(),
    SourceLatency(),
    IdleConnectors(),
    KilledWorker(),
    Mirroring(),
    JdbcSinks(),
    LakeSinks(),
    ConsoleLists(),
    ConsoleSearch(),
    WholeStack(),
)
