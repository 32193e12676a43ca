"""Each invariant finds what breaks it, and nothing else."""

import pytest

from simulation.seeds.history import Commits, History, Outcome, Transaction
from simulation.seeds.invariants import FinalLog, broken, offsets_kept, replicas_equal

PLACE = ("orders", 0)
ORDERS_ID = bytes(15) + b"\x01"
A, B, C = b"p1/0/0/", b"p1/0/1/", b"p1/0/2/"


def log_of(*values, committed=None):
    records = dict(enumerate(values))
    return FinalLog(
        [(offset, offset) for offset in records], records, records if committed is None else committed
    )


def history_of(*values, acknowledged=True):
    history = History()
    for offset, value in enumerate(values):
        history.was_sent(PLACE, value)
        if acknowledged:
            history.was_acknowledged(PLACE, value, offset)
    return history


def complaints(history, log):
    return " | ".join(broken(history, {PLACE: log}))


def test_a_run_in_which_all_went_well_breaks_nothing():
    history = history_of(A, B, C)
    history.was_seen(PLACE, 1, B, committed=False)
    assert complaints(history, log_of(A, B, C)) == ""


def test_what_was_acknowledged_must_be_there():
    assert "is lost" in complaints(history_of(A, B, C), log_of(A, B))


def test_what_was_acknowledged_must_be_where_it_was_said_to_be():
    history = history_of(A, B)
    history.acknowledged[PLACE][B] = 0
    assert "acknowledged at offset 0, where" in complaints(history, log_of(A, B))


def test_nothing_is_there_twice():
    assert "is there twice" in complaints(history_of(A, B), log_of(A, B, A))


def test_a_producer_s_records_keep_their_order():
    history = history_of(A, B, acknowledged=False)
    assert "comes after number 1" in complaints(history, log_of(B, A))


def history_alone(*values, acknowledged):
    history = history_of(*values, acknowledged=False)
    history.sent_once.update(values)
    for value, offset in acknowledged.items():
        history.was_acknowledged_alone(PLACE, value, offset)
    return history


def test_what_one_broker_acknowledged_may_be_lost_and_what_it_did_not_may_be_late():
    assert complaints(history_alone(A, B, C, acknowledged={A: 0, C: 1}), log_of(C, B)) != ""
    assert complaints(history_alone(A, B, C, acknowledged={A: 0, B: 1}), log_of(A, C)) == ""
    assert complaints(history_alone(A, B, C, acknowledged={B: 0, C: 1}), log_of(B, C, A)) == ""


def test_what_one_broker_acknowledged_keeps_its_order_and_its_place():
    history = history_alone(A, B, acknowledged={B: 0, A: 1})
    assert "comes after number 1" in complaints(history, log_of(B, A))
    history = history_alone(A, B, acknowledged={A: 0, B: 2})
    assert "acknowledged at offset 2 and is at 1" in complaints(history, log_of(A, B))


def test_offsets_are_dense():
    log = log_of(A, B)
    log.batches = [(0, 0), (2, 2)]
    assert "begins at offset 2" in complaints(history_of(A, B), log)


def test_nothing_is_there_that_was_not_sent():
    assert "never sent" in complaints(history_of(A), log_of(A, B))


def test_what_a_consumer_saw_is_in_the_log():
    history = history_of(A, B)
    history.was_seen(PLACE, 2, C, committed=False)
    assert "a consumer saw" in complaints(history, log_of(A, B))


def test_what_a_committed_reader_saw_was_committed():
    history = history_of(A, B)
    history.was_seen(PLACE, 1, B, committed=True)
    assert "a consumer saw" in complaints(history, log_of(A, B, committed={0: A}))


def test_two_consumers_see_the_same_at_one_offset():
    history = History()
    history.was_seen(PLACE, 3, A, committed=False)
    history.was_seen(PLACE, 3, B, committed=False)
    assert "offset 3 was seen as" in history.violations[0]


@pytest.mark.parametrize(
    ("outcome", "there", "is_broken"),
    [
        (Outcome.COMMITTED, {0: A, 1: B}, False),
        (Outcome.COMMITTED, {0: A}, True),
        (Outcome.ABORTED, {}, False),
        (Outcome.ABORTED, {0: A}, True),
        (Outcome.UNKNOWN, {}, False),
        (Outcome.UNKNOWN, {0: A, 1: B}, False),
        (Outcome.UNKNOWN, {1: B}, True),
    ],
)
def test_transactions_are_there_as_a_whole_or_not_at_all(outcome, there, is_broken):
    history = History()
    history.transactions.append(Transaction("t", [(PLACE, A), (PLACE, B)], outcome))
    assert ("transaction t" in complaints(history, log_of(A, B, committed=there))) is is_broken


def test_an_epoch_has_one_leader():
    history = History()
    history.leads(PLACE, ORDERS_ID, 4, 1)
    history.leads(PLACE, ORDERS_ID, 4, 1)
    history.leads(PLACE, ORDERS_ID, 5, 2)
    assert not history.violations
    history.leads(PLACE, ORDERS_ID, 5, 3)
    assert "both lead in epoch 5" in history.violations[0]


def test_a_group_keeps_what_it_was_told_is_committed():
    history = History()
    key = ("group", "orders", 0)
    history.commits[key] = Commits(acknowledged=10, attempted=12)
    assert not list(offsets_kept(history, {key: 10}))
    assert not list(offsets_kept(history, {key: 12}))
    assert list(offsets_kept(history, {key: 9}))
    assert list(offsets_kept(history, {key: 13}))


def test_replicas_are_equal():
    assert not list(replicas_equal({PLACE: {1: b"abc", 2: b"abc"}}))
    assert list(replicas_equal({PLACE: {1: b"abc", 2: b"abc", 3: b"abd"}}))
