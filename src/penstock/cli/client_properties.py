"""Kafka's client properties, as people have them in files, for librdkafka.

Most names are the same. Some are called differently there, and some mean nothing to it (serializers, metrics). What librdkafka
does not know is left out and told in one line, not an error. Security is read by `penstock.client.security`, for our own
connections and for librdkafka alike.
"""

from penstock.cli.failures import UserError

SECURITY_PREFIXES = ("security.", "sasl.", "ssl.")
"""Where none has one, what reads security need not be loaded."""
RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "default.api.timeout.ms": "socket.timeout.ms",
}

# These say how a Java program is put together, or what only the Java client does: nothing is lost without them.
MEANINGLESS = frozenset(
    {
        "auto.include.jmx.reporter",
        "bootstrap.controllers",
        "config.providers",
        "enable.metrics.push",
        "exclude.internal.topics",
        "group.remote.assignor",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "share.acknowledgement.mode",
        "throws.on.oversized.message",
        "value.deserializer",
        "value.serializer",
    }
)

ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
    # librdkafka has the cooperative form of it only; the eager one falls back to what every client knows.
    "StickyAssignor": "range",
}


def to_librdkafka(properties: dict[str, str], *, role: str) -> dict[str, str]:
    """The same settings, but for those of security, under librdkafka's names. `role` is "admin", "producer" or "consumer"."""
    settings: dict[str, str] = {}
    for name, value in properties.items():
        if name in MEANINGLESS or name.startswith(("metrics.", "telemetry.")) or _is_of_security(name):
            continue
        if name == "buffer.memory":
            settings["queue.buffering.max.kbytes"] = str(max(1, _number(name, value) // 1024))
        elif name == "partition.assignment.strategy":
            settings[name] = _assignors(value)
        elif name == "request.timeout.ms" and role != "producer":
            settings["socket.timeout.ms"] = value
        else:
            settings[RENAMED.get(name, name)] = value
    return settings


def _is_of_security(name: str) -> bool:
    if not name.startswith(SECURITY_PREFIXES):
        return False
    from penstock.client.security import SECURITY_NAMES

    return name in SECURITY_NAMES


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UserError(f"{name} must be a number, not '{value}'") from None


def _assignors(value: str) -> str:
    names = [name.strip().rpartition(".")[2] for name in value.split(",") if name.strip()]
    return ",".join(dict.fromkeys(ASSIGNORS.get(name, name) for name in names))
