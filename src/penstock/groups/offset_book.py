"""OffsetBook: the offsets of all groups of a shard, as they are recorded. Hard state: only replay writes here.

An offset is kept as the value of its record, and read when somebody asks: a broker that starts has a hundred thousand of
them to take in, and few are asked for. A place (topic, partition) is one object for all groups that read it.

Offsets of an open transaction are *pending*, in the order of their records, until the marker of their producer comes:

    commit orders-0=5, producer 7: 8 pending, producer 9: 9 pending, marker 9 committed → 9, marker 7 committed → still 9

since the record of producer 7 came before the one that counts by now. A plain commit goes before what is pending at that
time in the same way.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from penstock.groups.records import CommittedOffset, read_offset

Place = tuple[str, int]
"""Topic and partition."""

PLACES_MAX: Final = 100_000
"""Shared places that are kept at hand; beyond that, those of deleted topics might be many."""

NO_OFFSETS: Final[dict[Place, bytes]] = {}


class OffsetBook:
    __slots__ = ("_committed", "_open", "_pending", "_places")

    def __init__(self) -> None:
        self._committed: dict[str, dict[Place, bytes]] = {}
        # group → place → producer → its offset, in the order of the records; None: something later counts already
        self._pending: dict[str, dict[Place, dict[int, bytes | None]]] = {}
        self._open: dict[int, dict[tuple[str, Place], None]] = {}
        self._places: dict[bytes, Place] = {}

    # ── replay ──────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, group: str, raw_place: bytes, value: bytes) -> None:
        """A commit outside of transactions. The value has been checked to be one."""
        place = self._place(raw_place)
        offsets = self._committed.get(group)
        if offsets is None:
            self._committed[group] = {place: value}
        else:
            offsets[place] = value
        if self._pending:
            self._outdate(self._pending.get(group, {}).get(place, {}))

    def put_pending(self, group: str, raw_place: bytes, value: bytes, producer_id: int) -> None:
        place = self._place(raw_place)
        pending = self._pending.setdefault(group, {}).setdefault(place, {})
        pending.pop(producer_id, None)
        pending[producer_id] = value
        self._open.setdefault(producer_id, {})[group, place] = None

    def remove(self, group: str, raw_place: bytes) -> None:
        """Forget an offset, also where it is pending."""
        place = self._place(raw_place)
        offsets = self._committed.get(group)
        if offsets is not None:
            offsets.pop(place, None)
            if not offsets:
                del self._committed[group]
        for producer_id in tuple(self._pending.get(group, {}).get(place, ())):
            self._close(producer_id, group, place)
            self._open[producer_id].pop((group, place))
            if not self._open[producer_id]:
                del self._open[producer_id]

    def end(self, producer_id: int, *, committed: bool) -> None:
        """The producer's transaction is over: what it had pending counts now, or never did."""
        for group, place in self._open.pop(producer_id, ()):
            pending = self._pending[group][place]
            value = pending[producer_id]
            if committed and value is not None:
                self._committed.setdefault(group, {})[place] = value
                self._outdate(pending, before=producer_id)
            self._close(producer_id, group, place)

    def _close(self, producer_id: int, group: str, place: Place) -> None:
        places = self._pending[group]
        places[place].pop(producer_id)
        if not places[place]:
            del places[place]
            if not places:
                del self._pending[group]

    def _outdate(self, pending: dict[int, bytes | None], before: int | None = None) -> None:
        for producer_id in pending:
            if producer_id == before:
                return
            pending[producer_id] = None

    def _place(self, raw: bytes) -> Place:
        place = self._places.get(raw)
        if place is None:
            if int.from_bytes(raw[:2], "big") != len(raw) - 6:
                raise ValueError("the key of an offset is not as long as it says")
            if len(self._places) >= PLACES_MAX:
                self._places.clear()
            place = self._places[raw] = (raw[2:-4].decode(), int.from_bytes(raw[-4:], "big", signed=True))
        return place

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, group: str, place: Place) -> CommittedOffset | None:
        value = self._committed.get(group, NO_OFFSETS).get(place)
        return None if value is None else read_offset(value)

    def places(self, group: str) -> Iterable[Place]:
        """Where the group has an offset that counts."""
        return self._committed.get(group, NO_OFFSETS)

    def committed(self, group: str) -> Iterator[tuple[Place, CommittedOffset]]:
        for place, value in self._committed.get(group, NO_OFFSETS).items():
            yield place, read_offset(value)

    def pending_places(self, group: str) -> Iterable[Place]:
        return self._pending.get(group, ())

    def is_pending(self, group: str, place: Place) -> bool:
        return place in self._pending.get(group, ())

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
            group: {place: list(values.items()) for place, values in places.items()}
            for group, places in self._pending.items()
        }
        return (self._committed, pending)
