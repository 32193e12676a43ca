"""`kafka.*` options: the Java clients' property names, which Spark's users know, for librdkafka.

Every name that the Java clients have is taken. Some have no meaning here (how a Java program is put together) and are
left out; the ones that Spark's own source refuses are refused. Anything else is a slip of the pen and is told so.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from penstock.client.security import NO_SECURITY, SECURITY_NAMES, security_of
from penstock.spark.failures import BadOption

PREFIX = "kafka."

_CLIENT = """
bootstrap.servers client.dns.lookup client.id config.providers connections.max.idle.ms enable.metrics.push
metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms
reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms send.buffer.bytes
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
"""
_CONSUMER = """
allow.auto.create.topics auto.commit.interval.ms check.crcs client.rack default.api.timeout.ms exclude.internal.topics
fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor
heartbeat.interval.ms isolation.level max.partition.fetch.bytes max.poll.interval.ms max.poll.records
partition.assignment.strategy session.timeout.ms
"""
_PRODUCER = """
acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type compression.zstd.level
delivery.timeout.ms enable.idempotence linger.ms max.block.ms max.in.flight.requests.per.connection max.request.size
metadata.max.idle.ms partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
partitioner.ignore.keys retries transaction.timeout.ms
"""

CONSUMER_NAMES = SECURITY_NAMES.union((_CLIENT + _CONSUMER).split())
PRODUCER_NAMES = SECURITY_NAMES.union((_CLIENT + _PRODUCER).split())
REFUSED = {
    "auto.offset.reset": "cannot be set: use 'startingOffsets'",
    "enable.auto.commit": "cannot be set: Spark keeps the offsets; 'commit.group' shows them to others",
    "interceptor.classes": "cannot be set",
    "key.deserializer": "cannot be set: keys are binary; cast them",
    "value.deserializer": "cannot be set: values are binary; cast them",
    "key.serializer": "cannot be set: keys are strings or binary",
    "value.serializer": "cannot be set: values are strings or binary",
    "transactional.id": "cannot be set: 'exactlyOnce' makes transactional ids from the query's id",
}
CLUSTER_NAMES = SECURITY_NAMES.union(
    ["bootstrap.servers", "client.id", "client.dns.lookup", "request.timeout.ms"]
)

_RENAMED = {
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "delivery.timeout.ms": "message.timeout.ms",
}
_LIBRDKAFKA = """
acks batch.size bootstrap.servers client.dns.lookup client.id client.rack compression.type connections.max.idle.ms
delivery.timeout.ms enable.idempotence enable.metrics.push linger.ms max.in.flight.requests.per.connection
max.request.size metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms
retry.backoff.ms send.buffer.bytes socket.connection.setup.timeout.ms transaction.timeout.ms
"""
_KNOWN_TO_LIBRDKAFKA = frozenset(_LIBRDKAFKA.split())
_NUMBERS = re.compile(
    r".*\.(ms|bytes|size|records|memory|seconds|samples|connection)|compression\.\w+\.level|retries"
)
_CHOICES = {
    "acks": ("all", "-1", "0", "1"),
    "compression.type": ("none", "gzip", "snappy", "lz4", "zstd"),
    "enable.idempotence": ("true", "false"),
    "isolation.level": ("read_committed", "read_uncommitted"),
}


def checked(options: Mapping[str, str], known: frozenset[str]) -> dict[str, str]:
    """The `kafka.*` options without their prefix; BadOption for the first that cannot be."""
    properties: dict[str, str] = {}
    for option, value in options.items():
        if not option.startswith(PREFIX):
            continue
        name = option.removeprefix(PREFIX)
        if name in REFUSED:
            raise BadOption(option, REFUSED[name])
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise BadOption(option, "is unknown" + (f"; did you mean '{PREFIX}{near[0]}'?" if near else ""))
        if _NUMBERS.fullmatch(name):
            _number(name, value)
        if name in _CHOICES and value not in _CHOICES[name]:
            raise BadOption(option, f"must be {' or '.join(_CHOICES[name])}, not '{value}'")
        properties[name] = value
    if not properties.get("bootstrap.servers", "").strip():
        raise BadOption("kafka.bootstrap.servers", "must say where the cluster is, such as localhost:9092")
    return properties


def for_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    """Those that mean something to librdkafka, under its names."""
    settings = _security(properties)
    for name, value in properties.items():
        if name == "buffer.memory":
            settings["queue.buffering.max.kbytes"] = str(max(1, _number(name, value) // 1024))
        elif name in _KNOWN_TO_LIBRDKAFKA:
            settings[_RENAMED.get(name, name)] = value
    return settings


def _security(properties: Mapping[str, str]) -> dict[str, str]:
    try:
        security = security_of(properties)
    except ValueError as error:
        raise refused(error) from None
    return {} if security is NO_SECURITY else security.librdkafka_settings()


def refused(error: ValueError) -> BadOption:
    """A complaint of penstock.arrow, which begins with a property's name, in the words of Spark's users."""
    name, _, complaint = str(error).partition(": ")
    option = "bootstrap.servers" if name == "bootstrap" else name
    return BadOption(PREFIX + option, f"cannot be used: {complaint}")


def cluster_only(properties: Mapping[str, str]) -> dict[str, str]:
    """What says where the cluster is and who we are; not how to fetch or produce."""
    return {name: value for name, value in properties.items() if name in CLUSTER_NAMES}


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise BadOption(PREFIX + name, f"must be a number, not '{value}'") from None
