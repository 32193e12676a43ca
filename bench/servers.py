"""The servers under test, each started as its users start it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import ProcessUsage, RunningProcess, free_port, start_process
from simulation.apache.apache_kafka import ApacheKafka
from simulation.apache.java import DEFAULT_VERSION
from simulation.apache.kafka_cluster import ZOOKEEPER_MODE_VERSION

ROOT = Path(__file__).resolve().parents[1]
KAFKA, PENSTOCK, NULL = "kafka", "penstock", "null"
# Not servers but clients of one, Penstock's: what Spark reads and writes topics with.
CONNECTOR, TUNED_CONNECTOR, SPARK = "connector", "connector-tuned", "spark"
ARROW_UDF = "arrow-udf"
# Schema registries and REST proxies in front of one broker, Penstock's (bench/services.py).
KARAPACE, SERVICES = "karapace", "services"
# Programs over topics on one broker, Penstock's (bench/streams.py).
KAFKA_STREAMS, STREAMS = "kafka-streams", "streams"
# Workers of Connect in front of one broker, Penstock's (bench/connect_workers.py).
KAFKA_CONNECT, CONNECT = "kafka-connect", "connect"
# Clusters of three, which their workloads start (bench/clusters.py).
KAFKA_3, KRAFT_3, PENSTOCK_3 = "kafka-3", "kraft-3", "penstock-3"


class Server(Protocol):
    process: RunningProcess
    port: int

    @property
    def bootstrap(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def usage(self) -> ProcessUsage: ...
    def stop(self) -> int: ...


class NullServer:
    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "bench.null_broker", "--port", str(self.port)]
        self.process = start_process(
            command, name="null broker", log_path=directory / "null.log", working_directory=ROOT
        )
        self.process.wait_for_line("listening on", timeout_s=10)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid

    def usage(self) -> ProcessUsage:
        return self.process.usage()

    def stop(self) -> int:
        return self.process.stop()


@dataclass(frozen=True)
class ServerKind:
    name: str
    label: str
    start: Callable[[Path], Server]
    start_without_waiting: Callable[[Path], Server]
    keeps_records: bool = True  # the null broker has no topics to create, consume or delete
    host: str | None = None  # the server that it shares with others of its kind, if it is none itself


# Deleted topics leave the disk at once, so that a round needs no more than its largest workload.
KAFKA_PROPERTIES = {"log.segment.delete.delay.ms": "1000"}

PENSTOCK_SERVER = ServerKind(
    PENSTOCK,
    "Penstock",
    PenstockBroker,
    lambda directory: PenstockBroker(directory, wait_until_ready=False),
)


def guest(name: str, label: str) -> ServerKind:
    return replace(PENSTOCK_SERVER, name=name, label=label, host=PENSTOCK)


def cluster(name: str, label: str) -> ServerKind:
    def not_one_server(_: Path) -> Server:
        raise ValueError(f"{label} is no server that workloads share")

    return ServerKind(name, label, not_one_server, not_one_server)


SERVER_KINDS = {
    KAFKA: ServerKind(
        KAFKA,
        f"Apache Kafka {DEFAULT_VERSION}",
        lambda directory: ApacheKafka(directory, properties=KAFKA_PROPERTIES),
        lambda directory: ApacheKafka(directory, properties=KAFKA_PROPERTIES, wait_until_ready=False),
    ),
    PENSTOCK: PENSTOCK_SERVER,
    NULL: ServerKind(NULL, "null broker", NullServer, NullServer, keeps_records=False),
    CONNECTOR: guest(CONNECTOR, "Spark's connector"),
    TUNED_CONNECTOR: guest(TUNED_CONNECTOR, "Spark's connector, tuned"),
    ARROW_UDF: guest(ARROW_UDF, "an Arrow UDF over fastavro"),
    SPARK: guest(SPARK, "penstock.spark"),
    KARAPACE: guest(KARAPACE, "Karapace"),
    SERVICES: guest(SERVICES, "Penstock's services"),
    KAFKA_STREAMS: guest(KAFKA_STREAMS, f"Kafka Streams {DEFAULT_VERSION}"),
    STREAMS: guest(STREAMS, "penstock.streams"),
    KAFKA_CONNECT: guest(KAFKA_CONNECT, f"Kafka Connect {DEFAULT_VERSION}"),
    CONNECT: guest(CONNECT, "Penstock's Connect"),
    KAFKA_3: cluster(KAFKA_3, f"3 × Apache Kafka {ZOOKEEPER_MODE_VERSION}"),
    KRAFT_3: cluster(KRAFT_3, f"3 × Apache Kafka {DEFAULT_VERSION}"),
    PENSTOCK_3: cluster(PENSTOCK_3, "3 × Penstock"),
}
