"""Apache Kafka itself, from the jars that scripts/java-setup collects: one KRaft node.

The node runs with the values of the `server.properties` that Apache ships and the JVM flags of its start
script, so that a comparison with it is a comparison with what a user gets. Only the logging differs: warnings
and errors to one file. A `quick` one has other JVM flags (java.py): for tests.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.testing.processes import ProcessFailed, ProcessUsage, RunningProcess, free_ports, start_process
from simulation.apache.java import DEFAULT_VERSION, java_command, java_tool

SERVER_HEAP = ("-Xmx1G", "-Xms1G")
QUICK_HEAP = ("-Xmx512M",)
QUIET_SERVER = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")
CLUSTER_ID = "UGVuc3RvY2tCZW5jaC1LQQ"  # any 16 bytes in Kafka's base64 form
# The lines of the server.properties that Apache ships, for the names that have a value there.
SHIPPED_PROPERTIES = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
    "log.retention.check.interval.ms": "300000",
    "group.initial.rebalance.delay.ms": "0",
}


class ApacheKafka:
    """One KRaft node (broker and controller) on free ports of the loopback address.

    It starts in the constructor and is ready when that returns. `directory` receives its data, configuration
    and log; one that a node has used before is taken over as it is.

    `listeners` are more than the plain one, by security protocol: {"SASL_SSL": {"ssl.keystore.location": …}}; see
    `address`. `scram_users` have passwords for SCRAM-SHA-256 and -512 from the beginning.
    """

    def __init__(
        self,
        directory: Path,
        *,
        version: str = DEFAULT_VERSION,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        listeners: Mapping[str, Mapping[str, str]] | None = None,
        scram_users: Mapping[str, str] | None = None,
        heap: Sequence[str] | None = None,
        quick: bool = False,
        wait_until_ready: bool = True,
        ready_timeout_s: float = 60.0,
    ) -> None:
        self.version = version
        self._quick = quick
        self.data_dir = directory / "data"
        config_path = directory / "server.properties"
        extra = listeners or {}
        broker_port, controller_port, *extra_ports = free_ports(2 + len(extra))
        if config_path.exists():
            # The quorum wrote its address into its log: a node that comes back must be where it was.
            controller_port = int(_quorum_port(config_path.read_text()))
        self.port = port if port is not None else broker_port
        self._ports = {"PLAINTEXT": self.port, **dict(zip(extra, extra_ports, strict=True))}
        directory.mkdir(parents=True, exist_ok=True)
        config_path.write_text(
            self._config_text(controller_port, {**_listener_properties(extra), **(properties or {})})
        )
        if not (self.data_dir / "meta.properties").exists():
            self._format(config_path, scram_users or {})
        self.process = self._start(directory, config_path, heap or (QUICK_HEAP if quick else SERVER_HEAP))
        if wait_until_ready:
            try:
                self.process.wait_for_line(
                    r"\[KafkaRaftServer nodeId=1\] Kafka Server started", timeout_s=ready_timeout_s
                )
            except BaseException:
                self.process.kill()
                raise

    def _config_text(self, controller_port: int, properties: Mapping[str, str]) -> str:
        protocols = {**{name: name for name in self._ports}, "CONTROLLER": "PLAINTEXT"}
        ports = {**self._ports, "CONTROLLER": controller_port}
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": ",".join(f"{name}:{one}" for name, one in protocols.items()),
            "log.dirs": str(self.data_dir),
            **SHIPPED_PROPERTIES,
            **properties,
        }
        return "".join(f"{name}={value}\n" for name, value in lines.items())

    def _format(self, config_path: Path, scram_users: Mapping[str, str]) -> None:
        credentials = [
            f"--add-scram={mechanism}=[name={name},password={password}]"
            for name, password in scram_users.items()
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        ]
        tool = java_tool
        if self._quick:
            from simulation.apache.resident_tools import resident_tool as tool  # with PySpark: tests have it
        tool(
            "kafka.tools.StorageTool",
            *("format", "--config", str(config_path), "--cluster-id", CLUSTER_ID, "--standalone"),
            *credentials,
            version=self.version,
        )

    def _start(self, directory: Path, config_path: Path, heap: Sequence[str]) -> RunningProcess:
        # The one informative line that is kept says that the server can serve.
        ready_logger = "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info"
        command = java_command(
            "kafka.Kafka",
            str(config_path),
            version=self.version,
            jvm_options=(*heap, *QUIET_SERVER, ready_logger),
            quick=self._quick,
        )
        return start_process(command, name=f"Apache Kafka {self.version}", log_path=directory / "kafka.log")

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def address(self, protocol: str) -> str:
        """Of the listener for a security protocol."""
        return f"127.0.0.1:{self._ports[protocol]}"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log_path(self) -> Path:
        return self.process.log_path

    def usage(self) -> ProcessUsage:
        return self.process.usage()

    def stop(self, *, timeout_s: float = 30.0) -> int:
        return self.process.stop(timeout_s=timeout_s)

    def kill(self) -> int:
        return self.process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _listener_properties(listeners: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {
        f"listener.name.{protocol.lower()}.{name}": value
        for protocol, properties in listeners.items()
        for name, value in properties.items()
    }


def _quorum_port(config_text: str) -> str:
    match = re.search(r"^controller\.quorum\.bootstrap\.servers=.*:(\d+)$", config_text, re.MULTILINE)
    if match is None:
        raise ProcessFailed("the server.properties in the directory names no controller quorum")
    return match[1]
