"""What the clients of a simulation did, were told and saw: the evidence that `invariants` judges."""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

MAX_VIOLATIONS: Final = 20
"""Of one run: the first ones tell the most."""
Place = tuple[str, int]
"""topic, partition"""


class Outcome(Enum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """The end was asked for and never answered for certain: all of it or nothing may be there."""


@dataclass
class Transaction:
    name: str
    records: list[tuple[Place, bytes]] = field(default_factory=list)
    outcome: Outcome = Outcome.OPEN


@dataclass
class Commits:
    """The offsets that a group's members committed for a partition; they only go up."""

    acknowledged: int = -1
    attempted: int = -1


class History:
    def __init__(self) -> None:
        self.sent: dict[Place, list[bytes]] = {}
        """By each producer in its order."""
        self.acknowledged: dict[Place, dict[bytes, int]] = {}
        """The offset that a producer was told for a value; -1 where a retry could not be told."""
        self.acknowledged_alone: dict[Place, dict[bytes, int]] = {}
        """With acks=1, and so to be lost when its leader is; the offset that the producer was told."""
        self.sent_once: set[bytes] = set()
        """With acks=1 and never again, whatever the answer."""
        self.seen: dict[Place, dict[int, bytes]] = {}
        """By consumers of what is below the high watermark."""
        self.seen_committed: dict[Place, dict[int, bytes]] = {}
        """By consumers that read_committed."""
        self.transactions: list[Transaction] = []
        self.commits: dict[tuple[str, str, int], Commits] = {}
        self.leaders: dict[tuple[bytes, int, int], int] = {}
        """By the topic's id: one that is made anew under its name begins with epoch 0 again, on another broker perhaps."""
        """topic, partition, epoch: who led."""
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()

    def violated(self, text: str) -> None:
        if text not in self.violations and len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(text)

    def was_sent(self, place: Place, value: bytes) -> None:
        self.sent.setdefault(place, []).append(value)

    def was_acknowledged(self, place: Place, value: bytes, offset: int) -> None:
        self.counts["acknowledged"] += 1
        known = self.acknowledged.setdefault(place, {})
        if value in known:
            self.violated(f"{_name(place)}: {value!r} was acknowledged twice, at {known[value]} and {offset}")
        known[value] = offset

    def was_acknowledged_alone(self, place: Place, value: bytes, offset: int) -> None:
        self.counts["acknowledged (acks=1)"] += 1
        self.acknowledged_alone.setdefault(place, {})[value] = offset

    def was_seen(self, place: Place, offset: int, value: bytes, *, committed: bool) -> None:
        self.counts["seen"] += 1
        seen = (self.seen_committed if committed else self.seen).setdefault(place, {})
        before = seen.setdefault(offset, value)
        if before != value:
            self.violated(f"{_name(place)}: offset {offset} was seen as {before!r} and as {value!r}")

    def leads(self, place: Place, topic_id: bytes, epoch: int, broker_id: int) -> None:
        before = self.leaders.setdefault((topic_id, place[1], epoch), broker_id)
        if before != broker_id:
            self.violated(f"{_name(place)}: brokers {before} and {broker_id} both lead in epoch {epoch}")


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"
