"""confluent-kafka's clients for the commands: silent, quick to give up, with Kafka's property names.

`Connection` is what a command line says about the cluster. Nothing here imports librdkafka before a client is asked
for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.properties import REGISTRY_PREFIX, SECURITY_NAMES, check, to_librdkafka, unknown
from penstock.client.reach import MIN_PATIENCE_S, PROBE_TIMEOUT_S, check_reachable, parse_addresses

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

    from penstock.client.security import Security
    from penstock.client.wire_client import WireClient
    from penstock.model.endpoints import Address

T = TypeVar("T")
log = logging.getLogger("penstock.client")

REQUEST_TIMEOUT_S = 30.0
METADATA_TIMEOUT_S = 5.0
LOGIN_NAMES: tuple[str, ...] = ("sasl.jaas.config", "sasl.username")
STORE_NAMES: tuple[str, ...] = (
    "ssl.truststore.location", "ssl.truststore.certificates", "ssl.keystore.location", "ssl.keystore.key",
    "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem",
)  # fmt: skip
CHECKED = {"check.crcs": "true"}  # as Java's consumers do; librdkafka's own choice is not to look


class Bearer(NamedTuple):
    """A token of somebody who has it already."""

    token: str
    until_s: float
    """Unix time."""


class Connection:
    """Where the cluster is and how to speak to it. `properties` have Kafka's names.

    Those about a schema registry are in `registry_properties`.
    """

    def __init__(
        self,
        bootstrap: str,
        properties: dict[str, str] | None = None,
        *,
        timeout_s: float = PROBE_TIMEOUT_S,
        bearer: Bearer | None = None,
    ) -> None:
        """`bearer` is the login, in place of what the properties say of one."""
        self.bootstrap = bootstrap
        self.timeout_s = timeout_s
        self._bearer = bearer
        self.properties: dict[str, str] = {}
        self.registry_properties: dict[str, str] = {}
        for name, value in (properties or {}).items():
            if name.startswith(REGISTRY_PREFIX):
                self.registry_properties[name] = value
            elif name != "bootstrap.servers":
                self.properties[name] = value
        check(self.properties)
        _warn(self.properties)

    @cached_property
    def security(self) -> Security | None:
        """None where the properties say nothing about it."""
        if SECURITY_NAMES.isdisjoint(self.properties) and self._bearer is None:
            return None
        from penstock.client.security import security_of, with_bearer_token

        if self._bearer is not None:
            return with_bearer_token(self.properties, self._bearer.token)
        return security_of(self.properties)

    def check(self) -> dict[str, str]:
        """Unreachable when nobody answers or lets us in; otherwise what librdkafka should know about the way there."""
        import socket

        is_plaintext = self.security is None or self.security.protocol == "PLAINTEXT"
        family = check_reachable(self.bootstrap, speaks_plaintext=is_plaintext, timeout_s=self.timeout_s)
        if not is_plaintext:
            self.wire().close()  # librdkafka would go on trying, and not say why it is not let in
        # On "localhost" librdkafka would first try the other family and wait before it turns to this one.
        return {"broker.address.family": "v4"} if family == socket.AF_INET else {}

    def wire(self, address: Address | None = None, *, timeout_s: float | None = None) -> WireClient:
        """A connection of our own to this broker, or to the first of the bootstrap addresses that answers."""
        from penstock.client import wire_client

        timeout_s = wire_client.TIMEOUT_S if timeout_s is None else timeout_s
        if address is not None:
            return wire_client.WireClient(address, security=self.security, timeout_s=timeout_s)
        addresses = parse_addresses(self.bootstrap)
        # One that only takes the connection may belong to a broker that hangs.
        greeting_timeout_s = (
            max(MIN_PATIENCE_S, PROBE_TIMEOUT_S / len(addresses)) if len(addresses) > 1 else timeout_s
        )
        failure: Unreachable | None = None
        for address in addresses:
            try:
                return wire_client.WireClient(
                    address,
                    security=self.security,
                    timeout_s=timeout_s,
                    greeting_timeout_s=greeting_timeout_s,
                )
            except Unreachable as error:
                failure = error
        assert failure is not None
        raise failure

    def admin(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        settings = self._settings("admin", {"socket.timeout.ms": "30000"})
        return _create(AdminClient, settings)

    def producer(self, defaults: dict[str, str], **callbacks: Any) -> Producer:
        from confluent_kafka import Producer

        return _create(Producer, self._settings("producer", defaults), **callbacks)

    def consumer(self, defaults: dict[str, str], **callbacks: Any) -> Consumer:
        from confluent_kafka import Consumer

        return _create(Consumer, self._settings("consumer", {**CHECKED, **defaults}), **callbacks)

    def _settings(self, role: str, defaults: dict[str, str]) -> dict[str, Any]:
        reached = self.check()
        given = to_librdkafka(self.properties, role=role)
        callbacks: dict[str, Any] = {}
        if self.security is not None:
            given |= self.security.librdkafka_settings()
        if (bearer := self._bearer) is not None:
            callbacks["oauth_cb"] = lambda _: (bearer.token, bearer.until_s)
        # log_level 0: librdkafka's own lines on stderr are for those who develop with it.
        return {
            **reached, **defaults, **given, **callbacks, "bootstrap.servers": self.bootstrap, "log_level": 0
        }  # fmt: skip


def _warn(properties: dict[str, str]) -> None:
    """As Kafka's tools do of what has no effect: in one line."""
    nearest = unknown(properties)
    if nearest:
        told = [f"{name} (did you mean {near}?)" if near else name for name, near in nearest.items()]
        log.warning("WARN: there are no such client properties: %s", ", ".join(told))
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    idle = () if protocol.startswith("SASL") else LOGIN_NAMES
    idle += () if protocol.endswith("SSL") else STORE_NAMES
    told = [name for name in idle if properties.get(name)]
    if told:
        has = "have" if len(told) > 1 else "has"
        log.warning("WARN: %s %s no effect: security.protocol is %s", ", ".join(told), has, protocol)


