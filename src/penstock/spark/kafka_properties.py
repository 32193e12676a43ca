"""`kafka.*` options: the Java clients' property names, which Spark's users know, for librdkafka.

Every name that the Java clients have is taken. Some have no meaning here (how a Java program is put together) and are
left out; the ones that Spark's own source refuses are refused. Anything else is a slip of the pen and is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.client.properties import SECURITY_NAMES, complaint_about, to_librdkafka, unknown
from penstock.client.security import NO_SECURITY, security_of
from penstock.spark.failures import BadOption

PREFIX = "kafka."

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
            near = unknown([name], known).get(name)
            raise BadOption(option, "is unknown" + (f"; did you mean '{PREFIX}{near}'?" if near else ""))
        properties[name] = value
    complaint = complaint_about(properties)
    if complaint is not None:
        raise BadOption(PREFIX + complaint.name, complaint.words)
    if not properties.get("bootstrap.servers", "").strip():
        raise BadOption("kafka.bootstrap.servers", "must say where the cluster is, such as localhost:9092")
    return properties


def for_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    """Those that mean something to librdkafka, under its names."""
    return _security(properties) | to_librdkafka(properties, role="producer")


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
