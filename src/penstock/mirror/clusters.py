"""How the clusters of a flow are reached: `source.cluster.…` and `target.cluster.…`, and what is for one kind of client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from penstock.admin import Cluster
from penstock.client.clients import Connection
from penstock.client.compacted_topics import ensure_topic
from penstock.client.errors import BadOption
from penstock.client.librdkafka_settings import librdkafka_settings
from penstock.client.options import ClientOptions, client_options
from penstock.client.properties import NAMES, SECURITY_NAMES
from penstock.connect.errors import InvalidConfig

T = TypeVar("T")

SOURCE, TARGET = "source", "target"
BOOTSTRAP: Final = "bootstrap.servers"
CREATE_S: Final = 30.0
_FETCH: Final = (
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
    "request.timeout.ms",
    "default.api.timeout.ms",
)
_ROLES: Final = ("consumer", "producer", "admin")


def properties_of(given: Mapping[str, str], side: str, role: str = "") -> dict[str, str]:
    """Of one cluster, in Kafka's names. Those for a role stand over the others: `source.consumer.…`, `source.cluster.consumer.…`
    and, as MirrorMaker 2 has it, plain `consumer.…`. InvalidConfig where the cluster has no address."""
    found = _behind(given, f"{side}.cluster.")
    found.pop("alias", None)
    plain = {
        name: value
        for name, value in found.items()
        if not name.startswith(tuple(f"{one}." for one in _ROLES))
    }
    if role:
        plain |= _behind(given, f"{role}.")
        plain |= _behind(found, f"{role}.")
        plain |= _behind(given, f"{side}.{role}.")
    if not plain.get(BOOTSTRAP, "").strip():
        raise InvalidConfig(f"{side}.cluster.{BOOTSTRAP} must say where the {side} cluster is: HOST:PORT,…")
    return plain


def connection_of(given: Mapping[str, str], side: str) -> Connection:
    properties = properties_of(given, side, "admin")
    known = {name: value for name, value in properties.items() if name in NAMES}
    return _checked(lambda: Connection(properties[BOOTSTRAP], known))


def cluster_of(given: Mapping[str, str], side: str) -> Cluster:
    return Cluster.over(connection_of(given, side))


def options_of(given: Mapping[str, str], side: str, role: str) -> ClientOptions:
    properties = properties_of(given, side, role)
    known = {name: value for name, value in properties.items() if name in SECURITY_NAMES or name in _FETCH}
    return _checked(lambda: client_options(properties[BOOTSTRAP], {"client.id": "penstock-mirror", **known}))


def is_read_committed(given: Mapping[str, str]) -> bool:
    """So it is by default, so that what a transaction has taken back is not copied."""
    return (
        properties_of(given, SOURCE, "consumer").get("isolation.level", "read_committed") == "read_committed"
    )


def begins_at_end(given: Mapping[str, str]) -> bool:
    return properties_of(given, SOURCE, "consumer").get("auto.offset.reset", "earliest") == "latest"


def librdkafka_of(given: Mapping[str, str], side: str, role: str) -> dict[str, Any]:
    properties = properties_of(given, side, role)
    known = {name: value for name, value in properties.items() if name in NAMES}
    return _checked(lambda: librdkafka_settings(known, role=role))


def make_internal_topic(
    connection: Connection, name: str, *, replication_factor: int, partitions: int = 1
) -> None:
    """Compacted. One that is there stays as it is."""
    ensure_topic(
        connection, name, option="mirroring", replication_factor=replication_factor, timeout_s=CREATE_S,
        partitions=partitions, is_exact=False, skip_check=True,
    )  # fmt: skip


def _behind(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name[len(prefix) :]: value for name, value in given.items() if name.startswith(prefix)}


def _checked(make: Callable[[], T]) -> T:
    try:
        return make()
    except BadOption as error:
        raise InvalidConfig(str(error)) from None
