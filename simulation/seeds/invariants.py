"""What must be true after a run, whatever went wrong during it.

Nothing acknowledged is lost, with acks=1 nothing that a broker acknowledged which was no member of its cluster; no record is
twice in a log; each producer's records keep their order; offsets are dense; what a consumer saw is in the log where it saw it; a
committed transaction is there as a whole, an aborted one is not seen; the replicas of a partition are equal up to the high
watermark; a group finds at least what it was told is committed. That one broker leads in an epoch, and that nothing is seen in
two ways, `History` notices at once.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from simulation.seeds.history import History, Outcome, Place


@dataclass
class FinalLog:
    """A partition as it is read from its leader in the end, when all is well again."""

    batches: list[tuple[int, int]] = field(default_factory=list)
    """First and last offset of each batch, markers included."""
    records: dict[int, bytes] = field(default_factory=dict)
    committed: dict[int, bytes] = field(default_factory=dict)
    """As a reader with read_committed sees them."""


def broken(history: History, logs: dict[Place, FinalLog]) -> Iterator[str]:
    """One line for each thing that is wrong, of each kind the first few."""
    for place, log in logs.items():
        name = f"{place[0]}-{place[1]}"
        for text in _of_one_log(history, place, log):
            yield f"{name}: {text}"
    yield from transactions(history, logs)


def _of_one_log(history: History, place: Place, log: FinalLog) -> Iterator[str]:
    yield from acknowledged_are_there(history.acknowledged.get(place, {}), log)
    yield from none_twice(log)
    yield from in_order(log, unordered=history.sent_once - history.acknowledged_alone.get(place, {}).keys())
    yield from alone_where_told(history.acknowledged_alone.get(place, {}), log)
    yield from dense(log)
    yield from only_what_was_sent(history, place, log)
    yield from seen_is_there(history.seen.get(place, {}), log.records)
    yield from seen_is_there(history.seen_committed.get(place, {}), log.committed)


def acknowledged_are_there(acknowledged: dict[bytes, int], log: FinalLog) -> Iterator[str]:
    values = set(log.records.values())
    for value, offset in acknowledged.items():
        if value not in values:
            yield f"{_short(value)} was acknowledged at offset {offset} and is lost"
        elif offset >= 0 and log.records.get(offset) != value:
            yield f"{_short(value)} was acknowledged at offset {offset}, where {_short(log.records.get(offset))} is"


def none_twice(log: FinalLog) -> Iterator[str]:
    first: dict[bytes, int] = {}
    for offset, value in log.records.items():
        before = first.setdefault(value, offset)
        if before != offset:
            yield f"{_short(value)} is there twice, at {before} and {offset}"


def in_order(log: FinalLog, *, unordered: Set[bytes] = frozenset()) -> Iterator[str]:
    """A value is `producer/partition/number/…`; transactional producers put the transaction into their name. `unordered`: what
    was sent once and not acknowledged, which may come at any time, or not at all.
    """
    last: dict[bytes, int] = {}
    for offset in sorted(log.records):
        if log.records[offset] in unordered:
            continue
        producer, _, number = log.records[offset].split(b"/")[:3]
        if int(number) < last.get(producer, -1):
            yield f"{_short(log.records[offset])} at offset {offset} comes after number {last[producer]}"
        last[producer] = int(number)


def alone_where_told(acknowledged: dict[bytes, int], log: FinalLog) -> Iterator[str]:
    """What one broker acknowledged may be lost with it; it is not moved."""
    offsets = {value: offset for offset, value in log.records.items() if value in acknowledged}
    for value, offset in offsets.items():
        if offset != acknowledged[value]:
            yield f"{_short(value)} was acknowledged at offset {acknowledged[value]} and is at {offset}"


def dense(log: FinalLog) -> Iterator[str]:
    end = log.batches[0][0] if log.batches else 0
    for first, last in log.batches:
        if first != end:
            yield f"a batch begins at offset {first}, and the one before it ended at {end}"
        end = last + 1


def only_what_was_sent(history: History, place: Place, log: FinalLog) -> Iterator[str]:
    sent = set(history.sent.get(place, ()))
    for transaction in history.transactions:
        sent.update(value for where, value in transaction.records if where == place)
    for offset, value in log.records.items():
        if value not in sent:
            yield f"{_short(value)} at offset {offset} was never sent"


def seen_is_there(seen: dict[int, bytes], records: dict[int, bytes]) -> Iterator[str]:
    for offset, value in seen.items():
        if records.get(offset) != value:
            yield (
                f"a consumer saw {_short(value)} at offset {offset}, where {_short(records.get(offset))} is in the end"
            )


def transactions(history: History, logs: dict[Place, FinalLog]) -> Iterator[str]:
    there = {place: set(log.committed.values()) for place, log in logs.items()}
    for transaction in history.transactions:
        found = [value in there.get(place, ()) for place, value in transaction.records]
        text = f"transaction {transaction.name} ({transaction.outcome.value}, {len(found)} records)"
        if transaction.outcome is Outcome.COMMITTED and not all(found):
            yield f"{text}: only {sum(found)} are there"
        elif transaction.outcome is Outcome.ABORTED and any(found):
            yield f"{text}: {sum(found)} are there"
        elif transaction.outcome is Outcome.UNKNOWN and any(found) and not all(found):
            yield f"{text}: {sum(found)} are there, not all and not none"


def offsets_kept(history: History, found: dict[tuple[str, str, int], int]) -> Iterator[str]:
    for key, offset in found.items():
        commits = history.commits[key]
        if not commits.acknowledged <= offset <= max(commits.attempted, -1):
            yield (
                f"group {key[0]}: {key[1]}-{key[2]} is at {offset}, although {commits.acknowledged} was acknowledged "
                f"and {commits.attempted} was the highest that was tried"
            )


def replicas_equal(copies: dict[Place, dict[int, bytes]]) -> Iterator[str]:
    """`copies`: the bytes of each broker's log of a partition up to the high watermark."""
    for place, by_broker in copies.items():
        brokers = sorted(by_broker)
        for broker in brokers[1:]:
            if by_broker[broker] != by_broker[brokers[0]]:
                yield (
                    f"{place[0]}-{place[1]}: the logs of brokers {brokers[0]} and {broker} differ "
                    f"({len(by_broker[brokers[0]])} and {len(by_broker[broker])} bytes)"
                )


def _short(value: bytes | None) -> str:
    return "nothing" if value is None else repr(value[:40])[1:]
