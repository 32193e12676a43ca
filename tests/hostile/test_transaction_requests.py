"""Transactional producers that should not be obeyed: each gets Kafka's error code, and the healthy one goes on.

Where Apache Kafka 4.3.1, asked the same, answers otherwise, a comment says so.
"""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.model.errors import ErrorCode
from penstock.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.hostile.coordinator_client import Transaction, create, end_offset, init, produced
from tests.hostile.raw_client import RawClient, wait_until

E = ErrorCode
LARGEST = 2**31 - 1


@pytest.fixture
def transaction(client: RawClient, name: str) -> Transaction:
    return Transaction(client, name, create(client, name))


def marked(transaction: Transaction, **fields: Any) -> int:
    wanted: dict[str, Any] = {
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.epoch,
        "transaction_result": True,
        "topics": [WritableTxnMarkerTopic(name=transaction.topic, partition_indexes=[0])],
    }
    request = WriteTxnMarkersRequest(markers=[WritableTxnMarker(**(wanted | fields))])
    (marker,) = transaction.client.ask(request, 2).markers
    return int(marker.topics[0].partitions[0].error_code)


def added_offsets(transaction: Transaction, *, version: int = 3, **fields: Any) -> int:
    wanted: dict[str, Any] = {
        "transactional_id": transaction.id,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.epoch,
        "group_id": "some-group",
    }
    return int(transaction.client.ask(AddOffsetsToTxnRequest(**(wanted | fields)), version).error_code)


def sent(
    transaction: Transaction, batch: bytes, *more: bytes, version: int = 11, id: str | None = ""
) -> list[int]:
    transactional_id = transaction.id if id == "" else id
    return produced(
        transaction.client,
        batch,
        *more,
        transactional_id=transactional_id,
        version=version,
        topic=transaction.topic,
    )


