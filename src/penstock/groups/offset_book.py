"""OffsetBook: the offsets of all groups of a shard, as they are recorded. Hard state: only replay writes here.

An offset is kept as the value of its record, and read when somebody asks: a broker that starts has a hundred thousand of
them to take in, and few are asked for. A TopicPartition is one object for all groups that read it.

Offsets of an open transaction are *pending*, in the order of their records, until the marker of their producer comes:

    commit orders-0=5, producer 7: 8 pending, producer 9: 9 pending, marker 9 committed → 9, marker 7 committed → still 9

since the record of producer 7 came before the one that counts by now. A plain commit goes before what is pending at that
time in the same way.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from penstock.groups.records import CommittedOffset, read_offset
from penstock.model.ids import TopicPartition

SHARED_MAX: Final = 100_000
"""Topic partitions that are kept available; beyond that, those of deleted topics might be many."""

NO_OFFSETS: Final[dict[TopicPartition, bytes]] = {}


class OffsetBook:
    __slots__ = ("_committed", "_open", "_pending", "_shared")

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, bytes]] = {}
        # group → partition → producer → its offset, in the order of the records; None: something later counts already
        self._pending: dict[str, dict[TopicPartition, dict[int, bytes | None]]] = {}
        self._open: dict[int, dict[tuple[str, TopicPartition], None]] = {}
        self._shared: dict[bytes, TopicPartition] = {}

    # ── replay ──────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, group: str, raw_topic_partition: bytes, value: bytes) -> None:
        """A commit outside of transactions. The value has been checked to be one."""
        topic_partition = self._topic_partition(raw_topic_partition)
        offsets = self._committed.get(group)
        if offsets is None:
            self._committed[group] = {topic_partition: value}
        else:
            offsets[topic_partition] = value
        if self._pending:
            self._outdate(self._pending.get(group, {}).get(topic_partition, {}))

    def put_pending(self, group: str, raw_topic_partition: bytes, value: bytes, producer_id: int) -> None:
        topic_partition = self._topic_partition(raw_topic_partition)
        pending = self._pending.setdefault(group, {}).setdefault(topic_partition, {})
        pending.pop(producer_id, None)
        pending[producer_id] = value
        self._open.setdefault(producer_id, {})[group, topic_partition] = None

    def remove(self, group: str, raw_topic_partition: bytes) -> None:
        """Forget an offset, also where it is pending."""
        topic_partition = self._topic_partition(raw_topic_partition)
        offsets = self._committed.get(group)
        if offsets is not None:
            offsets.pop(topic_partition, None)
            if not offsets:
                del self._committed[group]
        for producer_id in tuple(self._pending.get(group, {}).get(topic_partition, ())):
            self._close(producer_id, group, topic_partition)
            self._open[producer_id].pop((group, topic_partition))
            if not self._open[producer_id]:
                del self._open[producer_id]

    def end(self, producer_id: int, *, committed: bool) -> None:
        """The producer's transaction is over: what it had pending counts now, or never did."""
        for group, topic_partition in self._open.pop(producer_id, ()):
            pending = self._pending[group][topic_partition]
            value = pending[producer_id]
            if committed and value is not None:
                self._committed.setdefault(group, {})[topic_partition] = value
                self._outdate(pending, before=producer_id)
            self._close(producer_id, group, topic_partition)

    def _close(self, producer_id: int, group: str, topic_partition: TopicPartition) -> None:
        topic_partitions = self._pending[group]
        topic_partitions[topic_partition].pop(producer_id)
        if not topic_partitions[topic_partition]:
            del topic_partitions[topic_partition]
            if not topic_partitions:
                del self._pending[group]

    def _outdate(self, pending: dict[int, bytes | None], before: int | None = None) -> None:
        for producer_id in pending:
            if producer_id == before:
                return
            pending[producer_id] = None

    def _topic_partition(self, raw: bytes) -> TopicPartition:
        topic_partition = self._shared.get(raw)
        if topic_partition is None:
            if int.from_bytes(raw[:2], "big") != len(raw) - 6:
                raise ValueError("the key of an offset is not as long as it says")
            if len(self._shared) >= SHARED_MAX:
                self._shared.clear()
            topic_partition = self._shared[raw] = TopicPartition(
                raw[2:-4].decode(), int.from_bytes(raw[-4:], "big", signed=True)
            )
        return topic_partition

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, group: str, topic_partition: TopicPartition) -> CommittedOffset | None:
        value = self._committed.get(group, NO_OFFSETS).get(topic_partition)
        return None if value is None else read_offset(value)

    def topic_partitions(self, group: str) -> Iterable[TopicPartition]:
        """Where the group has an offset that counts."""
        return self._committed.get(group, NO_OFFSETS)

    def committed(self, group: str) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        for topic_partition, value in self._committed.get(group, NO_OFFSETS).items():
            yield topic_partition, read_offset(value)

    def values(self, group: str) -> dict[TopicPartition, bytes]:
        """A copy of the records' values, for `records.offset_of`."""
        return self._committed.get(group, NO_OFFSETS).copy()

    def totals(self) -> int:
        """Of all groups."""
        return sum(map(len, self._committed.values()))

    def pending(self, group: str) -> Iterable[TopicPartition]:
        return self._pending.get(group, ())

    def is_pending(self, group: str, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._pending.get(group, ())

    def has_pending(self, group: str) -> bool:
        return group in self._pending

    def has(self, group: str) -> bool:
        """Whether the group has any offset, be it pending."""
        return group in self._committed or group in self._pending

    def groups(self) -> list[str]:
        return list(dict.fromkeys((*self._committed, *self._pending)))

    def count(self, group: str) -> int:
        return len(self._committed.get(group, ()))

    def hard_state(self) -> object:
        pending = {
            group: {
                topic_partition: list(values.items()) for topic_partition, values in topic_partitions.items()
            }
            for group, topic_partitions in self._pending.items()
        }
        return (self._committed, pending)
