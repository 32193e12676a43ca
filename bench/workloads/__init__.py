"""The workloads, in the order of the table. Each is small and runs alone: `python -m bench --only NAME`."""

from bench.workloads.busy_log import BusyLog
from bench.workloads.compaction import Compaction
from bench.workloads.form import Workload
from bench.workloads.groups import CommitOffsets, JoinGroups, LoadGroups, RebalanceGroup
from bench.workloads.java import JavaThroughput
from bench.workloads.latency import ProduceToConsume
from bench.workloads.librdkafka import LibrdkafkaThroughput
from bench.workloads.lookup import Lookup
from bench.workloads.memory import ResidentMemory
from bench.workloads.partitions import MemoryPerPartition, StartWithPartitions
from bench.workloads.recovery import RecoveryScan
from bench.workloads.start import StartToFirstAck
from bench.workloads.synchronous import SynchronousProducers
from bench.workloads.transactions import TransactionalProducer

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
)
