"""confluent-kafka's clients for the commands: silent, quick to give up, with Kafka's property names.

`Connection` is what a command line says about the cluster. Nothing here imports librdkafka before a client is asked
for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.cli.client_properties import SECURITY_PREFIXES, to_librdkafka
from penstock.cli.failures import Refused, Unreachable, UserError
from penstock.cli.reach import MIN_PATIENCE_S, PROBE_TIMEOUT_S, check_reachable, parse_addresses

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

    from penstock.cli.wire_client import WireClient
    from penstock.client.security import Security
    from penstock.model.endpoints import Address

T = TypeVar("T")

REQUEST_TIMEOUT_S = 30.0
METADATA_TIMEOUT_S = 5.0
CHECKED = {"check.crcs": "true"}  # as Java's consumers do; librdkafka's own choice is not to look


class Connection:
    """Where the cluster is and how to speak to it. `properties` have Kafka's names."""

    def __init__(
        self, bootstrap: str, properties: dict[str, str] | None = None, *, timeout_s: float = PROBE_TIMEOUT_S
    ) -> None:
        self.bootstrap = bootstrap
        self.timeout_s = timeout_s
        self.properties = {
            name: value for name, value in (properties or {}).items() if name != "bootstrap.servers"
        }

    @cached_property
    def security(self) -> Security | None:
        """None where the properties say nothing about it."""
        if not any(name.startswith(SECURITY_PREFIXES) for name in self.properties):
            return None
        from penstock.client.errors import BadOption
        from penstock.client.security import security_of

        try:
            return security_of(self.properties)
        except BadOption as error:
            raise UserError(str(error)) from None  # it begins with the property's name

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
        from penstock.cli import wire_client

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
        if self.security is not None:
            given |= self.security.librdkafka_settings()
        # log_level 0: librdkafka's own lines on stderr are for those who develop with it.
        return {**reached, **defaults, **given, "bootstrap.servers": self.bootstrap, "log_level": 0}


def _create(kind: Callable[..., T], settings: dict[str, Any], **callbacks: Any) -> T:
    """A client; properties that librdkafka does not have are dropped and told in one line."""
    from confluent_kafka import KafkaException

    unknown: list[str] = []
    while True:
        try:
            client = kind({**settings, **callbacks})
            break
        except KafkaException as error:
            message = error.args[0].str()
            name = message.partition('No such configuration property: "')[2].partition('"')[0]
            if not name or name not in settings:
                raise UserError(_config_complaint(message)) from None
            del settings[name]
            unknown.append(name)
    if unknown:
        names = ", ".join(unknown)
        print(f"WARN: this client has no use for these properties: {names}", file=sys.stderr, flush=True)
    return client


def _config_complaint(message: str) -> str:
    for prefix in ("Failed to create consumer: ", "Failed to create producer: "):
        message = message.replace(prefix, "")
    return f"the client's properties are not usable: {message}"


def admin_types() -> Any:
    """confluent_kafka.admin, whose names are not declared as exported for type checkers."""
    import confluent_kafka.admin

    return confluent_kafka.admin


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

    from penstock.cli.error_names import detail, full_exception_name

    cause = error.args[0]
    code = cause.code()
    if code in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT):
        return Unreachable(f"the cluster does not answer ({cause.str()}).")
    if code in (KafkaError._AUTHENTICATION, KafkaError._SSL):
        return Unreachable(f"the broker does not let us in: {cause.str()}.")
    if code in (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC):
        code = KafkaError.UNKNOWN_TOPIC_OR_PART
        return Refused(detail(code), code=code, exception_name=full_exception_name(code))
    if code < -1:
        return Refused(cause.str(), code=code, exception_name="org.apache.kafka.common.KafkaException")
    text = cause.str()
    # Where the broker sent no message, librdkafka puts in its own, which can be told by this.
    said = None if "Broker: " in text else text
    return Refused(detail(code, said), code=code, exception_name=full_exception_name(code))


def metadata(client: Any, topic: str | None = None, timeout_s: float = METADATA_TIMEOUT_S) -> Any:
    """ClusterMetadata of all topics, or of one."""
    from confluent_kafka import KafkaException

    try:
        if topic is None:
            return client.list_topics(timeout=timeout_s)
        return client.list_topics(topic, timeout=timeout_s)
    except KafkaException as error:
        raise translated(error) from None
