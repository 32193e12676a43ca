"""Batches that were refused for the moment, of producers that their partition does not know yet.

A producer has several requests on their way. When the first is refused (its transaction's coordinator cannot be asked now, the
partition is not led here yet), the next one may be accepted a moment later. A partition that knows nothing of the producer
takes any sequence as the first, because what came before may have been deleted. So the second batch would be stored before the
first, which could then never be stored: its client sees OUT_OF_ORDER_SEQUENCE_NUMBER. Here is remembered what was refused, and
the later batches are refused too, until the first has come again. Clients send them again in their order.

    0–4 refused (NOT_ENOUGH_REPLICAS)   5–9 refused (OUT_OF_ORDER_SEQUENCE_NUMBER)   0–4 stored   5–9 stored

Not promised: that nothing is forgotten. After FORGOTTEN_AFTER_S, or behind MOST_REMEMBERED others, it is as it was.
"""

from typing import Final

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import HEADER_SIZE, MAGIC, MAGIC_AT, read_header
from penstock.runtime.clock import Clock

FORGOTTEN_AFTER_S: Final = 300.0
"""Clients give a batch up before: after two minutes by default (`delivery.timeout.ms`)."""
MOST_REMEMBERED: Final = 10_000

_Place = tuple[str | bytes, int, int, int]
"""Topic as the request names it, partition, producer id, producer epoch."""


class RefusedFirsts:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lowest: dict[_Place, tuple[int, float]] = {}
        """The lowest sequence that was refused, and when that was; the latest last."""

    def __bool__(self) -> bool:
        return bool(self._lowest)

    def note(self, topic: str | bytes, index: int, records: memoryview | None, code: ErrorCode) -> None:
        """The batch was refused with this error, and the producer may send it again."""
        if not code.retriable or records is None:
            return
        place, sequence = _place(topic, index, records)
        if place is None:
            return
        before = self._lowest.pop(place, None)
        if before is None and len(self._lowest) >= MOST_REMEMBERED:
            del self._lowest[next(iter(self._lowest))]
        lowest = sequence if before is None else min(sequence, before[0])
        self._lowest[place] = lowest, self._clock.monotonic()

    def check(self, topic: str | bytes, index: int, records: memoryview, *, is_known: bool) -> None:
        """ApiError for a batch behind one that was refused. `is_known`: the partition itself knows which sequence is next."""
        place, sequence = _place(topic, index, records)
        found = None if place is None else self._lowest.get(place)
        if place is None or found is None:
            return
        lowest, refused_at = found
        if is_known or sequence <= lowest or self._clock.monotonic() - refused_at > FORGOTTEN_AFTER_S:
            del self._lowest[place]
            return
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {place[2]}: {sequence} (incoming seq. number), "
            f"{lowest} (refused just now, and to be sent again first)",
        )


def producer_of(records: memoryview) -> int:
    """The producer's id; -1 of one that has none."""
    return read_header(records).producer_id if _is_whole(records) else -1


def _is_whole(records: memoryview) -> bool:
    return len(records) >= HEADER_SIZE and records[MAGIC_AT] == MAGIC


def _place(topic: str | bytes, index: int, records: memoryview) -> tuple[_Place | None, int]:
    if not _is_whole(records):
        return None, -1
    header = read_header(records)
    if header.producer_id < 0 or header.base_sequence < 0:
        return None, -1
    return (topic, index, header.producer_id, header.producer_epoch), header.base_sequence
