"""Brokers of Apache Kafka 3.9 and of Penstock in one cluster, on one ZooKeeper. The first that starts is the controller."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from penstock.testing.clusters import HOST, BrokerCluster, BrokerLaunch
from penstock.testing.penstock_broker import READY_LINE
from penstock.testing.penstock_cluster import broker_command
from penstock.testing.processes import free_ports
from penstock.testing.zookeeper import ZooKeeperEnsemble, ZooKeeperServer
from simulation.apache.kafka_cluster import (
    SESSION_TIMEOUT_MS,
    SMALL_HEAP,
    ZOOKEEPER_MODE_VERSION,
    zookeeper_mode_launch,
)

KAFKA, PENSTOCK = "kafka", "penstock"


class MixedCluster(BrokerCluster):
    """`kinds` says what each broker is, by its id: {1: KAFKA, 2: PENSTOCK}. They start one after another, in that order.

    `properties` are for all, `kafka_properties` and `penstock_options` for those of one kind, `properties_of` for one of them.
    With `starts_all=False` nobody starts: `start` them as the test wants. Without `zookeeper` it has a server of its own.
    """

    def __init__(
        self,
        directory: Path,
        kinds: Mapping[int, str],
        *,
        properties: Mapping[str, str] | None = None,
        kafka_properties: Mapping[str, str] | None = None,
        penstock_options: Mapping[str, str] | None = None,
        properties_of: Mapping[int, Mapping[str, str]] | None = None,
        zookeeper: ZooKeeperServer | ZooKeeperEnsemble | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        heap: Sequence[str] = SMALL_HEAP,
        version: str = ZOOKEEPER_MODE_VERSION,
        quick: bool = True,
        starts_all: bool = True,
    ) -> None:
        with ExitStack() as resources:
            if zookeeper is None:
                zookeeper = resources.enter_context(ZooKeeperServer(directory / "zookeeper"))
            self.zookeeper = zookeeper
            self.kinds = dict(kinds)
            launches: dict[int, BrokerLaunch] = {}
            for number, port in zip(kinds, free_ports(len(kinds)), strict=True):
                home = directory / f"broker-{number}"
                own = {"zookeeper.session.timeout.ms": str(session_timeout_ms), **(properties or {})}
                more = (properties_of or {}).get(number, {})
                if kinds[number] == KAFKA:
                    launches[number] = zookeeper_mode_launch(
                        home,
                        number,
                        port=port,
                        zookeeper=self.zookeeper.address,
                        properties={**own, **(kafka_properties or {}), **more},
                        heap=heap,
                        version=version,
                        quick=quick,
                    )
                else:
                    command = broker_command(
                        number,
                        port=port,
                        data_dir=home / "data",
                        connect=self.zookeeper.address,
                        options={**own, **(penstock_options or {}), **more},
                    )
                    launches[number] = BrokerLaunch(
                        command=command,
                        port=port,
                        data_dir=home / "data",
                        log_path=home / "penstock.log",
                        ready_line=READY_LINE,
                    )
            super().__init__("mixed cluster", {}, resources=resources.pop_all(), stops_at_close=False)
        self._launches = launches
        self._kafkas: dict[int, BrokerLaunch] = {}
        """How brokers were started that are of another kind now."""
        if starts_all:
            try:
                for number in launches:
                    self.start(number)
            except BaseException:
                self.close()
                raise

    def is_running(self, broker_id: int) -> bool:
        return broker_id in self._running and self._running[broker_id].is_running

    def become(self, broker_id: int, kind: str) -> None:
        """From its next start on the broker is of that kind, with the same id, port, data and file of one of Kafka's."""
        if broker_id not in self._kafkas:
            self._kafkas[broker_id] = self._launches[broker_id]
        launch = self._kafkas[broker_id]
        if kind == PENSTOCK:
            file = str(launch.log_path.parent / "server.properties")
            launch = replace(
                launch,
                command=[sys.executable, "-m", "penstock", "broker", "--config", file],
                log_path=launch.log_path.with_name("penstock.log"),
                ready_line=READY_LINE,
                too_early_line=None,
            )
        self.kinds[broker_id] = kind
        self._launches[broker_id] = launch

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{launch.port}" for launch in self._launches.values())
