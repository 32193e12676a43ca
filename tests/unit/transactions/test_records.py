"""The records of `__transaction_state`, against bytes that Apache Kafka 4.3.1 has written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.ids import TopicPartition
from penstock.transactions.records import RECORDED, read_key, read_value, write_key, write_value
from penstock.transactions.state import TransactionMetadata, TransactionState

FIRST, THIRD = TopicPartition("orders", 0), TopicPartition("orders", 3)


def metadata(state: TransactionState, *places: TopicPartition, **more: int) -> TransactionMetadata:
    start_ms = -1 if state is TransactionState.EMPTY else 1_700_000_000_000
    return TransactionMetadata(
        7_000_000_001, 12, 60_000, state, frozenset(places), 1_700_000_001_234, start_ms, **more
    )


BY_KAFKA = {
    "empty, version 1": (
        1,
        metadata(TransactionState.EMPTY, previous_producer_id=7_000_000_001),
        "000100000001a13b8601000c0000ea6000000000018bcfe56cd2ffffffffffffffff01000800000001a13b8601",
    ),
    "empty, version 0": (
        0,
        metadata(TransactionState.EMPTY),
        "000000000001a13b8601000c0000ea6000ffffffff0000018bcfe56cd2ffffffffffffffff",
    ),
    "ongoing, version 1": (
        1,
        metadata(
            TransactionState.ONGOING,
            FIRST,
            THIRD,
            previous_producer_id=7_000_000_001,
            client_transaction_version=2,
        ),
        "000100000001a13b8601000c0000ea600102076f7264657273030000000000000003000000018bcfe56cd20000018bcfe56800"
        "02000800000001a13b860102020002",
    ),
    "ongoing, version 0": (
        0,
        metadata(TransactionState.ONGOING, FIRST, THIRD),
        "000000000001a13b8601000c0000ea60010000000100066f72646572730000000200000000000000030000018bcfe56cd2"
        "0000018bcfe56800",
    ),
    "the epochs used up": (
        1,
        metadata(
            TransactionState.PREPARE_COMMIT,
            FIRST,
            previous_producer_id=7_000_000_001,
            next_producer_id=7_000_000_002,
            client_transaction_version=2,
        ),
        "000100000001a13b8601000c0000ea600202076f72646572730200000000000000018bcfe56cd20000018bcfe56800"
        "03000800000001a13b8601010800000001a13b860202020002",
    ),
    "complete": (
        1,
        metadata(TransactionState.COMPLETE_ABORT, previous_producer_id=6),
        "000100000001a13b8601000c0000ea6005010000018bcfe56cd20000018bcfe568000100080000000000000006",
    ),
}


@pytest.mark.parametrize(("version", "known", "text"), BY_KAFKA.values(), ids=BY_KAFKA)
def test_a_value_is_written_as_kafka_writes_it(version: int, known: TransactionMetadata, text: str) -> None:
    assert write_value(known, version=version).hex() == text


@pytest.mark.parametrize(("version", "known", "text"), BY_KAFKA.values(), ids=BY_KAFKA)
def test_a_value_that_kafka_has_written_is_read(version: int, known: TransactionMetadata, text: str) -> None:
    assert read_value(bytes.fromhex(text)) == known


def test_a_key_is_written_as_kafka_writes_it() -> None:
    assert write_key("größe-1").hex() == "000000096772c3b6c39f652d31"


def test_a_key_of_another_type_is_not_ours() -> None:
    assert read_key(b"\0\1\0\1x") is None


def test_tagged_fields_of_a_later_time_are_left_alone() -> None:
    known = metadata(TransactionState.COMPLETE_ABORT)
    written = write_value(known, version=1)
    assert written.endswith(b"\0")
    assert read_value(written[:-1] + b"\2\3\2\0\5\x09\1\7") == known


ids = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
places = st.builds(TopicPartition, ids, st.integers(0, 2**31 - 1))
producer_ids = st.integers(-1, 2**63 - 1)
transactions = st.builds(
    TransactionMetadata,
    producer_ids,
    st.integers(0, 32_767),
    st.integers(1, 2**31 - 1),
    st.sampled_from([state for state in RECORDED.values() if state is not TransactionState.EMPTY]),
    st.frozensets(places, max_size=20),
    st.integers(0, 2**50),
    st.integers(-1, 2**50),
    producer_ids,
    producer_ids,
    st.integers(0, 2),
)


@given(ids)
def test_any_key_is_read_as_it_was_written(transactional_id: str) -> None:
    assert read_key(write_key(transactional_id)) == transactional_id


@given(transactions)
def test_any_value_is_read_as_it_was_written(known: TransactionMetadata) -> None:
    assert read_value(write_value(known, version=1)) == known


@given(transactions)
def test_version_0_keeps_all_but_the_tagged_fields(known: TransactionMetadata) -> None:
    kept = known._replace(previous_producer_id=-1, next_producer_id=-1, client_transaction_version=0)
    assert read_value(write_value(known, version=0)) == kept


@given(transactions, st.integers(0, 1), st.data())
def test_a_record_that_is_cut_short_is_a_value_error(
    known: TransactionMetadata, version: int, data: st.DataObject
) -> None:
    written = write_value(known, version=version)
    cut = data.draw(st.integers(0, len(written) - 1))
    with pytest.raises(ValueError):
        read_value(written[:cut])


@given(st.binary(max_size=120))
def test_noise_is_a_value_error_or_a_transaction(noise: bytes) -> None:
    for read in (read_key, read_value, lambda raw: read_value(b"\0\1" + raw)):
        try:
            read(noise)
        except ValueError:
            pass


@pytest.mark.parametrize("state", [6, 7, 8, -1])
def test_a_state_that_is_never_recorded_is_refused(state: int) -> None:
    written = bytearray(write_value(metadata(TransactionState.EMPTY), version=1))
    written[16] = state & 0xFF
    with pytest.raises(ValueError, match="never recorded"):
        read_value(bytes(written))


def test_a_version_of_a_later_time_is_refused() -> None:
    with pytest.raises(ValueError, match="version 2"):
        read_value(b"\0\2" + write_value(metadata(TransactionState.EMPTY), version=1)[2:])
