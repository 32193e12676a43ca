from typing import Any

import pytest

from penstock.controller.brokers import broker_lost
from penstock.controller.decision import Decision, chunks
from penstock.controller.reassignments import alter
from penstock.controller.topics import TopicDefaults, create_topics, delete_topics, marked_for_deletion
from penstock.metadata.image import Change, ClusterImage, PartitionRegistration, TopicCreated, TopicDeleted
from penstock.metadata.tree import Create, Delete, Set, TreeOp
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest
from tests.unit.controller.clusters import cluster

MANY_BYTES = 1_000_000


def pieces(
    decision: Decision[Any], *, max_ops: int = 10_000, max_bytes: int = MANY_BYTES
) -> list[tuple[list[TreeOp], list[Change]]]:
    """All of them; whatever is cut, nothing is lost, doubled or out of order."""
    found = list(chunks(decision, max_ops=max_ops, max_bytes=max_bytes))
    marks = {"/admin/delete_topics/orders"}
    ops = [op for ops, _ in found for op in ops if op.path not in marks]
    assert ops == [op for op in decision.ops if op.path not in marks]
    assert sorted(map(repr, (change for _, changes in found for change in changes))) == sorted(
        map(repr, decision.changes)
    )
    return found


def lost(num_partitions: int) -> Decision[None]:
    image = cluster(*[PartitionRegistration((1, 2), (1, 2), 1)] * num_partitions)
    image.apply(TopicCreated("payments", bytes([2] * 16), (PartitionRegistration((1, 2), (1, 2), 1),)))
    return broker_lost(image, [1], is_unclean_allowed=lambda name: False)


def created(num_partitions: int, name: str = "payments") -> Decision[Any]:
    topic = CreatableTopic(name=name, num_partitions=num_partitions, replication_factor=2)
    return create_topics(
        cluster(),
        CreateTopicsRequest(topics=[topic]),
        defaults=TopicDefaults(),
        check_overrides=lambda overrides: None,
        new_topic_id=lambda: bytes([2] * 16),
    )


def test_what_fits_is_one_piece() -> None:
    decision = lost(3)
    assert pieces(decision) == [(decision.ops, decision.changes)]


def test_nothing_is_no_piece() -> None:
    assert pieces(Decision([], [], [])) == []


@pytest.mark.parametrize(("max_ops", "max_bytes"), [(2, MANY_BYTES), (10_000, 400)])
def test_each_partition_goes_with_its_change(max_ops: int, max_bytes: int) -> None:
    found = pieces(lost(3), max_ops=max_ops, max_bytes=max_bytes)
    assert [(len(ops), len(changes)) for ops, changes in found] == [(2, 2), (2, 2)]


def test_a_topic_that_fits_is_not_cut() -> None:
    one, other = created(2), created(3, "refunds")
    both: Decision[Any] = Decision([], one.ops + other.ops, one.changes + other.changes)
    assert pieces(both, max_ops=10) == [(one.ops, one.changes), (other.ops, other.changes)]


def test_a_topic_too_large_is_made_node_first_and_known_last() -> None:
    found = pieces(created(4), max_ops=3)
    assert [op.path for op in found[0][0]] == [
        "/config/topics/payments",
        "/brokers/topics/payments",
        "/brokers/topics/payments/partitions",
    ]
    assert [len(ops) for ops, _ in found] == [3, 2, 2, 2, 2]
    assert [len(changes) for _, changes in found] == [0, 0, 0, 0, 2]


def test_a_deletion_too_large_leaves_a_mark_until_it_is_done() -> None:
    image = cluster(*[PartitionRegistration((1,), (1,), 1)] * 4)
    decision = delete_topics(image, DeleteTopicsRequest(topic_names=["orders"]))
    found = pieces(decision, max_ops=4)
    mark = "/admin/delete_topics/orders"
    assert found[0][0][0] == Create(mark)
    assert found[-1][0][-1] == Delete(mark)
    assert [len(changes) for _, changes in found][:-1] == [0] * (len(found) - 1)
    assert TopicDeleted("orders") in found[-1][1]


def test_a_deletion_that_was_marked_is_finished_from_what_is_left() -> None:
    image = cluster(*[PartitionRegistration((1,), (1,), 1)] * 3)
    root = "/brokers/topics/orders"
    existing = {root, f"{root}/partitions", f"{root}/partitions/2", f"{root}/partitions/2/state"}
    decision = marked_for_deletion(image, ["orders", "gone"], existing=existing)
    assert [op.path for op in decision.ops] == [
        f"{root}/partitions/2/state",
        f"{root}/partitions/2",
        f"{root}/partitions",
        root,
        "/admin/delete_topics/orders",
        "/admin/delete_topics/gone",
    ]
    assert all(isinstance(op, Delete) for op in decision.ops)
    found = pieces(decision, max_ops=3)
    assert not any(isinstance(op, Create) for ops, _ in found for op in ops)
    image.apply_all(decision.changes)
    assert image.topic("orders") is None


def test_a_reassignment_too_large_writes_the_topic_last() -> None:
    image: ClusterImage = cluster(*[PartitionRegistration((1, 2), (1, 2), 1)] * 3)
    asked = [ReassignablePartition(partition_index=n, replicas=[2, 3]) for n in range(3)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=asked)])
    found = pieces(alter(image, request), max_ops=2)
    last_ops, last_changes = found[-1]
    assert isinstance(last_ops[-1], Set)
    assert last_ops[-1].path == "/brokers/topics/orders"
    assert len(last_changes) == 3
