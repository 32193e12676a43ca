"""What was sent, acknowledged and seen by consumers, and whether the log that is read back in the end agrees.

A value begins with the number of its producer and a sequence number, which counts from 0 for each producer and partition. So
twice eight bytes per record are enough: the offset with which each was acknowledged, and, by offset, which record a consumer
saw there; and one more byte each while its partition is read back.

For example: producer 1 sent 0, 1, 2 to a partition and got offsets 10, 11 for the first two. Read back as 0, 2 the record 1
is lost (2 may be there or not); as 0, 1, 1 it is there twice; as 1, 0 reordered.
"""

import struct
import threading
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from enum import StrEnum

HEADER = struct.Struct(">IQ")
NOT_ACKNOWLEDGED = -1
OFFSET_UNKNOWN = -2  # acknowledged as a batch that the broker had already, without saying where
NOT_SEEN = -1
SEQUENCE_BITS = 40
MAX_EXAMPLES = 5  # of each kind


class Wrong(StrEnum):
    LOST = "acknowledged, but lost"
    TWICE = "there twice"
    REORDERED = "out of order within producer and partition"
    MISPLACED = "at another offset than acknowledged"
    GAP = "offsets without a record"
    CHANGED = "seen by a consumer, and not there or another one"
    UNDELIVERED = "never delivered to the consumers"
    STRANGE = "never sent"
    REFUSED = "refused for good"
    GAVE_UP = "clients that gave up"
    STUCK = "sent, but neither acknowledged nor refused after all was healed"
    WENT_BACK = "consumers thrown back"
    CONSUMER_ERROR = "errors of consumers that do not pass"


def encode(producer: int, sequence: int, *, padding: bytes = b"") -> bytes:
    return HEADER.pack(producer, sequence) + padding


def pack(value: bytes) -> int:
    """Producer and sequence number of a value as one number."""
    producer, sequence = HEADER.unpack_from(value)
    return int(producer << SEQUENCE_BITS | sequence)


def unpack(packed: int) -> tuple[int, int]:
    return packed >> SEQUENCE_BITS, packed & ((1 << SEQUENCE_BITS) - 1)


