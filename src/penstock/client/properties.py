"""Kafka's client properties: which there are, which values they take, which contradict, and what librdkafka calls them.

Two dialects are taken, because people have files in both: the Java clients' and librdkafka's. `NAMES` is the one table.
Properties of security are read by `security`, for our own connections and for librdkafka alike.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from penstock.client.errors import BadOption

# A word is a name, for the Java clients of these kinds; behind "=" is librdkafka's where it is another, or nothing where it has
# none: that says how a Java program is put together, or what only the Java client does, and nothing is lost without it.
_EVERY: Final = """
bootstrap.servers client.dns.lookup client.id config.providers= connections.max.idle.ms enable.metrics.push
metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters=
metrics.num.samples= metrics.recording.level= metrics.sample.window.ms= receive.buffer.bytes=socket.receive.buffer.bytes
reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms
send.buffer.bytes=socket.send.buffer.bytes socket.connection.setup.timeout.max.ms= socket.connection.setup.timeout.ms
"""
_CONSUMER: Final = """
allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs client.rack
default.api.timeout.ms=socket.timeout.ms enable.auto.commit exclude.internal.topics= fetch.max.bytes
fetch.max.wait.ms=fetch.wait.max.ms fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor=
heartbeat.interval.ms interceptor.classes= internal.throw.on.fetch.stable.offset.unsupported= isolation.level
key.deserializer= max.partition.fetch.bytes max.poll.interval.ms max.poll.records= partition.assignment.strategy
session.timeout.ms share.acknowledgement.mode= share.acquire.mode= value.deserializer=
"""
_PRODUCER: Final = """
acks batch.size buffer.memory=queue.buffering.max.kbytes compression.gzip.level= compression.lz4.level= compression.type
compression.zstd.level= delivery.timeout.ms=message.timeout.ms enable.idempotence interceptor.classes= key.serializer=
linger.ms max.block.ms= max.in.flight.requests.per.connection max.request.size=message.max.bytes metadata.max.idle.ms=
partitioner.adaptive.partitioning.enable= partitioner.availability.timeout.ms= partitioner.class= partitioner.ignore.keys=
retries transaction.timeout.ms transaction.two.phase.commit.enable= transactional.id value.serializer=
"""
_ADMIN: Final = "bootstrap.controllers= default.api.timeout.ms=socket.timeout.ms retries"
# Those of versions before, of both dialects.
_FORMER: Final = "auto.include.jmx.reporter= throws.on.oversized.message="
_SECURITY: Final = """
sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url security.protocol security.providers ssl.cipher.suites ssl.enabled.protocols
ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm
ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol
ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
ssl.truststore.location ssl.truststore.password ssl.truststore.type
sasl.kerberos.keytab sasl.kerberos.principal
sasl.mechanisms sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.method sasl.password
sasl.username ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.key.location ssl.key.pem
enable.ssl.certificate.verification
"""
_LIBRDKAFKA: Final = """
api.version.fallback.ms api.version.request api.version.request.timeout.ms auto.commit.enable batch.num.messages
broker.address.family broker.address.ttl broker.version.fallback builtin.features client.software.name
client.software.version compression.codec compression.level consume.callback.max.messages coordinator.query.interval.ms
debug delivery.report.only.error enable.auto.offset.store enable.gapless.guarantee enable.partition.eof
enable.random.seed enable.sasl.oauthbearer.unsecure.jwt enable.sparse.connections
fetch.error.backoff.ms fetch.message.max.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.protocol.type
https.ca.location https.ca.pem internal.termination.signal log_level log.connection.close log.queue log.thread.name max.in.flight
message.copy.max.bytes message.max.bytes message.send.max.retries message.timeout.ms metadata.broker.list
metadata.request.timeout.ms offset.store.method offset.store.path offset.store.sync.interval.ms partitioner
plugin.library.paths produce.offset.report queue.buffering.backpressure.threshold queue.buffering.max.kbytes
queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages queuing.strategy
receive.message.max.bytes reconnect.backoff.jitter.ms request.required.acks
sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
sasl.oauthbearer.assertion.jwt.template.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.config
sasl.oauthbearer.extensions sasl.oauthbearer.grant.type sasl.oauthbearer.metadata.authentication.type
socket.blocking.max.ms socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes
socket.send.buffer.bytes socket.timeout.ms ssl.ca.certificate.stores ssl.crl.location ssl.curves.list ssl.engine.id
ssl.engine.location ssl.providers ssl.sigalgs.list statistics.interval.ms sticky.partitioning.linger.ms
test.mock.broker.rtt test.mock.num.brokers topic.blacklist topic.metadata.propagation.max.ms
topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
topic.metadata.refresh.sparse
"""
REGISTRY_PREFIX: Final = "schema.registry."
"""Of what is about a schema registry: Confluent's clients find it in the same file."""
_OF_REPORTERS: Final = ("metrics.", "telemetry.")
"""What a metrics reporter of a Java program reads may have any name."""


