"""Several brokers as processes of their own, to be killed, paused and started again; the same for ours and for Apache's.

`BrokerCluster` knows processes and nothing of who made them: `penstock_cluster` and `kafka_cluster` say how a broker is
started and by which line of its log it is ready. Workloads and tests ask for the protocol `Cluster`, and run on any.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import ClusterMetadata
from confluent_kafka.cimpl import NewTopic

from penstock.testing.processes import ProcessFailed, ProcessUsage, RunningProcess, start_process

HOST = "127.0.0.1"
READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
WAIT_S = 60.0
POLL_INTERVAL_S = 0.02
START_AGAIN_INTERVAL_S = 0.25


class Cluster(Protocol):
    """What a workload may do to a cluster. A broker is known by its id."""

    @property
    def name(self) -> str: ...
    @property
    def broker_ids(self) -> Sequence[int]: ...
    @property
    def bootstrap(self) -> str: ...
    def port(self, broker_id: int) -> int: ...
    def process(self, broker_id: int) -> RunningProcess: ...
    def data_dir(self, broker_id: int) -> Path: ...
    def log_text(self, broker_id: int) -> str: ...
    def start(self, broker_id: int) -> None: ...
    def stop(self, broker_id: int) -> int: ...
    def kill(self, broker_id: int) -> int: ...
    def pause(self, broker_id: int) -> None: ...
    def resume(self, broker_id: int) -> None: ...
    def cpu_seconds(self) -> float: ...


@dataclass(frozen=True)
class BrokerLaunch:
    """How one broker is started, time and again."""

    command: Sequence[str]
    port: int
    data_dir: Path
    log_path: Path
    ready_line: str
    # A line with which a broker that was killed may end when it returns: ZooKeeper still has its old session.
    too_early_line: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


class BrokerCluster:
    """All brokers are ready when the constructor returns, and surely gone when the `with` block ends."""

    def __init__(
        self,
        name: str,
        launches: Mapping[int, BrokerLaunch],
        *,
        resources: ExitStack | None = None,
        stops_at_close: bool = True,
        ready_timeout_s: float = READY_TIMEOUT_S,
    ) -> None:
        self.name = name
        self._launches = dict(launches)
        self._running: dict[int, RunningProcess] = {}
        self._paused: set[int] = set()
        self._ready_timeout_s = ready_timeout_s
        self._stops_at_close = stops_at_close
        self._cpu_of_ended = 0.0
        self._resources = (
            resources or ExitStack()
        )  # what goes with it, after the brokers: a ZooKeeper of its own
        try:
            # All first, then the waiting: brokers of a quorum become ready together or not at all.
            for broker_id in self.broker_ids:
                self._launch(broker_id)
            for broker_id in self.broker_ids:
                self._wait_until_ready(broker_id)
        except BaseException:
            self.close()
            raise

    @property
    def broker_ids(self) -> Sequence[int]:
        return tuple(self._launches)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{launch.port}" for launch in self._launches.values())

    def address(self, broker_id: int) -> str:
        return f"{HOST}:{self.port(broker_id)}"

    def port(self, broker_id: int) -> int:
        return self._launches[broker_id].port

    def process(self, broker_id: int) -> RunningProcess:
        return self._running[broker_id]

    def data_dir(self, broker_id: int) -> Path:
        return self._launches[broker_id].data_dir

    def log_text(self, broker_id: int) -> str:
        """Of all processes that this broker has been."""
        return self._launches[broker_id].log_path.read_text(errors="replace")

    def start(self, broker_id: int) -> None:
        """Returns when it is ready. One that comes too early for ZooKeeper is started again until it is let in."""
        self._launch(broker_id)
        self._wait_until_ready(broker_id)

    def stop(self, broker_id: int) -> int:
        """SIGTERM: a controlled shutdown, to its end."""
        return self._end(broker_id, lambda process: process.stop(timeout_s=STOP_TIMEOUT_S))

    def kill(self, broker_id: int) -> int:
        return self._end(broker_id, RunningProcess.kill)

    def pause(self, broker_id: int) -> None:
        self._running[broker_id].pause()
        self._paused.add(broker_id)

    def resume(self, broker_id: int) -> None:
        self._running[broker_id].resume()
        self._paused.discard(broker_id)

    def cpu_seconds(self) -> float:
        """Of the brokers, those included that have ended; not of ZooKeeper."""
        running = (process for process in self._running.values() if process.is_running)
        return self._cpu_of_ended + sum(process.usage().cpu_seconds for process in running)

    def usage(self, broker_id: int) -> ProcessUsage:
        return self._running[broker_id].usage()

    def close(self) -> None:
        with self._resources:
            for broker_id in tuple(self._paused):
                self.resume(broker_id)
            for process in self._running.values():
                process.terminate() if self._stops_at_close else process.kill()
            for process in self._running.values():
                process.stop(timeout_s=STOP_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _launch(self, broker_id: int) -> None:
        launch = self._launches[broker_id]
        self._running[broker_id] = start_process(
            launch.command,
            name=f"{self.name}, broker {broker_id}",
            log_path=launch.log_path,
            environment=launch.environment,
        )

    def _wait_until_ready(self, broker_id: int) -> None:
        launch, deadline = self._launches[broker_id], time.monotonic() + self._ready_timeout_s
        while True:
            left_s = deadline - time.monotonic()
            try:
                self._running[broker_id].wait_for_line(launch.ready_line, timeout_s=left_s)
                return
            except ProcessFailed:
                process = self._running[broker_id]
                came_too_early = launch.too_early_line is not None and re.search(
                    launch.too_early_line, process.log_text()
                )
                process.kill()
                if not came_too_early or time.monotonic() > deadline:
                    raise
            time.sleep(START_AGAIN_INTERVAL_S)
            self._launch(broker_id)

    def _end(self, broker_id: int, how: Callable[[RunningProcess], int]) -> int:
        process = self._running[broker_id]
        if process.is_running:
            self._cpu_of_ended += process.usage().cpu_seconds
        self._paused.discard(broker_id)
        return how(process)


# What a workload asks about a cluster through its clients' eyes.


def wait_until(condition: Callable[[], bool], what: str, *, timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise ProcessFailed(f"{what} did not come within {timeout_s:g} s")
        time.sleep(POLL_INTERVAL_S)


def describe(bootstrap: str) -> ClusterMetadata:
    """Brokers, controller, topics and the leader, replicas and ISR of each partition."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=WAIT_S)


