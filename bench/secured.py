"""Servers with a plain listener, one with TLS and one with TLS and logins, all alike for Apache Kafka and Penstock.

Keys are on P-256, as `penstock certs` makes them; TLS is 1.3 only. On the plain listener everybody is User:ANONYMOUS, who is a
super user where there are access rules.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from bench.context import Context
from bench.servers import KAFKA, KAFKA_PROPERTIES
from bench.topics import ADMIN_TIMEOUT_S, admin_client, temporary_topic
from penstock.client.connection import BrokerConnection
from penstock.model.acl import Operation, ResourceType
from penstock.model.endpoints import Address
from penstock.stack.certificates import Authority
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from simulation.apache.apache_kafka import ApacheKafka

MODULES = "org.apache.kafka.common.security"
MECHANISM = "SCRAM-SHA-512"
ITERATIONS = 4096
PASSWORD = "bench-secret"
ACCESS_RULES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ADMIN_GREETING_S = 10.0
LITERAL, PREFIXED, ALLOW = 3, 4, 3
WARM_UP_RECORDS = 200_000

SecuredServer = ApacheKafka | PenstockBroker


class Secured:
    def __init__(
        self, context: Context, directory: Path, *, options: Mapping[str, str] | None = None
    ) -> None:
        authority = Authority(directory / "certificates")
        self.trusted = str(authority.path)
        tls = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(authority.issue("server").pem()),
            "ssl.enabled.protocols": "TLSv1.3",
        }
        login = {
            "sasl.enabled.mechanisms": MECHANISM,
            f"{MECHANISM.lower()}.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        }
        listeners = {"SSL": tls, "SASL_SSL": {**tls, **login}, "SASL_PLAINTEXT": login}
        self.context = context
        self.server: SecuredServer
        if context.kind.name == KAFKA:
            properties = {**KAFKA_PROPERTIES, **(options or {})}
            self.server = ApacheKafka(directory / "server", properties=properties, listeners=listeners)
        else:
            self.server = PenstockBroker(directory / "server", options=options, listeners=listeners)

    def java(self, protocol: str, user: str = "") -> dict[str, str]:
        """Properties of a Java client."""
        options = {"security.protocol": protocol}
        if protocol.endswith("SSL"):
            options |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.trusted,
                "ssl.enabled.protocols": "TLSv1.3",
            }
        if protocol.startswith("SASL"):
            login = f'{MODULES}.scram.ScramLoginModule required username="{user}" password="{PASSWORD}";'
            options |= {"sasl.mechanism": MECHANISM, "sasl.jaas.config": login}
        return options

    def librdkafka(self, protocol: str, user: str = "") -> dict[str, str]:
        options = {"bootstrap.servers": self.server.address(protocol), "security.protocol": protocol.lower()}
        if protocol.endswith("SSL"):
            options["ssl.ca.location"] = self.trusted
        if protocol.startswith("SASL"):
            options |= {"sasl.mechanisms": MECHANISM, "sasl.username": user, "sasl.password": PASSWORD}
        return options

    def warm_up(self, protocol: str, user: str = "") -> None:
        """A JVM is not judged by its first second."""
        client = self.librdkafka(protocol, user)
        with temporary_topic(self.server, "warm-up-6p", partition_count=6) as topic:
            options: dict[str, Any] = {"topic": topic, "record_count": WARM_UP_RECORDS, "client": client}
            for part in ("produce", "consume"):
                self.context.client(part, server=self.server, record_bytes=1000, **options)

    # --- what an administrator does, at the plain listener

    def make_users(self, *names: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
        admin = admin_client(self.server)
        wanted: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(name, info, PASSWORD.encode()) for name in names
        ]
        for made in admin.alter_user_scram_credentials(wanted).values():
            made.result(ADMIN_TIMEOUT_S)

    def limit(self, user: str, **rates: float) -> None:
        """Quotas of a user, by the names of Kafka: limit("ana", producer_byte_rate=5e6)."""
        entity = [EntityData(entity_type="user", entity_name=user)]
        operations = [OpData(key=key, value=value) for key, value in rates.items()]
        request = AlterClientQuotasRequest(entries=[RequestEntryData(entity=entity, ops=operations)])
        with self._administrator() as connection:
            answer = connection.ask(request, AlterClientQuotasResponse)
        _check("AlterClientQuotas", [entry.error_code for entry in answer.entries])

    def allow(self, rules: Sequence[AclCreation]) -> None:
        with self._administrator() as connection:
            answer = connection.ask(CreateAclsRequest(creations=rules), CreateAclsResponse)
        _check("CreateAcls", [result.error_code for result in answer.results])

    @contextmanager
    def _administrator(self) -> Iterator[BrokerConnection]:
        connection = BrokerConnection(
            Address("127.0.0.1", self.server.port),
            client_id="bench",
            timeout_s=ADMIN_TIMEOUT_S,
            greeting_timeout_s=ADMIN_GREETING_S,
        )
        try:
            yield connection
        finally:
            connection.close()


def _check(what: str, codes: Sequence[int]) -> None:
    if refused := [code for code in codes if code]:
        raise ValueError(f"{what} was refused with error {refused[0]}")


def rule(
    user: str, operation: Operation, kind: ResourceType, name: str, *, prefixed: bool = False
) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=PREFIXED if prefixed else LITERAL,
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=ALLOW,
    )


@contextmanager
def secured(context: Context, *, options: Mapping[str, str] | None = None) -> Iterator[Secured]:
    """A server of its own for a workload, with a fresh directory."""
    with context.fresh_directory() as directory:
        opened = Secured(context, directory, options=options)
        try:
            yield opened
        finally:
            opened.server.stop()