def _rows(text: str) -> dict[str, str]:
    rows = {}
    for word in text.split():
        name, renamed, other = word.partition("=")
        rows[name] = other if renamed else name
    return rows


NAMES: Final = _rows(_EVERY + _CONSUMER + _PRODUCER + _ADMIN + " " + _FORMER + _SECURITY + _LIBRDKAFKA)
"""Every name that is known → what librdkafka calls it; empty where it has nothing of the kind."""
SECURITY_NAMES: Final = frozenset(_rows(_SECURITY))
"""All of security that are taken; those that say how a Java program is put together have no effect."""
CONSUMER_NAMES: Final = SECURITY_NAMES.union(_rows(_EVERY + _CONSUMER))
PRODUCER_NAMES: Final = SECURITY_NAMES.union(_rows(_EVERY + _PRODUCER))

_NUMBERS: Final = re.compile(
    r".*\.(ms|bytes|size|records|memory|seconds|samples|connection)|compression\.\w+\.level|retries"
)
_AT_LEAST: Final = {
    "metadata.max.age.ms": 0,
    "request.timeout.ms": 0,
    "default.api.timeout.ms": 0,
    "retry.backoff.ms": 0,
    "reconnect.backoff.ms": 0,
    "linger.ms": 0,
    "fetch.max.wait.ms": 0,
    "fetch.min.bytes": 0,
    "batch.size": 0,
    "session.timeout.ms": 0,
    "max.poll.interval.ms": 1,
    "max.poll.records": 1,
    "heartbeat.interval.ms": 0,
}
"""As the Java clients have it."""
_NOT_MORE_THAN: Final = {
    "retry.backoff.ms": "retry.backoff.max.ms",
    "reconnect.backoff.ms": "reconnect.backoff.max.ms",
    "request.timeout.ms": "default.api.timeout.ms",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.max.ms",
}
_TRUE_OR_FALSE: Final = ("true", "false")
_CHOICES: Final = {
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "acks": ("all", "-1", "0", "1"),
    # Java's words, then librdkafka's.
    "auto.offset.reset": ("earliest", "latest", "none", "smallest", "beginning", "largest", "end", "error"),
    "allow.auto.create.topics": _TRUE_OR_FALSE,
    "check.crcs": _TRUE_OR_FALSE,
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "enable.auto.commit": _TRUE_OR_FALSE,
    "enable.idempotence": _TRUE_OR_FALSE,
    "enable.ssl.certificate.verification": _TRUE_OR_FALSE,
    "group.protocol": ("classic", "consumer"),
    "isolation.level": ("read_committed", "read_uncommitted"),
}
_NOT_THE_SAME: Final = ("", "socket.timeout.ms", "queue.buffering.max.kbytes")
"""Names of librdkafka for what Java's property only comes near to."""
_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
    # librdkafka has the cooperative form of it only; the eager one falls back to what every client knows.
    "StickyAssignor": "range",
}
_KNOWN_ASSIGNORS: Final = {*_ASSIGNORS, *_ASSIGNORS.values()}
_STRATEGY: Final = "partition.assignment.strategy"


class Complaint(NamedTuple):
    name: str
    words: str


def unknown(names: Iterable[str], known: Iterable[str] = NAMES) -> dict[str, str]:
    """Those that are not in the table → the nearest that is, or nothing."""
    missing = [name for name in names if name not in known and not name.startswith(_OF_REPORTERS)]
    return {name: next(iter(difflib.get_close_matches(name, known, n=1)), "") for name in missing}