def create_topic(
    bootstrap: str,
    topic: str,
    *,
    partitions: int = 1,
    replication_factor: int = 3,
    assignment: Sequence[Sequence[int]] | None = None,
    config: Mapping[str, str] | None = None,
) -> None:
    """With `assignment` (replicas of each partition, the leader first) the two numbers do not count."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    how = (
        {"num_partitions": partitions, "replication_factor": replication_factor}
        if assignment is None
        else {"num_partitions": len(assignment), "replica_assignment": [list(each) for each in assignment]}
    )
    new = NewTopic(topic, config=dict(config or {}), **how)
    admin.create_topics([new], operation_timeout=WAIT_S, request_timeout=WAIT_S)[topic].result(2 * WAIT_S)


def wait_until_in_sync(bootstrap: str, topics: Sequence[str], *, timeout_s: float = READY_TIMEOUT_S) -> None:
    """Until every replica of each partition of these topics is in its ISR."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def all_in_sync() -> bool:
        known = admin.list_topics(timeout=WAIT_S).topics
        return all(
            topic in known
            and known[topic].partitions
            and all(
                partition.leader >= 0 and set(partition.isrs) == set(partition.replicas)
                for partition in known[topic].partitions.values()
            )
            for topic in topics
        )

    wait_until(all_in_sync, "all replicas in sync", timeout_s=timeout_s)
