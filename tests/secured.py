"""Apache Kafka with every kind of listener: what commands, tables and Spark meet behind TLS and SASL."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from penstock.testing.apache_kafka import ApacheKafka, java_executable
from penstock.testing.certificates import Authority

MODULES = "org.apache.kafka.common.security"
PLAIN_USERS = f'{MODULES}.plain.PlainLoginModule required user_ana="p \\"a\\\\ss";'
SCRAM_LOGIN = f'{MODULES}.scram.ScramLoginModule required username="ana" password="scram-secret";'
PLAIN_LOGIN = f'{MODULES}.plain.PlainLoginModule required username="ana" password="p \\"a\\\\ss";'
STORE_PASSWORD = "changeit"


class Secured(NamedTuple):
    kafka: ApacheKafka
    authority: Authority
    directory: Path

    def options(self, protocol: str, **more: str) -> dict[str, str]:
        """Of a client that is let in; names have their dots as underscores."""
        options = {"security.protocol": protocol}
        if protocol.startswith("SASL"):
            options |= {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM_LOGIN}
        if protocol.endswith("SSL"):
            options["ssl.truststore.location"] = str(self.authority.path)
        return options | {name.replace("_", "."): value for name, value in more.items()}

    def java_truststore(self) -> Path:
        """As Java's keytool makes it: PKCS12, whatever it is called."""
        store = self.directory / "trusted.jks"
        if not store.exists():
            keytool = str(Path(java_executable()).with_name("keytool"))
            given = ("-importcert", "-noprompt", "-alias", "ca", "-file", str(self.authority.path))
            command = [keytool, *given, "-keystore", str(store), "-storepass", STORE_PASSWORD]
            subprocess.run(command, check=True, capture_output=True)
        return store


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
        heap=("-Xmx400M", "-XX:TieredStopAtLevel=1"),
    ) as kafka:
        yield Secured(kafka, authority, directory)