def complaint_about(properties: Mapping[str, str]) -> Complaint | None:
    """The first value that cannot be, or that contradicts another."""
    for name, value in properties.items():
        if _NUMBERS.fullmatch(name) and not _is_number(value):
            return Complaint(name, f"must be a number, not '{value}'")
        if name in _AT_LEAST and float(value) < _AT_LEAST[name]:
            return Complaint(name, f"must be at least {_AT_LEAST[name]}, not {value}")
        if name in _CHOICES and value.lower() not in _CHOICES[name]:
            return Complaint(name, f"must be {' or '.join(_CHOICES[name])}, not '{value}'")
        if name == _STRATEGY and (
            strange := [each for each in _assignor_names(value) if each not in _KNOWN_ASSIGNORS]
        ):
            return Complaint(name, f"must be {' or '.join(_ASSIGNORS)}, not '{strange[0]}'")
        same = NAMES.get(name, "")
        if same not in _NOT_THE_SAME and properties.get(same, value) != value:
            return Complaint(name, f"is {value}, and {same}, which means the same, is {properties[same]}")
    return _contradiction(properties)


def check(properties: Mapping[str, str]) -> None:
    """BadOption, which begins with the name, for the first value that cannot be."""
    complaint = complaint_about(properties)
    if complaint is not None:
        raise BadOption(f"{complaint.name}: {complaint.words}")


def _contradiction(given: Mapping[str, str]) -> Complaint | None:
    """What the Java clients refuse to start with, as far as both sides of it are given."""

    def number(name: str, otherwise: int) -> float:
        return float(given.get(name, otherwise))

    reason = "transactional.id" if given.get("transactional.id") else ""
    if reason and given.get("enable.idempotence", "true").lower() == "false":
        return Complaint("enable.idempotence", "must be true with transactional.id")
    if given.get("enable.idempotence", "").lower() == "true":
        reason = "enable.idempotence=true"
    if reason:
        if given.get("acks", "all").lower() not in ("all", "-1"):
            return Complaint("acks", f"must be all with {reason}, not {given['acks']}")
        if number("retries", 1) == 0:
            return Complaint("retries", f"must be more than 0 with {reason}")
        if number("max.in.flight.requests.per.connection", 1) > 5:
            return Complaint("max.in.flight.requests.per.connection", f"must be 5 or less with {reason}")
    for name, bound in _NOT_MORE_THAN.items():
        if name in given and bound in given and number(name, 0) > number(bound, 0):
            return Complaint(name, f"must not be more than {bound}, which is {given[bound]}")
    older = given.get("request.required.acks")
    if older is not None and "acks" in given and _acks(older) != _acks(given["acks"]):
        return Complaint(
            "acks", f"is {given['acks']}, and request.required.acks, which means the same, is {older}"
        )
    session_ms = number("session.timeout.ms", 0)
    if session_ms and number("heartbeat.interval.ms", 0) >= session_ms:
        return Complaint(
            "heartbeat.interval.ms", f"must be less than session.timeout.ms, which is {session_ms:g}"
        )
    least_ms = number("request.timeout.ms", 0) + number("linger.ms", 0)
    if "delivery.timeout.ms" in given and number("delivery.timeout.ms", 0) < least_ms:
        return Complaint(
            "delivery.timeout.ms", f"must be at least linger.ms and request.timeout.ms together: {least_ms:g}"
        )
    return None


def _acks(value: str) -> str:
    return "-1" if value.lower() == "all" else value


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text.strip()) is not None


def to_librdkafka(properties: Mapping[str, str], *, role: str) -> dict[str, str]:
    """The same settings, but for those of security, under librdkafka's names. `role` is "admin", "producer" or "consumer"."""
    settings: dict[str, str] = {}
    for name, value in properties.items():
        renamed = "" if name in SECURITY_NAMES else NAMES.get(name, "")
        if name == "request.timeout.ms" and role != "producer":
            renamed = "socket.timeout.ms"
        elif name == "buffer.memory":
            value = str(max(1, int(float(value)) // 1024))
        elif name == _STRATEGY:
            value = _assignors(value)
        elif name == "auto.offset.reset" and value.lower() == "none":
            value = "error"
        if renamed:
            settings[renamed] = value
    return settings


def _assignors(value: str) -> str:
    return ",".join(dict.fromkeys(_ASSIGNORS.get(name, name) for name in _assignor_names(value)))


def _assignor_names(value: str) -> list[str]:
    return [name.strip().rpartition(".")[2] for name in value.split(",") if name.strip()]
