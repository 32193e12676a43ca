"""Which records belong to which batch of the Spark sink."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.spark.batches import Batches, Plan
from penstock.connect.records import SinkRecord

ONE, TWO = ("t", 0), ("t", 1)


def records(place: tuple[str, int], *offsets: int) -> list[SinkRecord]:
    return [SinkRecord(*place, offset, f"{place[1]}/{offset}") for offset in offsets]


def values(found: list[SinkRecord]) -> list[str]:
    return [record.value for record in found]


def test_a_batch_is_all_that_is_there_and_the_next_one_begins_behind_it() -> None:
    batches = Batches()
    assert batches.cut() is None
    batches.add([*records(ONE, 3, 4, 7), *records(TWO, 0)])
    cut = batches.cut()
    assert cut is not None
    assert cut[0] == Plan(0, {ONE: (3, 8), TWO: (0, 1)}, {ONE: 8, TWO: 1})
    batches.begun(cut[0])
    batches.written(cut[0])
    batches.add(records(ONE, 7, 8))
    cut = batches.cut()
    assert cut is not None
    assert (cut[0].number, values(cut[1])) == (1, ["0/8"]), "what comes again is not written again"


def test_a_batch_that_was_begun_waits_for_all_of_its_records_and_takes_no_others() -> None:
    last = Plan(7, {ONE: (40, 43), TWO: (9, 10)}, {ONE: 43, TWO: 10, ("u", 0): 5})
    batches = Batches(last, is_written=False)
    assert batches.starts([ONE, TWO, ("u", 0), ("v", 0)]) == {ONE: 40, TWO: 9, ("u", 0): 5}
    batches.add(records(ONE, 40, 41, 42, 43))
    assert batches.cut() is None
    batches.add(records(TWO, 9, 10))
    cut = batches.cut()
    assert cut is not None
    assert (cut[0], values(cut[1])) == (last, ["0/40", "0/41", "0/42", "1/9"])
    batches.written(cut[0])
    rest = batches.cut()
    assert rest is not None
    assert (rest[0].number, values(rest[1])) == (8, ["0/43", "1/10"])


def test_records_that_are_gone_from_the_topic_are_not_waited_for() -> None:
    batches = Batches(Plan(1, {ONE: (0, 5)}, {ONE: 5}), is_written=False)
    batches.add(records(ONE, 0, 2))
    assert batches.cut() is None
    batches.seen({ONE: 5})
    cut = batches.cut()
    assert cut is not None
    assert values(cut[1]) == ["0/0", "0/2"]


def test_a_partition_that_goes_away_takes_its_records_along() -> None:
    batches = Batches()
    batches.add([*records(ONE, 0), *records(TWO, 0)])
    batches.forget([ONE])
    cut = batches.cut()
    assert cut is not None
    assert values(cut[1]) == ["1/0"]
    batches.add(records(ONE, 0))
    assert len(batches) == 2, "and they can come again"


def test_a_plan_is_the_same_when_it_is_read_again() -> None:
    plan = Plan(3, {ONE: (1, 2)}, {ONE: 2, TWO: 4})
    assert Plan.from_json(plan.to_json()) == plan


@given(st.data())
def test_every_record_is_in_one_batch_whatever_crashes(data: st.DataObject) -> None:
    """A target keeps a batch by its number, as a folder does."""
    logs = {place: records(place, *range(data.draw(st.integers(0, 12)))) for place in (ONE, TWO)}
    target: dict[int, list[str]] = {}
    last, is_written = None, True
    for _ in range(data.draw(st.integers(1, 6))):
        batches = Batches(last, is_written=is_written)
        starts = {**dict.fromkeys(logs, 0), **batches.starts(list(logs))}
        coming = [record for place, log in logs.items() for record in log[starts[place] :]]
        while coming:
            count = data.draw(st.integers(1, len(coming)))
            batches.add(coming[:count])
            coming = coming[count:]
            cut = batches.cut() if data.draw(st.booleans()) else None
            if cut is None:
                continue
            last, is_written = cut[0], False
            batches.begun(cut[0])
            if data.draw(st.booleans()):
                break  # before it is written
            target[cut[0].number] = values(cut[1])
            if data.draw(st.booleans()):
                break  # before it is marked
            is_written = True
            batches.written(cut[0])
    batches = Batches(last, is_written=is_written)
    starts = {**dict.fromkeys(logs, 0), **batches.starts(list(logs))}
    batches.add([record for place, log in logs.items() for record in log[starts[place] :]])
    while (cut := batches.cut()) is not None:
        target[cut[0].number] = values(cut[1])
        batches.written(cut[0])
    written = [value for batch in target.values() for value in batch]
    assert sorted(written) == sorted(record.value for log in logs.values() for record in log)
