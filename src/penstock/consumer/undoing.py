"""What of the handled records must be undone when partitions are taken away before their offsets are committed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.consumer.handling import Unit
from penstock.consumer.record import Record


def without_lost(units: Sequence[Unit], owns: Callable[[Record], bool]) -> tuple[list[Unit], list[Record]]:
    """(the units that can be settled, the records that must be handled again, in the order of their offsets).

    A unit with a record that is not ours any more is undone; its other records are handled again, and with them all that is
    behind them in their partitions, because an offset stands for everything before it. Example: a batch of p0:0, p0:1 and
    p1:0 and a dead letter of p0:2 were handled, and p1 is taken away. To commit the dead letter's offset 3 would pass over
    p0:0 and p0:1, so it is undone as well.
    """
    kept = list(units)
    again: list[Record] = []
    first_again: dict[tuple[str, int], int] = {}
    while True:
        undone = [
            unit
            for unit in kept
            if not all(map(owns, unit.records))
            or any(record.offset > first_again.get(record.place, record.offset) for record in unit.records)
        ]
        if not undone:
            break
        kept = [unit for unit in kept if unit not in undone]
        for record in (record for unit in undone for record in unit.records if owns(record)):
            again.append(record)
            first_again[record.place] = min(record.offset, first_again.get(record.place, record.offset))
    again.sort(key=lambda record: record.offset)
    return kept, again
