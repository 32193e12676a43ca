"""What a task needs of the worker's properties. It is sent to every task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.connect.errors import InvalidConfig
from penstock.connect.settings import REQUIRED, Kind, Setting

EXACTLY_ONCE: Final = "exactly.once.source.support"
DEFAULT_BOOTSTRAP: Final = "localhost:9092"


def value_of(given: Mapping[str, str], name: str, kind: Kind, default: Any = REQUIRED) -> Any:
    """InvalidConfig, in Kafka's words."""
    return Setting(name, kind, "", default=default).parse(given.get(name))


def with_prefix(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Those that begin with it, without it."""
    return {name[len(prefix) :]: value for name, value in given.items() if name.startswith(prefix)}


@dataclass(frozen=True)
class WorkerSettings:
    properties: Mapping[str, str] = field(repr=False)  # they hold secrets
    bootstrap: str = DEFAULT_BOOTSTRAP
    group_id: str = ""
    offsets_topic: str | None = None
    offsets_partitions: int = 25
    offsets_replication: int = 3
    offsets_file: str | None = None
    """Of a standalone worker, which has no topic for them."""
    flush_interval_s: float = 60.0
    flush_timeout_s: float = 5.0
    graceful_timeout_s: float = 5.0
    is_exactly_once: bool = False
    override_policy: str = "All"
    override_allowlist: tuple[str, ...] = ()
    makes_topics: bool = True

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> WorkerSettings:
        """InvalidConfig for a value that cannot be."""

        def value(name: str, kind: Kind, default: Any) -> Any:
            return value_of(properties, name, kind, default)

        support = str(value(EXACTLY_ONCE, Kind.STRING, "disabled")).lower()
        if support not in ("disabled", "preparing", "enabled"):
            raise InvalidConfig(
                f"Invalid value {support} for configuration {EXACTLY_ONCE}: String must be one of: disabled, preparing, enabled"
            )
        return cls(
            dict(properties),
            value("bootstrap.servers", Kind.STRING, DEFAULT_BOOTSTRAP),
            value("group.id", Kind.STRING, ""),
            value("offset.storage.topic", Kind.STRING, None),
            value("offset.storage.partitions", Kind.INT, 25),
            value("offset.storage.replication.factor", Kind.SHORT, 3),
            value("offset.storage.file.filename", Kind.STRING, None),
            value("offset.flush.interval.ms", Kind.LONG, 60_000) / 1000,
            value("offset.flush.timeout.ms", Kind.LONG, 5_000) / 1000,
            value("task.shutdown.graceful.timeout.ms", Kind.LONG, 5_000) / 1000,
            support == "enabled",
            value("connector.client.config.override.policy", Kind.STRING, "All"),
            tuple(value("connector.client.config.override.allowlist", Kind.LIST, [])),
            value("topic.creation.enable", Kind.BOOLEAN, True),
        )
