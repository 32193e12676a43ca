"""A broker of ours with every kind of listener."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from penstock.stack.certificates import Authority
from penstock.testing.processes import RunningProcess, free_port, start_process

READY_LINE = r"^penstock: listening on (\S+):(\d+)"
MODULES = "org.apache.kafka.common.security"
PLAIN_USERS = f'{MODULES}.plain.PlainLoginModule required user_ana="p \\"a\\\\ss" user_bob="bobs";'
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "LOGIN": "SASL_PLAINTEXT",
    "SECURE": "SASL_SSL",
}


class SecuredBroker:
    """Use as a context. `bootstrap(listener)` is where it listens."""

    def __init__(
        self,
        directory: Path,
        authority: Authority,
        environment: Mapping[str, str] | None = None,
        **options: str,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = authority
        self.directory = directory
        self.ports = {name: free_port() for name in LISTENERS}
        self.key_store = authority.issue("server").pem()
        properties = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(f"{a}:{b}" for a, b in LISTENERS.items()),
            "ssl.keystore.location": str(self.key_store),
            "ssl.truststore.location": str(authority.path),
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.login.plain.sasl.jaas.config": PLAIN_USERS,
            "listener.name.secure.plain.sasl.jaas.config": PLAIN_USERS,
            "log.dirs": str(directory / "data"),
            "group.initial.rebalance.delay.ms": "0",
            **options,
        }  # an empty option is left out
        file = directory / "server.properties"
        file.write_text("".join(f"{name}={_escaped(value)}\n" for name, value in properties.items() if value))
        command = [sys.executable, "-m", "penstock", "broker", "--config", str(file)]
        self.process: RunningProcess = start_process(
            command, name="Penstock", log_path=directory / "penstock.log", environment=environment
        )
        try:
            self.process.wait_for_line(READY_LINE, timeout_s=30)
        except BaseException:
            self.process.kill()
            raise

    def bootstrap(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def log(self) -> str:
        return self.process.log_path.read_text()

    def __enter__(self) -> SecuredBroker:
        return self

    def __exit__(self, *failure: object) -> None:
        self.process.stop()
        assert "Traceback" not in self.log(), self.log()


def _escaped(value: str) -> str:
    """As a properties file has it."""
    return value.replace("\\", "\\\\")
