"""The servers under test, each started as its users start it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from penstock.testing.apache_kafka import DEFAULT_VERSION, ApacheKafka
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import ProcessUsage, RunningProcess, free_port, start_process

ROOT = Path(__file__).resolve().parents[1]
KAFKA, PENSTOCK, NULL = "kafka", "penstock", "null"


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


# Deleted topics leave the disk at once, so that a round needs no more than its largest workload.
KAFKA_PROPERTIES = {"log.segment.delete.delay.ms": "1000"}

SERVER_KINDS = {
    KAFKA: ServerKind(
        KAFKA,
        f"Apache Kafka {DEFAULT_VERSION}",
        lambda directory: ApacheKafka(directory, properties=KAFKA_PROPERTIES),
        lambda directory: ApacheKafka(directory, properties=KAFKA_PROPERTIES, wait_until_ready=False),
    ),
    PENSTOCK: ServerKind(
        PENSTOCK,
        "Penstock",
        PenstockBroker,
        lambda directory: PenstockBroker(directory, wait_until_ready=False),
    ),
    NULL: ServerKind(NULL, "null broker", NullServer, NullServer, keeps_records=False),
}
