"""What topics are called at the target, and which are never copied. Pure.

`DefaultReplicationPolicy` puts the alias of the source before the name: `orders` of cluster A is `A.orders` at B. A topic whose
name says that it came from the target is not copied back, whatever way it has taken. `IdentityReplicationPolicy` keeps names,
and so cannot see a loop: it is for one direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.errors import InvalidConfig

HEARTBEATS: Final = "heartbeats"
SEPARATOR: Final = "."
DEFAULT_POLICY: Final = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY_POLICY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class Naming:
    """Of one flow."""

    def __init__(
        self,
        source: str,
        target: str,
        *,
        separator: str = SEPARATOR,
        is_identity: bool = False,
        separates_internal: bool = True,
    ) -> None:
        self.source, self.target = source, target
        self.separator, self.is_identity = separator, is_identity
        self._internal_separator = separator if separates_internal else SEPARATOR

    def remote(self, topic: str) -> str:
        """The name at the target."""
        if self.is_identity and self._original(topic) != HEARTBEATS:
            return topic
        return f"{self.source}{self.separator}{topic}"

    def source_of(self, topic: str) -> str | None:
        """The alias of the cluster that it came from; None for one that is at home."""
        if self.is_identity and self._original(topic) != HEARTBEATS:
            return self.source
        alias, found, _ = topic.partition(self.separator)
        return alias if found else None

    def upstream(self, topic: str) -> str | None:
        """Its name in the cluster that it came from."""
        if self.is_identity and self._original(topic) != HEARTBEATS:
            return topic
        _, found, rest = topic.partition(self.separator)
        return rest if found else None

    def is_loop(self, topic: str) -> bool:
        """It came from the target, perhaps by way of others."""
        name: str | None = topic
        while name is not None:
            source = self.source_of(name)
            if source is None:
                return False
            if source == self.target:
                return True
            upstream = self.upstream(name)
            if upstream == name:
                return False
            name = upstream
        return False

    def is_heartbeats(self, topic: str) -> bool:
        return self._original(topic) == HEARTBEATS

    def is_internal(self, topic: str) -> bool:
        """Of Kafka, of Connect, or of mirroring."""
        separator = self._internal_separator
        return (
            topic.startswith(("__", "."))
            or topic.endswith(("-internal", ".internal", f"{separator}checkpoints{separator}internal"))
            or (topic.startswith("mm2") and topic.endswith(f"{separator}internal"))
        )

    def checkpoints_topic(self) -> str:
        """At the target."""
        separator = self._internal_separator
        return f"{self.source}{separator}checkpoints{separator}internal"

    def offset_syncs_topic(self, *, at_source: bool) -> str:
        separator = self._internal_separator
        return f"mm2-offset-syncs{separator}{self.target if at_source else self.source}{separator}internal"

    def worker_topic(self, what: str) -> str:
        """`offsets`, `configs` or `status` of a dedicated process, at the target."""
        separator = self._internal_separator
        return f"mm2-{what}{separator}{self.source}{separator}internal"

    def _original(self, topic: str) -> str:
        return topic.rpartition(self.separator)[2] if self.separator in topic else topic


def naming_of(values: Mapping[str, Any]) -> Naming:
    """InvalidConfig for a policy that there is not."""
    policy = str(values["replication.policy.class"]).removeprefix("class ").rpartition(".")[2]
    if policy not in ("DefaultReplicationPolicy", "IdentityReplicationPolicy"):
        raise InvalidConfig(
            f"replication.policy.class: there is no {policy}; use DefaultReplicationPolicy or IdentityReplicationPolicy"
        )
    return Naming(
        str(values["source.cluster.alias"]),
        str(values["target.cluster.alias"]),
        separator=str(values["replication.policy.separator"]),
        is_identity=policy.startswith("Identity"),
        separates_internal=bool(values["replication.policy.internal.topic.separator.enabled"]),
    )
