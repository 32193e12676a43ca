"""How the demo's clients reach the broker: openly, or with TLS and a login, in the words of each client."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from penstock.stack.secured import LISTENER, MECHANISM, jaas_line


class Way(NamedTuple):
    bootstrap: str
    password: str = ""
    """Empty: the broker asks nobody who they are."""
    authority: Path = Path()
    config: Path | None = None
    """The file for --command-config."""
    user: str = ""

    @property
    def options(self) -> dict[str, str]:
        """With Java's names: for `penstock.arrow`, and for commands."""
        if not self.password:
            return {}
        return {
            "security.protocol": LISTENER,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": jaas_line(self.user, self.password),
            "ssl.truststore.location": str(self.authority),
        }

    @property
    def spark(self) -> dict[str, str]:
        named = {"bootstrap.servers": self.bootstrap, **self.options}
        return {f"kafka.{name}": value for name, value in named.items()}

    @property
    def librdkafka(self) -> dict[str, str]:
        reached = {"bootstrap.servers": self.bootstrap}
        if not self.password:
            return reached
        return {
            **reached,
            "security.protocol": LISTENER,
            "sasl.mechanisms": MECHANISM,
            "sasl.username": self.user,
            "sasl.password": self.password,
            "ssl.ca.location": str(self.authority),
        }
