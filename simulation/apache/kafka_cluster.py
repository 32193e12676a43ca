"""Clusters of Apache Kafka: 3.9 on ZooKeeper, 4.3 as a KRaft quorum. Each broker has the values that Apache ships."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from penstock.testing.clusters import HOST, READY_TIMEOUT_S, BrokerCluster, BrokerLaunch
from penstock.testing.processes import free_ports
from penstock.testing.zookeeper import ZooKeeperEnsemble, ZooKeeperServer
from simulation.apache.apache_kafka import CLUSTER_ID, QUIET_SERVER, SERVER_HEAP, SHIPPED_PROPERTIES
from simulation.apache.java import DEFAULT_VERSION, java_command, java_tool

ZOOKEEPER_MODE_VERSION = "3.9.1"
SMALL_HEAP = ("-Xmx320M", "-Xms128M", "-XX:TieredStopAtLevel=1")  # for tests, where no figure counts
SESSION_TIMEOUT_MS = 6_000
# What Apache ships is for one node; these are the defaults of a broker whose file does not name them.
CLUSTER_PROPERTIES = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
REGISTERED_ALREADY = "node already exists and owner"


class KafkaCluster(BrokerCluster):
    """Brokers 1, 2, 3 … in ZooKeeper mode. Without `zookeeper` it has a server of its own."""

    def __init__(
        self,
        directory: Path,
        *,
        brokers: int = 3,
        properties: Mapping[str, str] | None = None,
        zookeeper: ZooKeeperServer | ZooKeeperEnsemble | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        heap: Sequence[str] = SERVER_HEAP,
        version: str = ZOOKEEPER_MODE_VERSION,
        ready_timeout_s: float = READY_TIMEOUT_S,
    ) -> None:
        with ExitStack() as resources:
            if zookeeper is None:
                zookeeper = resources.enter_context(ZooKeeperServer(directory / "zookeeper"))
            self.zookeeper = zookeeper
            launches: dict[int, BrokerLaunch] = {}
            for number, port in enumerate(free_ports(brokers), start=1):
                launches[number] = zookeeper_mode_launch(
                    directory / f"broker-{number}",
                    number,
                    port=port,
                    zookeeper=zookeeper.address,
                    properties={
                        "zookeeper.session.timeout.ms": str(session_timeout_ms),
                        **(properties or {}),
                    },
                    heap=heap,
                    version=version,
                )
            super().__init__(
                f"Apache Kafka {version}",
                launches,
                resources=resources.pop_all(),
                stops_at_close=False,  # all at once, each waits ten seconds for a controller that is going too
                ready_timeout_s=ready_timeout_s,
            )


class KraftCluster(BrokerCluster):
    """Nodes 1, 2, 3 …, each broker and controller at once, one quorum."""

    def __init__(
        self,
        directory: Path,
        *,
        brokers: int = 3,
        properties: Mapping[str, str] | None = None,
        heap: Sequence[str] = SERVER_HEAP,
        version: str = DEFAULT_VERSION,
    ) -> None:
        ports = free_ports(2 * brokers)
        voters = ",".join(f"{number + 1}@{HOST}:{ports[brokers + number]}" for number in range(brokers))
        launches: dict[int, BrokerLaunch] = {}
        for number in range(1, brokers + 1):
            port, controller_port = ports[number - 1], ports[brokers + number - 1]
            own = {
                "process.roles": "broker,controller",
                "node.id": str(number),
                "controller.quorum.voters": voters,
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
                "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            }
            home = directory / f"broker-{number}"
            launches[number] = _launch(
                home,
                {**own, **(properties or {})},
                port=port,
                ready=("kafka.server.KafkaRaftServer", "Kafka Server started"),
                heap=heap,
                version=version,
            )
            if not (launches[number].data_dir / "meta.properties").exists():
                config = str(home / "server.properties")
                java_tool(
                    "kafka.tools.StorageTool",
                    *("format", "--config", config, "--cluster-id", CLUSTER_ID),
                    version=version,
                )
        super().__init__(f"Apache Kafka {version}", launches, stops_at_close=False)


def zookeeper_mode_launch(
    directory: Path,
    broker_id: int,
    *,
    port: int,
    zookeeper: str,
    properties: Mapping[str, str],
    heap: Sequence[str] = SERVER_HEAP,
    version: str = ZOOKEEPER_MODE_VERSION,
    quick: bool = False,
) -> BrokerLaunch:
    """One broker of a cluster on a ZooKeeper."""
    own = {
        "broker.id": str(broker_id),
        "zookeeper.connect": zookeeper,
        "listeners": f"PLAINTEXT://{HOST}:{port}",
    }
    return _launch(
        directory,
        {**own, **properties},
        port=port,
        ready=("kafka.server.KafkaServer", rf"\[KafkaServer id={broker_id}\] started"),
        heap=heap,
        version=version,
        quick=quick,
    )


def _launch(
    directory: Path,
    properties: Mapping[str, str],
    *,
    port: int,
    ready: tuple[str, str],
    heap: Sequence[str],
    version: str,
    quick: bool = False,
) -> BrokerLaunch:
    """Writes the broker's server.properties. `ready` is the logger of the line that says so, and the line."""
    data_dir, config_path = directory / "data", directory / "server.properties"
    directory.mkdir(parents=True, exist_ok=True)
    lines = {**SHIPPED_PROPERTIES, **CLUSTER_PROPERTIES, "log.dirs": str(data_dir), **properties}
    config_path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    logger, line = ready
    command = java_command(
        "kafka.Kafka",
        str(config_path),
        version=version,
        jvm_options=(*heap, *QUIET_SERVER, f"-Dorg.slf4j.simpleLogger.log.{logger}=info"),
        quick=quick,
    )
    return BrokerLaunch(
        command=command,
        port=port,
        data_dir=data_dir,
        log_path=directory / "kafka.log",
        ready_line=line,
        too_early_line=REGISTERED_ALREADY,
    )
