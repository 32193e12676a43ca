"""`penstock.arrow.read`: every row of the range once, or an error."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from itertools import pairwise
from typing import Any, Final

from penstock.arrow.scan import read
from penstock.client.errors import ReadFailed
from simulation.liar.act import Act, difference
from simulation.liar.truth import Row, Truth
from simulation.liar.world import Written, numbered

OPTIONS: Final = {"request.timeout.ms": 1000, "default.api.timeout.ms": 3000}
SMALL_TOPIC_RECORDS: Final = 90


def read_tables(act: Act) -> None:
    """Ranges of topics that do not change."""
    topics = act.chance.sample(act.world.library, 2)
    act.begin()
    for _ in range(act.chance.randint(3, 8)):
        _read_once(act, act.chance.choice(topics))


def _read_once(act: Act, topic: Written) -> None:
    chance = act.chance
    isolation = chance.choice(("read_committed", "read_uncommitted"))
    partitions = sorted(chance.sample(range(topic.partitions), chance.randint(1, topic.partitions)))
    start, end = _places(chance, topic.partitions), _places(chance, topic.partitions)
    table = act.attempt(
        lambda: read(
            topic.name,
            "earliest" if start is None else start,
            "latest" if end is None else end,
            partitions=partitions,
            bootstrap=act.liar.bootstrap,
            isolation=isolation,
            columns=["partition", "offset", "value"],
            options=options(chance),
        ),
        ReadFailed,
    )
    there = act.world.truth.rows(topic.name, partitions, committed=isolation == "read_committed")
    expected = [
        row
        for row in there
        if (start is None or row[1] >= start[row[0]]) and (end is None or row[1] < end[row[0]])
    ]
    compare(act, f"{topic.name} {isolation} {start} {end}", rows_of(table), expected)


def _places(chance: random.Random, partitions: int) -> dict[int, int] | None:
    if chance.random() < 0.5:
        return None
    return {partition: chance.randrange(120) for partition in range(partitions)}


def options(chance: random.Random) -> dict[str, str | int]:
    """Small answers most of the time, so that there are many."""
    return {
        **OPTIONS,
        "fetch.max.bytes": chance.choice((1, 1000, 5000, 1 << 20)),
        "max.partition.fetch.bytes": chance.choice((1, 700, 3000, 1 << 20)),
        "fetch.max.wait.ms": chance.choice((0, 20)),
    }


def rows_of(table: Any) -> list[Row]:
    columns = (table.column(name).to_pylist() for name in ("partition", "offset", "value"))
    return list(zip(*columns, strict=True))


def compare(act: Act, what: str, found: list[Row], expected: list[Row]) -> None:
    differs = difference(Counter(found), Counter(expected))
    if differs is not None:
        act.wrong(f"{what}: {differs}")
    for before, after in pairwise(found):
        if before[0] == after[0] and before[1] >= after[1]:
            act.wrong(f"{what}: offset {after[1]} comes after {before[1]}")


def read_while_records_go(act: Act) -> None:
    """The start of the log moves while it is read: the rows before or after it, or an error; never with a gap."""
    chance = act.chance
    topic = Written(act.name, 2)
    act.world.truth.create(topic.name, topic.partitions)
    act.world.fill(topic.name, numbered(topic.name, SMALL_TOPIC_RECORDS, topic.partitions))
    before = act.world.truth.rows(topic.name, range(topic.partitions))
    cut_at = {partition: chance.randrange(1, 40) for partition in range(topic.partitions)}
    delay_s = chance.uniform(0.0, 0.15)
    deleting = threading.Thread(
        target=_delete, args=(act.world.broker.port, topic.name, cut_at, delay_s), daemon=True
    )
    act.begin()
    deleting.start()
    table = act.attempt(
        lambda: read(
            topic.name, bootstrap=act.liar.bootstrap, columns=["partition", "offset", "value"], options=options(chance)
        ),
        ReadFailed,
        may_fail=deleting.is_alive,
    )  # fmt: skip
    deleting.join()
    found = rows_of(table)
    for partition, first in cut_at.items():
        own = [row for row in found if row[0] == partition]
        whole = [row for row in before if row[0] == partition]
        if own not in (whole, [row for row in whole if row[1] >= first]):
            act.wrong(f"{topic.name}-{partition} has a gap: {len(own)} of {len(whole)} rows, cut at {first}")


def _delete(broker_port: int, topic: str, cut_at: dict[int, int], delay_s: float) -> None:
    time.sleep(delay_s)
    truth = Truth(broker_port)
    try:
        for partition, offset in cut_at.items():
            truth.delete_records(topic, partition, offset)
    finally:
        truth.close()
