"""How the demo's clients reach the broker: openly, or with TLS and a login, in the words of each client."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import NamedTuple

from penstock.config.loading import load
from penstock.stack.certificates import Authority
from penstock.stack.first_users import write_user
from penstock.stack.secret_file import write_secret
from penstock.stack.secured import AUTHORIZER, LISTENER, MECHANISM, jaas_line
from penstock.testing.penstock_broker import HOST, PenstockBroker
from penstock.testing.processes import free_port

USER = "demo"


class Way(NamedTuple):
    bootstrap: str
    password: str = ""
    """Empty: the broker asks nobody who they are."""
    authority: Path = Path()
    config: Path | None = None
    """The file for --command-config."""

    @property
    def options(self) -> dict[str, str]:
        """With Java's names: for `penstock.arrow`, and for commands."""
        if not self.password:
            return {}
        return {
            "security.protocol": LISTENER,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": jaas_line(USER, self.password),
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
            "sasl.username": USER,
            "sasl.password": self.password,
            "ssl.ca.location": str(self.authority),
        }


def open_broker(directory: Path, port: int | None) -> tuple[PenstockBroker, Way]:
    broker = PenstockBroker(directory, port=port)
    return broker, Way(broker.bootstrap)


def secured_broker(directory: Path, port: int | None) -> tuple[PenstockBroker, Way]:
    """TLS, SCRAM and access rules; its one user is made before it starts, and no secret is on its command line."""
    port = free_port() if port is None else port
    data = directory / "data"
    data.mkdir()
    password = secrets.token_urlsafe()
    write_user(load({"log.dirs": str(data)})[0], USER, password)
    authority = Authority(directory / "security")
    options = {
        "listeners": f"{LISTENER}://{HOST}:{port}",
        "sasl.enabled.mechanisms": MECHANISM,
        "ssl.keystore.location": str(authority.issue("broker", hosts=(HOST, "localhost")).pem()),
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:{USER}",
    }
    broker = PenstockBroker(directory, port=port, options=options)
    way = Way(broker.bootstrap, password, authority.path, directory / "client.properties")
    assert way.config is not None
    write_secret(way.config, "".join(f"{name}={value}\n" for name, value in way.options.items()))
    return broker, way