class Ledger:
    """Each producer's part is written by its own thread only."""

    def __init__(self) -> None:
        self.wrong: Counter[Wrong] = Counter()
        self.examples: list[str] = []
        self._complaints: Counter[Wrong] = Counter()
        self._acknowledged: Counter[int] = Counter()  # by producer
        self._refused: Counter[int] = Counter()  # by producer
        self.consumed_count = 0
        self.read_back_count = 0
        self.commit_count = 0  # of partitions' offsets
        self._offsets: dict[
            tuple[int, int], array[int]
        ] = {}  # by producer and partition, then sequence number
        self._seen: dict[int, array[int]] = defaultdict(lambda: array("q"))  # by partition, then offset
        self._commits: dict[int, dict[str, int]] = {}  # by partition and consumer: the last it was told
        self._lock = threading.Lock()

    def complain(self, wrong: Wrong, example: str, *, count: int = 1) -> None:
        with self._lock:
            self.wrong[wrong] += count
            self._complaints[wrong] += 1
            if self._complaints[wrong] <= MAX_EXAMPLES:
                self.examples.append(f"{wrong.value}: {example}")

    @property
    def acknowledged_count(self) -> int:
        return sum(list(self._acknowledged.values()))

    @property
    def sent_count(self) -> int:
        return sum(len(offsets) for offsets in list(self._offsets.values()))

    def next_sequence(self, producer: int, partition: int) -> int:
        return len(self._offsets.setdefault((producer, partition), array("q")))

    def sent(self, producer: int, partition: int) -> None:
        self._offsets[producer, partition].append(NOT_ACKNOWLEDGED)

    def acknowledged(self, producer: int, partition: int, *, sequence: int, offset: int | None) -> None:
        """None, or less than 0: the producer was not told where."""
        told = OFFSET_UNKNOWN if offset is None or offset < 0 else offset
        self._offsets[producer, partition][sequence] = told
        self._acknowledged[producer] += 1

    def refused(self, producer: int, partition: int, *, sequence: int, reason: str) -> None:
        self._refused[producer] += 1
        self.complain(
            Wrong.REFUSED, f"partition {partition}: producer {producer}, record {sequence}: {reason}"
        )

    def check_answers(self) -> None:
        """When no producer expects an answer any more: every record has had one, and only one."""
        sent: Counter[int] = Counter()
        for (producer, _), offsets in self._offsets.items():
            sent[producer] += len(offsets)
        for producer, count in sent.items():
            acknowledged, refused = self._acknowledged[producer], self._refused[producer]
            if count != acknowledged + refused:
                self.complain(
                    Wrong.STUCK,
                    f"producer {producer}: {count} sent, {acknowledged} acknowledged, {refused} refused",
                    count=abs(count - acknowledged - refused),
                )

    def consumed(self, partition: int, offset: int, value: bytes) -> None:
        packed = pack(value)
        with self._lock:
            seen = self._seen[partition]
            if offset >= len(seen):
                seen.extend([NOT_SEEN] * (offset + 1 - len(seen)))
            before, seen[offset] = seen[offset], packed
            self.consumed_count += before == NOT_SEEN
        if before not in (NOT_SEEN, packed):
            self.complain(
                Wrong.CHANGED,
                f"partition {partition} offset {offset}: {unpack(before)}, later {unpack(packed)}",
            )

    def committed(self, partition: int, offset: int, *, by: str) -> None:
        """A consumer of the group was told that this offset is committed.

        The last one counts: a client that looked for its coordinator sends what it kept meanwhile behind newer commits
        (librdkafka 2.16 does), and then the older offset is what the group has.
        """
        with self._lock:
            self.commit_count += 1
            self._commits.setdefault(partition, {})[by] = offset

    def last_commit(self, partition: int) -> int:
        """The furthest of what the members were told last; they may be told in another order."""
        with self._lock:
            return max(self._commits.get(partition, {}).values(), default=0)

    def has_consumed_up_to(self, partition: int, end_offset: int) -> bool:
        with self._lock:
            return len(self._seen[partition]) >= end_offset

    def check(self, partition: int, records: Iterable[tuple[int, bytes]]) -> None:
        """`records` are offsets and values of the whole partition, from its start to its end."""
        last: dict[int, int] = defaultdict(lambda: -1)
        found: dict[int, bytearray] = {
            producer: bytearray(len(offsets))
            for (producer, of), offsets in self._offsets.items()
            if of == partition
        }
        seen, next_offset = self._seen[partition], 0
        for offset, value in records:
            where = f"partition {partition} offset {offset}"
            if offset != next_offset:
                self.complain(
                    Wrong.GAP, f"{where} follows {next_offset - 1}", count=abs(offset - next_offset)
                )
            next_offset = offset + 1
            self.read_back_count += 1
            packed = pack(value)
            producer, sequence = unpack(packed)
            self._compare_with_seen(seen, offset, packed, where)
            if producer not in found or sequence >= len(found[producer]):
                self.complain(Wrong.STRANGE, f"{where}: producer {producer}, record {sequence}")
                continue
            self._place(found[producer], last, producer, sequence, where)
            told = self._offsets[producer, partition][sequence]
            if told >= 0 and told != offset and found[producer][sequence] == 1:
                self.complain(
                    Wrong.MISPLACED, f"{where}: producer {producer}, record {sequence}, told {told}"
                )
        self._find_lost(partition, found)
        beyond = sum(packed != NOT_SEEN for packed in seen[next_offset:])
        if beyond:
            self.complain(Wrong.CHANGED, f"partition {partition} ends at {next_offset}", count=beyond)

    def _compare_with_seen(self, seen: "array[int]", offset: int, packed: int, where: str) -> None:
        at_the_time = seen[offset] if offset < len(seen) else NOT_SEEN
        if at_the_time == NOT_SEEN:
            self.complain(Wrong.UNDELIVERED, f"{where}: producer, record {unpack(packed)}")
        elif at_the_time != packed:
            self.complain(Wrong.CHANGED, f"{where}: was {unpack(at_the_time)}, is {unpack(packed)}")

    def _place(
        self, found: bytearray, last: dict[int, int], producer: int, sequence: int, where: str
    ) -> None:
        if found[sequence]:
            found[sequence] = 2
            self.complain(Wrong.TWICE, f"{where}: producer {producer}, record {sequence}")
            return
        found[sequence] = 1
        if sequence < last[producer]:
            self.complain(
                Wrong.REORDERED, f"{where}: producer {producer}, record {sequence} after {last[producer]}"
            )
        last[producer] = max(sequence, last[producer])

    def _find_lost(self, partition: int, found: dict[int, bytearray]) -> None:
        for producer, flags in found.items():
            offsets = self._offsets[producer, partition]
            for sequence, flag in enumerate(flags):
                if not flag and offsets[sequence] != NOT_ACKNOWLEDGED:
                    told = offsets[sequence]
                    self.complain(
                        Wrong.LOST,
                        f"partition {partition}: producer {producer}, record {sequence}, told {told}",
                    )