WRONG_PRODUCERS: dict[str, tuple[Callable[[Transaction], Any], Any]] = {
    "partitions of unknown topics": (
        lambda t: t.add(("unheard-of", 0), (t.topic, 99), (t.topic, 1)),
        [E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION, E.OPERATION_NOT_ATTEMPTED],
    ),
    "a partition below zero": (lambda t: t.add((t.topic, -1)), [E.UNKNOWN_TOPIC_OR_PARTITION]),
    "the topic of the groups": (
        lambda t: t.add(("__consumer_offsets", 0), (t.topic, 1)),
        [E.TOPIC_AUTHORIZATION_FAILED, E.OPERATION_NOT_ATTEMPTED],
    ),
    "partitions for an unknown id": (
        lambda t: t.add(v3_and_below_transactional_id="unheard of"),
        [E.INVALID_PRODUCER_ID_MAPPING],
    ),
    "partitions for no id": (lambda t: t.add(v3_and_below_transactional_id=""), [E.INVALID_REQUEST]),
    "partitions of another producer": (
        lambda t: t.add(v3_and_below_producer_id=t.producer_id + 1),
        [E.INVALID_PRODUCER_ID_MAPPING],
    ),
    "partitions of a fenced producer": (
        lambda t: t.add(v3_and_below_producer_epoch=t.epoch - 1),
        [E.PRODUCER_FENCED],
    ),
    "partitions of a producer that was fenced long ago": (
        lambda t: t.add(v3_and_below_producer_epoch=t.epoch - 1, version=1),
        [E.INVALID_PRODUCER_EPOCH],
    ),
    "the end of an unknown id": (
        lambda t: t.end(transactional_id="unheard of"),
        E.INVALID_PRODUCER_ID_MAPPING,
    ),
    "the end of no id": (lambda t: t.end(transactional_id=""), E.INVALID_REQUEST),
    "the end by another producer": (
        lambda t: t.end(producer_id=t.producer_id + 1),
        E.INVALID_PRODUCER_ID_MAPPING,
    ),
    "the end by a fenced producer": (lambda t: t.end(producer_epoch=t.epoch - 1), E.PRODUCER_FENCED),
    "the end by a fenced producer of old": (
        lambda t: t.end(producer_epoch=t.epoch - 1, version=1),
        E.INVALID_PRODUCER_EPOCH,
    ),
    "the end by an epoch to come": (
        lambda t: t.end(producer_epoch=t.epoch + 1, version=5),
        E.PRODUCER_FENCED,
    ),
    "a batch without an id": (
        lambda t: sent(t, t.batch(), id=None),
        [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED],
    ),
    "a batch without an id beside a plain one": (
        lambda t: sent(
            t,
            t.batch(producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=False),
            t.batch(),
            id=None,
        ),
        [E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2,
    ),
    "a batch of another producer": (
        lambda t: sent(t, t.batch(producer_id=t.producer_id + 1), version=12),
        [E.INVALID_PRODUCER_ID_MAPPING],
    ),
    "batches of two producers": (
        lambda t: sent(t, t.batch(), t.batch(producer_id=t.producer_id + 1)),
        [E.INVALID_PRODUCER_ID_MAPPING] * 2,
    ),
    "a batch of a fenced producer": (
        lambda t: sent(t, t.batch(producer_epoch=t.epoch - 1), version=12),
        [E.INVALID_PRODUCER_EPOCH],
    ),
    "a batch of an epoch to come": (  # after which Kafka takes no more of the current one
        lambda t: sent(t, t.batch(producer_epoch=t.epoch + 1, base_sequence=0), version=12),
        [E.INVALID_PRODUCER_EPOCH],
    ),
    "a plain batch of the producer": (
        lambda t: sent(t, t.batch(transactional=False)),
        [E.INVALID_TXN_STATE],
    ),
    "offsets of a fenced producer": (
        lambda t: [t.commit_offsets(producer_epoch=t.epoch - 1, version=version) for version in (3, 4, 5)],
        [E.INVALID_PRODUCER_EPOCH] * 3,
    ),
    "offsets of another producer": (
        lambda t: t.commit_offsets(producer_id=t.producer_id + 1, version=5),
        E.INVALID_PRODUCER_ID_MAPPING,
    ),
    "offsets for an unknown id": (
        lambda t: t.commit_offsets(transactional_id="unheard of", version=5),
        E.INVALID_PRODUCER_ID_MAPPING,
    ),
    "offsets for no id": (lambda t: t.commit_offsets(transactional_id=""), E.INVALID_REQUEST),
    "offsets for no group": (lambda t: t.commit_offsets(group_id=""), E.INVALID_GROUP_ID),
    "offsets of a group that was not added": (
        lambda t: [t.commit_offsets(version=3), t.commit_offsets(version=4)],
        [E.INVALID_TXN_STATE, E.TRANSACTION_ABORTABLE],
    ),
    "offsets of an unknown topic": (
        lambda t: [t.commit_offsets(topic="unheard-of"), t.commit_offsets(partition_index=99, version=5)],
        [E.UNKNOWN_TOPIC_OR_PARTITION] * 2,
    ),
    "offsets with too much metadata": (
        lambda t: t.commit_offsets(metadata="x" * 4097, version=5),
        E.OFFSET_METADATA_TOO_LARGE,
    ),
    "offsets of a member that is not there": (
        lambda t: t.commit_offsets(generation_id=3, member_id="stranger", version=5),
        E.ILLEGAL_GENERATION,
    ),
    "a group for an unknown id": (
        lambda t: added_offsets(t, transactional_id="unheard of"),
        E.INVALID_PRODUCER_ID_MAPPING,
    ),
    "a group for no id": (lambda t: added_offsets(t, transactional_id=""), E.INVALID_REQUEST),
    "a group of a fenced producer": (
        lambda t: [
            added_offsets(t, producer_epoch=t.epoch - 1),
            added_offsets(t, producer_epoch=t.epoch - 1, version=1),
        ],
        [E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH],
    ),
    "a marker of version 2 that brings no new epoch": (
        lambda t: marked(t, transaction_version=2),
        E.INVALID_PRODUCER_EPOCH,
    ),
    "a marker for an unknown topic": (
        lambda t: marked(t, topics=[WritableTxnMarkerTopic(name="unheard-of", partition_indexes=[0])]),
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    # Kafka fails to build these two, and answers UNKNOWN_SERVER_ERROR.
    "a marker below the first epoch": (lambda t: marked(t, producer_epoch=-1), E.INVALID_REQUEST),
    "a marker of nobody": (lambda t: marked(t, producer_id=-1), E.INVALID_REQUEST),
    "a take-over with half an identity": (
        lambda t: init(t.client, t.id, producer_id=t.producer_id).error_code,
        E.INVALID_REQUEST,
    ),
    "a take-over of another's identity": (
        lambda t: init(t.client, t.id, producer_id=t.producer_id + 1, producer_epoch=t.epoch).error_code,
        E.PRODUCER_FENCED,
    ),
    "a take-over with absurd timeouts": (
        lambda t: [
            init(t.client, t.id, transaction_timeout_ms=timeout_ms).error_code
            for timeout_ms in (0, -1, -LARGEST - 1, 900_001, LARGEST)
        ],
        [E.INVALID_TRANSACTION_TIMEOUT] * 5,
    ),
    "a producer without an id": (lambda t: init(t.client, "").error_code, E.INVALID_REQUEST),
    "a plain producer with half an identity": (
        lambda t: init(t.client, None, producer_id=5).error_code,
        E.INVALID_REQUEST,
    ),
}


@pytest.mark.parametrize("case", WRONG_PRODUCERS)
def test_a_transaction_is_not_harmed_by(transaction: Transaction, case: str) -> None:
    ask, expected = WRONG_PRODUCERS[case]
    assert ask(transaction) == expected
    assert transaction.is_healthy()


@pytest.mark.parametrize(
    ("version", "code"),
    [(9, E.INVALID_TXN_STATE), (10, E.INVALID_TXN_STATE), (11, E.TRANSACTION_ABORTABLE)],
)
def test_a_batch_for_a_partition_that_was_not_added_is_refused(
    transaction: Transaction, version: int, code: ErrorCode
) -> None:
    good = transaction.batch()
    assert sent(transaction, good, transaction.batch(base_sequence=0), version=version) == [0, code]
    transaction.sequence += 1
    assert transaction.is_healthy()


def test_a_transaction_that_is_not_there_cannot_be_ended(transaction: Transaction) -> None:
    assert transaction.end() == 0
    assert transaction.end() == 0  # again: it is the same
    assert transaction.end(committed=False) == E.INVALID_TXN_STATE
    assert transaction.end(version=5) == E.INVALID_TXN_STATE
    assert transaction.add() == [0]
    assert transaction.is_healthy()


def test_one_that_was_taken_over_can_do_nothing_and_the_other_all(transaction: Transaction) -> None:
    old = transaction
    new = Transaction(old.client, old.id, old.topic)
    assert (new.producer_id, new.epoch) > (old.producer_id, old.epoch)
    assert old.produce(version=11) == [E.INVALID_PRODUCER_EPOCH]
    assert old.produce(version=12) == [E.INVALID_PRODUCER_EPOCH]
    assert old.add() == [E.PRODUCER_FENCED]
    assert old.end() == E.PRODUCER_FENCED
    assert old.end(version=5, committed=False) == E.PRODUCER_FENCED
    assert old.commit_offsets(version=5) == E.INVALID_PRODUCER_EPOCH
    fenced = init(old.client, old.id, producer_id=old.producer_id, producer_epoch=old.epoch)
    assert fenced.error_code == E.PRODUCER_FENCED
    assert new.is_healthy()  # Kafka would have fenced the new one, too, by the last request


def test_a_marker_of_an_old_coordinator_is_refused(transaction: Transaction) -> None:
    assert marked(transaction, coordinator_epoch=-1) == 0  # which no broker sends, and nothing forbids
    assert transaction.end() == 0
    # One record, the marker above, and the coordinator's own with a newer epoch.
    wait_until(lambda: transaction.end_offset() == 3, what="the coordinator's marker")
    assert marked(transaction, coordinator_epoch=-1) == E.TRANSACTION_COORDINATOR_FENCED
    assert transaction.end_offset() == 3
    assert transaction.add() == [0]
    assert transaction.is_healthy()


def test_a_marker_that_comes_twice_is_harmless(transaction: Transaction) -> None:
    assert transaction.commit_offsets(version=5) == 0
    assert transaction.end(version=5) == 0
    transaction.epoch += 1
    transaction.sequence = 0
    for _ in range(2):
        assert marked(transaction, transaction_version=2, transaction_result=False) == 0
        assert marked(transaction, transaction_version=2) == 0
    assert transaction.becomes_decided()
    assert transaction.add() == [0]
    assert transaction.is_healthy()


def test_a_topic_that_is_deleted_and_made_again_in_a_transaction_does_not_hold_it_up(
    client: RawClient, transaction: Transaction, name: str
) -> None:
    topic = create(client, f"again-{name}", partitions=1)
    assert transaction.add((topic, 0)) == [0]
    first = transaction.batch(base_sequence=0)
    wait_until(
        lambda: produced(client, first, transactional_id=name, version=11, topic=topic) == [0],
        what="a leader of the topic",
    )
    deleting = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=5000)
    assert client.ask(deleting, 6).responses[0].error_code == 0
    create(client, topic, partitions=1)
    wait_until(
        lambda: produced(client, first, transactional_id=name, version=11, topic=topic) == [0],
        what="a leader of the new topic",
    )
    assert transaction.is_healthy()
    assert end_offset(client, topic, isolation_level=1) == end_offset(client, topic, isolation_level=0) == 2
