"""The checker of the fault run finds what it is there to find, and the plan of faults is what its seed says."""

from itertools import islice

import pytest

from penstock.testing.chaos.ledger import Ledger, Wrong, encode
from penstock.testing.chaos.plan import Fault, FaultKind, Step, steps


def ledger_of(*offsets: int | None) -> Ledger:
    """Producer 1 has sent so many records to partition 0; None for one that was not acknowledged."""
    ledger = Ledger()
    for offset in offsets:
        sequence = ledger.next_sequence(1, 0)
        ledger.sent(1, 0)
        if offset is not None:
            ledger.acknowledged(1, 0, sequence=sequence, offset=offset)
    return ledger


def found_wrong(ledger: Ledger, *sequences: int, delivered: bool = True) -> dict[Wrong, int]:
    """What the ledger says of a partition that holds these records."""
    records = [(offset, encode(1, sequence)) for offset, sequence in enumerate(sequences)]
    if delivered:
        for offset, value in records:
            ledger.consumed(0, offset, value)
    ledger.check(0, records)
    return dict(ledger.wrong)


def test_a_log_that_holds_what_was_acknowledged_is_right() -> None:
    assert found_wrong(ledger_of(0, 1, 2), 0, 1, 2) == {}


def test_a_record_that_was_not_acknowledged_may_be_there_or_not() -> None:
    assert found_wrong(ledger_of(0, 1, None), 0, 1) == {}
    assert found_wrong(ledger_of(0, 1, None), 0, 1, 2) == {}


def test_an_acknowledged_record_that_is_not_there_is_lost() -> None:
    assert found_wrong(ledger_of(0, 1, 2), 0, 1) == {Wrong.LOST: 1}


def test_a_record_may_be_there_once_only() -> None:
    assert found_wrong(ledger_of(0, 1), 0, 1, 1) == {Wrong.TWICE: 1}


def test_records_of_a_producer_stay_in_order() -> None:
    assert found_wrong(ledger_of(1, 0), 1, 0) == {Wrong.REORDERED: 1}


def test_records_of_two_producers_may_mix() -> None:
    ledger = ledger_of(0, 2)
    ledger.next_sequence(2, 0)
    ledger.sent(2, 0)
    ledger.acknowledged(2, 0, sequence=0, offset=1)
    records = [(0, encode(1, 0)), (1, encode(2, 0)), (2, encode(1, 1))]
    for offset, value in records:
        ledger.consumed(0, offset, value)
    ledger.check(0, records)
    assert dict(ledger.wrong) == {}


def test_a_record_is_where_the_producer_was_told() -> None:
    assert found_wrong(ledger_of(0, 7), 0, 1) == {Wrong.MISPLACED: 1}


def test_a_producer_that_was_not_told_where_is_content_with_any_offset() -> None:
    assert found_wrong(ledger_of(0, -1001), 0, 1) == {}


def test_offsets_have_no_gaps() -> None:
    ledger = ledger_of(0, 2)
    records = [(0, encode(1, 0)), (2, encode(1, 1))]
    for offset, value in records:
        ledger.consumed(0, offset, value)
    ledger.check(0, records)
    assert dict(ledger.wrong) == {Wrong.GAP: 1}


def test_what_a_consumer_saw_is_still_there_in_the_end() -> None:
    ledger = ledger_of(0, None, None)
    ledger.consumed(0, 0, encode(1, 0))
    ledger.consumed(0, 1, encode(1, 1))
    ledger.check(0, [(0, encode(1, 0)), (1, encode(1, 2))])
    assert ledger.wrong[Wrong.CHANGED] == 1


def test_what_a_consumer_saw_past_the_end_is_noticed() -> None:
    ledger = ledger_of(0, None)
    ledger.consumed(0, 0, encode(1, 0))
    ledger.consumed(0, 1, encode(1, 1))
    ledger.check(0, [(0, encode(1, 0))])
    assert dict(ledger.wrong) == {Wrong.CHANGED: 1}


def test_a_record_that_no_consumer_got_is_noticed() -> None:
    assert found_wrong(ledger_of(0), 0, delivered=False) == {Wrong.UNDELIVERED: 1}


def test_a_record_that_nobody_sent_is_noticed() -> None:
    assert found_wrong(ledger_of(0), 0, 1) == {Wrong.STRANGE: 1}


def test_examples_are_few_however_much_is_wrong() -> None:
    ledger = ledger_of(*range(1000))
    assert found_wrong(ledger) == {Wrong.LOST: 1000}
    assert len(ledger.examples) == 5


def plan(seed: int, *, severe: bool = False) -> list[Step]:
    return list(islice(steps(seed, broker_ids=(1, 2, 3), session_timeout_s=6, severe=severe), 200))


def of_brokers(step: Step) -> list[Fault]:
    return [fault for fault in step.faults if fault.broker_id is not None]


def test_a_seed_gives_the_same_faults_again() -> None:
    assert plan(7) == plan(7)
    assert plan(7) != plan(8)


def test_one_broker_at_a_time_unless_it_is_to_be_severe() -> None:
    assert max(len(of_brokers(step)) for step in plan(1)) == 1
    assert max(len(of_brokers(step)) for step in plan(1, severe=True)) == 3


@pytest.mark.parametrize("kind", FaultKind)
def test_every_kind_of_fault_comes(kind: FaultKind) -> None:
    assert any(fault.kind is kind for step in plan(3) for fault in step.faults)


def test_pauses_are_shorter_or_longer_than_a_session() -> None:
    lasting = [(fault.kind, fault.lasts_s) for step in plan(5) for fault in step.faults]
    assert all(lasts_s < 6 for kind, lasts_s in lasting if kind is FaultKind.SHORT_PAUSE)
    assert all(lasts_s > 6 for kind, lasts_s in lasting if kind is FaultKind.LONG_PAUSE)
