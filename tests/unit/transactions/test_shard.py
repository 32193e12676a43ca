"""What transcripts do not say about a TransactionShard."""

import pytest

from penstock.coordination.form import RequestContext, Shard, Ticket
from penstock.model.errors import ErrorCode
from penstock.transactions.options import TransactionOptions
from penstock.transactions.records import write_key, write_value
from penstock.transactions.shard import TransactionShard
from penstock.transactions.state import CLIENT_EPOCH_MAX, TransactionMetadata, TransactionState, move
from penstock.transactions.timeouts import EXPIRE_AGAIN_MS, EXPIRE_ALARM, EXPIRED_AT_ONCE_MAX
from penstock.wire.messages.end_txn import EndTxnRequest
from tests.unit.transactions.harness import Harness

LAST_EPOCH = TransactionMetadata(7, CLIENT_EPOCH_MAX, 60_000, TransactionState.EMPTY, frozenset(), 0)


def test_it_has_the_form_of_a_coordinator() -> None:
    shard: Shard = TransactionShard(options=TransactionOptions(), partition_index=3)
    assert shard.on_unload().replies == []


def test_an_end_that_needs_a_producer_id_changes_nothing_before_it_has_one() -> None:
    harness = Harness()
    harness.log.append((write_key("tx"), write_value(LAST_EPOCH, version=1)))
    harness.restart()
    harness.add("tx", (7, CLIENT_EPOCH_MAX), 0)
    before = harness.state_of("tx")
    request = EndTxnRequest(
        transactional_id="tx", producer_id=7, producer_epoch=CLIENT_EPOCH_MAX, committed=True
    )
    context = RequestContext(5, "client", "/127.0.0.1")
    assert harness.shard.end_transaction(request, context, Ticket(99), 0, spare_producer_id=None) is None
    assert harness.state_of("tx") == before
    outcome = harness.shard.end_transaction(request, context, Ticket(99), 0, spare_producer_id=8)
    assert outcome is not None
    assert len(outcome.records) == len(outcome.replies) == len(outcome.errands) == 1


def test_a_refused_end_needs_no_producer_id() -> None:
    harness = Harness()
    harness.log.append((write_key("tx"), write_value(LAST_EPOCH, version=1)))
    harness.restart()
    spare = next(harness.producer_ids)
    answer = harness.end("tx", (7, CLIENT_EPOCH_MAX), committed=True)
    assert answer.error_code == ErrorCode.INVALID_TXN_STATE
    assert next(harness.producer_ids) == spare + 1


def test_ids_without_number_are_forgotten_piece_by_piece() -> None:
    harness = Harness(TransactionOptions(transactional_id_expiration_ms=1_000))
    count = EXPIRED_AT_ONCE_MAX + 1
    old = LAST_EPOCH._replace(producer_epoch=0)
    harness.log += [(write_key(f"tx-{index}"), write_value(old, version=1)) for index in range(count)]
    harness.restart()
    harness.now_ms = 5_000
    first = harness.do(harness.shard.on_alarm(EXPIRE_ALARM, 5_000))
    assert len(first.records) == EXPIRED_AT_ONCE_MAX
    assert first.alarms == [(EXPIRE_ALARM, 5_000 + EXPIRE_AGAIN_MS)]
    second = harness.do(harness.shard.on_alarm(EXPIRE_ALARM, 5_000 + EXPIRE_AGAIN_MS))
    assert len(second.records) == 1
    assert harness.shard.hard_state() == {}


def test_a_record_of_another_type_is_passed_over() -> None:
    shard = TransactionShard(options=TransactionOptions(), partition_index=0)
    shard.replay(b"\0\5whatever", b"")
    assert shard.hard_state() == {}


def test_a_damaged_record_is_said_to_be_one_and_changes_nothing() -> None:
    shard = TransactionShard(options=TransactionOptions(), partition_index=0)
    shard.replay(write_key("tx"), write_value(LAST_EPOCH, version=1))
    with pytest.raises(ValueError, match="ends too early"):
        shard.replay(write_key("tx"), b"\0\1\0")
    assert shard.hard_state() == {"tx": LAST_EPOCH}


def test_a_marker_in_its_own_partition_means_nothing() -> None:
    shard = TransactionShard(options=TransactionOptions(), partition_index=0)
    shard.replay(write_key("tx"), write_value(LAST_EPOCH, version=1))
    shard.replay_marker(7, committed=True)
    assert shard.hard_state() == {"tx": LAST_EPOCH}


def test_a_step_that_the_table_does_not_know_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="from Empty to CompleteCommit"):
        move(LAST_EPOCH, TransactionState.COMPLETE_COMMIT)


def test_an_alarm_of_an_unknown_kind_is_harmless() -> None:
    harness = Harness()
    outcome = harness.shard.on_alarm(("another", "tx"), 0)
    assert not any((outcome.records, outcome.replies, outcome.alarms, outcome.errands))


def test_an_errand_of_the_transaction_before_does_not_complete_one_that_is_like_it() -> None:
    harness = Harness()
    told = harness.init("tx")
    known = (told.producer_id, told.producer_epoch)
    for now_ms in (1_000, 2_000):
        harness.write_markers()
        harness.now_ms = now_ms
        harness.add("tx", known, 0, version=3)
        harness.end("tx", known, committed=True, version=4)
    first, second = harness.errands
    assert first._replace(decided_ms=0) == second._replace(decided_ms=0)
    assert harness.shard.markers_written(first, 3_000).records == []
    assert len(harness.shard.markers_written(second, 3_000).records) == 1
