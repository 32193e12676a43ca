"""The checker of the fault run finds what it is there to find, and the plan of faults is what its seed says."""

from itertools import islice

import pytest
from confluent_kafka import KafkaError, Message

from simulation.chaos.ledger import Ledger, Wrong, encode
from simulation.chaos.load import note_delivery, note_message
from simulation.chaos.plan import Fault, FaultKind, Step, steps
from simulation.chaos.reading import Reading
from simulation.chaos.run import MAX_RECORDS, Settings


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


def deliver(ledger: Ledger, *, offset: int, error: KafkaError | None = None) -> None:
    """The next record of producer 1 is sent, and its answer comes."""
    sequence = ledger.next_sequence(1, 0)
    ledger.sent(1, 0)
    note_delivery(ledger, 1, 0, sequence, error, Message(offset=offset))


def test_a_record_that_was_acknowledged_without_an_offset_can_be_lost_too() -> None:
    ledger = Ledger()
    deliver(ledger, offset=0)
    deliver(ledger, offset=-1)
    assert found_wrong(ledger, 0) == {Wrong.LOST: 1}
    assert ledger.acknowledged_count == 2


def test_every_record_is_acknowledged_or_refused_in_the_end() -> None:
    ledger = Ledger()
    deliver(ledger, offset=0)
    deliver(ledger, offset=-1001)
    deliver(ledger, offset=-1001, error=KafkaError(KafkaError.INVALID_RECORD))
    ledger.check_answers()
    assert dict(ledger.wrong) == {Wrong.REFUSED: 1}


def test_records_without_an_answer_are_noticed() -> None:
    ledger = ledger_of(0, None, None)
    ledger.check_answers()
    assert dict(ledger.wrong) == {Wrong.STUCK: 2}


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


def read(reading: Reading, *offsets: int) -> None:
    for offset in offsets:
        reading.consumed(0, offset, encode(1, offset))


def test_a_consumer_that_goes_back_without_a_new_assignment_was_thrown_back() -> None:
    ledger = ledger_of(0, 1, 2)
    reading = Reading("consumer", ledger)
    reading.assigned([0])
    read(reading, 0, 1, 2, 0, 1, 2)
    assert dict(ledger.wrong) == {Wrong.WENT_BACK: 1}


def test_what_was_read_and_not_committed_may_come_again_with_a_new_assignment() -> None:
    ledger = ledger_of(0, 1, 2)
    first, second = Reading("first", ledger), Reading("second", ledger)
    first.assigned([0])
    read(first, 0, 1, 2)
    ledger.committed(0, 1, by="first")
    first.revoked([0])
    second.assigned([0])
    read(second, 1, 2)
    first.assigned([0])
    read(first, 1, 2)
    assert dict(ledger.wrong) == {}


def test_what_was_committed_does_not_come_again() -> None:
    ledger = ledger_of(0, 1, 2)
    first, second = Reading("first", ledger), Reading("second", ledger)
    first.assigned([0])
    read(first, 0, 1, 2)
    ledger.committed(0, 3, by="first")
    ledger.committed(0, 2, by="third")  # of another member, that is told late
    second.assigned([0])
    read(second, 2)
    assert dict(ledger.wrong) == {Wrong.WENT_BACK: 1}


def test_a_client_that_commits_an_older_offset_last_goes_back_by_itself() -> None:
    ledger = ledger_of(0, 1, 2)
    reading = Reading("consumer", ledger)
    reading.assigned([0])
    read(reading, 0, 1, 2)
    ledger.committed(0, 3, by="consumer")
    ledger.committed(0, 1, by="consumer")
    reading.assigned([0])
    read(reading, 1, 2)
    assert dict(ledger.wrong) == {}


def test_a_commit_after_the_assignment_says_nothing_of_where_it_begins() -> None:
    ledger = ledger_of(0, 1, 2)
    late = Reading("late", ledger)
    late.assigned([0])
    ledger.committed(0, 3, by="other")  # of the member that has the partition by now
    read(late, 0, 1, 2)
    assert dict(ledger.wrong) == {}


def test_records_that_come_while_their_partition_is_taken_away_are_not_of_the_next_assignment() -> None:
    ledger = ledger_of(0, 1, 2)
    reading = Reading("consumer", ledger)
    reading.assigned([0])
    reading.revoked([0])
    read(reading, 1, 2)
    reading.assigned([0])
    read(reading, 0, 1, 2)
    assert dict(ledger.wrong) == {}


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        (KafkaError._AUTO_OFFSET_RESET, {Wrong.CONSUMER_ERROR: 1}),
        (KafkaError.OFFSET_OUT_OF_RANGE, {Wrong.CONSUMER_ERROR: 1}),
        (KafkaError._LOG_TRUNCATION, {Wrong.CONSUMER_ERROR: 1}),
        (KafkaError._BAD_MSG, {Wrong.CONSUMER_ERROR: 1}),
        (KafkaError._ALL_BROKERS_DOWN, {}),
        (KafkaError.NOT_COORDINATOR, {}),
    ],
)
def test_errors_of_consumers_count_unless_they_pass(code: int, wrong: dict[Wrong, int]) -> None:
    ledger = Ledger()
    note_message(ledger, Reading("consumer", ledger), Message(partition=0, error=KafkaError(code)))
    assert dict(ledger.wrong) == wrong


def test_a_long_run_has_no_more_records_than_the_ledger_has_room_for() -> None:
    for seconds in (60.0, 600.0, 36_000.0):
        settings = Settings(seconds=seconds, seed=1)
        assert settings.highest_rate * seconds < MAX_RECORDS
    assert Settings(seconds=600, seed=1, rate=1_000).highest_rate == 1_000


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
