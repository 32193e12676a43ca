"""Apache Kafka with every kind of listener: what commands, tables and Spark meet behind TLS and SASL."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from penstock.stack.certificates import Authority
from simulation.apache.apache_kafka import ApacheKafka
from simulation.apache.java import java_executable

MODULES = "org.apache.kafka.common.security"
PLAIN_USERS = f'{MODULES}.plain.PlainLoginModule required user_ana="p \\"a\\\\ss";'
SCRAM_LOGIN = f'{MODULES}.scram.ScramLoginModule required username="ana" password="scram-secret";'
PLAIN_LOGIN = f'{MODULES}.plain.PlainLoginModule required username="ana" password="p \\"a\\\\ss";'
STORE_PASSWORD = "changeit"


class Served(Protocol):
    """A cluster, of Apache's or of ours."""

    @property
    def bootstrap(self) -> str:
        """Without TLS and login."""
        ...

    def address(self, protocol: str) -> str: ...


class Secured(NamedTuple):
    kafka: Served
    authority: Authority
    directory: Path
    token_url: str = ""
    """Where `ana` gets a token for `token-secret`, if the cluster takes those of an identity provider."""

    def options(self, protocol: str, **more: str) -> dict[str, str]:
        """Of a client that is let in; names have their dots as underscores."""
        options = {"security.protocol": protocol}
        if protocol.startswith("SASL"):
            options |= {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM_LOGIN}
        if protocol.endswith("SSL"):
            options["ssl.truststore.location"] = str(self.authority.path)
        return options | {name.replace("_", "."): value for name, value in more.items()}

    def java_truststore(self, kind: str = "PKCS12") -> Path:
        """As Java's keytool makes it; its name says nothing about what it is."""
        store = self.directory / f"trusted-{kind.lower()}.jks"
        if not store.exists():
            keytool(
                "-importcert", "-noprompt", "-alias", "ca", "-file", str(self.authority.path),
                "-keystore", str(store), "-storetype", kind, "-storepass", STORE_PASSWORD,
            )  # fmt: skip
        return store

    def java_keystore(self) -> Path:
        """A client's key and certificate in a JKS file."""
        store = self.directory / "client.jks"
        if not store.exists():
            keytool(
                "-importkeystore", "-srckeystore", str(self.authority.issue("java").pkcs12(STORE_PASSWORD)),
                "-srcstorepass", STORE_PASSWORD, "-destkeystore", str(store), "-deststoretype", "JKS",
                "-deststorepass", STORE_PASSWORD,
            )  # fmt: skip
        return store


def keytool(*words: str) -> str:
    """What Java's tool for key stores prints."""
    command = [str(Path(java_executable()).with_name("keytool")), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextmanager
def secured_cluster(directory: Path) -> Iterator[Secured]:
    authority = Authority(directory / "certificates")
    server = authority.issue("server")
    tls = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server.pem()),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.path),
    }
    sasl = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": (
            f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
        "plain.sasl.jaas.config": PLAIN_USERS.replace("\\", "\\\\"),  # in a properties file
        "scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        "scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    }
    listeners = {
        "SSL": {**tls, "ssl.client.auth": "required"},
        "SASL_PLAINTEXT": {**sasl, "plain.connections.max.reauth.ms": "1500"},
        "SASL_SSL": {**tls, **sasl},
    }
    with ApacheKafka(
        directory / "kafka",
        listeners=listeners,
        scram_users={"ana": "scram-secret"},
        properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            "super.users": "User:ANONYMOUS",
        },
        quick=True,
    ) as kafka:
        yield Secured(kafka, authority, directory)