def _create(kind: Callable[..., T], settings: dict[str, Any], **callbacks: Any) -> T:
    from confluent_kafka import KafkaException

    try:
        return kind({**settings, **callbacks})
    except KafkaException as error:
        raise UserError(_config_complaint(error.args[0].str())) from None


def _config_complaint(message: str) -> str:
    if "No provider for SASL mechanism GSSAPI" in message:
        return (
            "sasl.mechanism: the confluent-kafka that is installed is built without Kerberos (GSSAPI), as its wheels "
            "are; docs/security.md says what works without it, and how to build it"
        )
    for prefix in ("Failed to create consumer: ", "Failed to create producer: "):
        message = message.replace(prefix, "")
    return f"the client's properties are not usable: {message}"


def result(future: Future[T], timeout_s: float = REQUEST_TIMEOUT_S) -> T:
    """What an admin future holds, with errors in our own words and classes."""
    from confluent_kafka import KafkaException

    try:
        return future.result(timeout=timeout_s)
    except KafkaException as error:
        raise translated(error) from None
    except FutureTimeout:
        raise Unreachable(f"no answer from the cluster within {timeout_s:.0f} s.") from None


def translated(error: Any) -> Exception:
    """A KafkaException as Unreachable or Refused."""
    from confluent_kafka import KafkaError

    from penstock.client.error_names import refused
    from penstock.client.librdkafka_calls import NO_ANSWER

    cause = error.args[0]
    code = cause.code()
    if code in NO_ANSWER:
        return Unreachable(f"the cluster does not answer ({cause.str()}).")
    if code in (KafkaError._AUTHENTICATION, KafkaError._SSL):
        return Unreachable(f"the broker does not let us in: {cause.str()}.")
    if code in (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC):
        return refused(KafkaError.UNKNOWN_TOPIC_OR_PART)
    if code < -1:
        return Refused(cause.str(), code=code, exception_name="org.apache.kafka.common.KafkaException")
    text = cause.str()
    # Where the broker sent no message, librdkafka puts in its own, which can be told by this.
    said = None if "Broker: " in text else text
    return refused(code, said)


def metadata(client: Any, topic: str | None = None, timeout_s: float = METADATA_TIMEOUT_S) -> Any:
    """ClusterMetadata of all topics, or of one."""
    from confluent_kafka import KafkaException

    try:
        if topic is None:
            return client.list_topics(timeout=timeout_s)
        return client.list_topics(topic, timeout=timeout_s)
    except KafkaException as error:
        raise translated(error) from None
