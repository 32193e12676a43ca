import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import BatchHeader
from penstock.storage.producer_state import CorruptSnapshot, ProducerState
from tests.unit.storage.batches import NOW_MS, make_batch

LAST = 2**31 - 1


def header(
    base_sequence: int, count: int = 1, *, producer_id: int = 7, epoch: int = 0, timestamp: int = NOW_MS
) -> BatchHeader:
    return make_batch(
        count, producer_id=producer_id, producer_epoch=epoch, base_sequence=base_sequence, timestamp=timestamp
    )[1]


def refusal(state: ProducerState, batch: BatchHeader) -> ErrorCode:
    with pytest.raises(ApiError) as error:
        state.check(batch)
    return error.value.code


def produced(*sequences: int, count: int = 1, epoch: int = 0) -> ProducerState:
    state = ProducerState()
    for number, sequence in enumerate(sequences):
        state.update(header(sequence, count, epoch=epoch), 100 + number * count)
    return state


def test_an_unknown_producer_may_start_anywhere() -> None:
    assert ProducerState().check(header(55)) is None


def test_the_next_sequence_is_accepted() -> None:
    assert produced(0, 3, count=3).check(header(6)) is None


@pytest.mark.parametrize("number", range(5))
def test_each_of_the_last_five_batches_is_recognised_as_a_retry(number: int) -> None:
    state = produced(*range(0, 18, 3), count=3)
    assert state.check(header(3 * (number + 1), 3)) == (103 + 3 * number, NOW_MS)


def test_a_sixth_batch_back_is_out_of_order() -> None:
    assert (
        refusal(produced(*range(0, 18, 3), count=3), header(0, 3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


@pytest.mark.parametrize("sequence", [0, 2, 4, 7])
def test_a_gap_or_another_cut_is_out_of_order(sequence: int) -> None:
    state = produced(0, 3, count=3)
    assert refusal(state, header(sequence, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    state = ProducerState()
    state.update(header(LAST - 1, 2), 0)
    assert state.check(header(0)) is None
    assert refusal(state, header(1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(header(LAST - 1, 2)) == (0, NOW_MS)


def test_a_batch_across_the_wrap_is_followed_by_what_is_left() -> None:
    state = ProducerState()
    state.update(header(LAST, 3), 0)
    assert state.check(header(2)) is None
    assert state.check(header(LAST, 3)) == (0, NOW_MS)


def test_an_older_epoch_is_fenced() -> None:
    assert refusal(produced(0, epoch=3), header(1, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_newer_epoch_starts_at_zero() -> None:
    state = produced(0, epoch=3)
    assert refusal(state, header(1, epoch=4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(header(0, epoch=4)) is None
    state.update(header(0, epoch=4), 200)
    assert state.check(header(0, epoch=4)) == (200, NOW_MS)
    assert state.check(header(1, epoch=4)) is None


def test_an_ordinary_batch_inside_a_transaction_is_refused() -> None:
    state = ProducerState()
    state.update(make_batch(1, producer_id=7, transactional=True)[1], 50)
    assert state.first_undecided_offset == 50
    assert refusal(state, header(1)) == ErrorCode.INVALID_TXN_STATE


def test_idle_producers_are_forgotten_but_not_inside_a_transaction() -> None:
    state = ProducerState()
    state.update(header(0, producer_id=1, timestamp=NOW_MS - 1000), 0)
    state.update(header(0, producer_id=2, timestamp=NOW_MS - 999), 1)
    open_transaction = make_batch(1, producer_id=3, timestamp=0, transactional=True)[1]
    state.update(open_transaction, 2)
    assert state.expire(now_ms=NOW_MS, expiration_ms=1000) == 1
    assert [producer in state for producer in (1, 2, 3)] == [False, True, True]


def test_a_snapshot_has_kafkas_bytes() -> None:
    state = ProducerState()
    state.update(header(10, 5, producer_id=9, epoch=2), 1000)
    data = state.snapshot()
    assert data[:2] == b"\x00\x01"
    assert data[6:].hex() == (
        "00000001"  # entries
        "0000000000000009" "0002"  # producer id and epoch
        "0000000e" "00000000000003ec" "00000004"  # last sequence 14, last offset 1004, offset delta 4
        "0000018bcfe56800" "ffffffff" "ffffffffffffffff"  # timestamp, coordinator epoch, no transaction
    )  # fmt: skip


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, LAST), st.integers(1, 9)), max_size=20
    )
)
def test_a_snapshot_remembers_the_last_batch_of_each_producer(
    batches: list[tuple[int, int, int, int]],
) -> None:
    state = ProducerState()
    last = {}
    for number, (producer_id, epoch, sequence, count) in enumerate(batches):
        batch = header(sequence, count, producer_id=producer_id, epoch=epoch)
        state.update(batch, number * 10)
        last[producer_id] = (batch, number * 10)
    restored = ProducerState()
    restored.load_snapshot(state.snapshot())
    assert len(restored) == len(last)
    for batch, offset in last.values():
        following = header(
            (batch.last_sequence + 1) & LAST, producer_id=batch.producer_id, epoch=batch.producer_epoch
        )
        assert restored.check(batch) == (offset, NOW_MS)
        assert restored.check(following) is None
    assert restored.snapshot() == state.snapshot()


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-1], lambda data: data + b"\x00"])
def test_a_damaged_snapshot_is_refused_and_leaves_no_state(damage) -> None:  # type: ignore[no-untyped-def]
    state = produced(0)
    with pytest.raises(CorruptSnapshot):
        state.load_snapshot(damage(state.snapshot()))
    assert len(state) == 0
