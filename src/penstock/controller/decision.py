"""The form of every decision here: what to answer, what to write, what to remember."""

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from penstock.metadata import znodes
from penstock.metadata.acl_nodes import acl_path
from penstock.metadata.image import (
    AclsChanged,
    Change,
    ClusterImage,
    ConfigsChanged,
    PartitionChanged,
    PartitionRegistration,
    TokenChanged,
)
from penstock.metadata.tree import Check, Create, Delete, Set, TreeOp

Result = TypeVar("Result")

# Kafka's own bound on how much one request may change.
MAX_PARTITIONS_PER_REQUEST = 10_000

# What an op costs in a request to the store beside its path and data, rounded up.
OP_OVERHEAD_BYTES = 64


Charge = Callable[[int], None]
"""Told how many partitions a topic gains or loses, once nothing else speaks against it. ApiError: it may not change now."""


def free(partitions: int) -> None:
    """For who has no quota."""


class Decision(NamedTuple, Generic[Result]):
    """Write `ops` as one `multi` (or in the several of `chunks`), then apply `changes` to the image, then answer
    `results`. All refused or only validated: no ops and no changes."""

    results: list[Result]
    ops: list[TreeOp]
    changes: list[Change]


def change_state(
    decision: Decision[Any], image: ClusterImage, name: str, index: int, partition: PartitionRegistration
) -> None:
    """The partition has a state, and this is the next: `partition_epoch` is one more than the node's version."""
    state = znodes.encode_partition_state(partition, controller_epoch=image.controller_epoch)
    path = znodes.partition_state_path(name, index)
    decision.ops.append(Set(path, state, partition.partition_epoch - 1))
    decision.changes.append(PartitionChanged(name, index, partition))


def chunks(
    decision: Decision[Result], *, max_ops: int, max_bytes: int
) -> Iterator[tuple[list[TreeOp], list[Change]]]:
    """The decision in pieces that each fit into one `multi` and leave the tree in order, also if no more follow.

    What belongs together stays together: the ops of a partition's new state, or all of a topic's that also touch the topic's
    own node. A topic too large for one piece is written in several, its changes with the last. Until then:

    - a topic being made, or growing, has partitions without state, which `brokers.partitions_without_state` completes;
    - a topic being deleted has a node under /admin/delete_topics, for `topics.marked_for_deletion`;
    - a reassignment has a new state and the old assignment: states are written before the topic's node.

    When a piece fails, whoever knows only the image must read the tree again.
    """
    if _fits(decision.ops, max_ops, max_bytes):
        if decision.ops or decision.changes:
            yield decision.ops, decision.changes
        return
    ops: list[TreeOp] = []
    changes: list[Change] = []
    size_bytes = 0
    for unit_ops, unit_changes in _units(decision, max_ops, max_bytes):
        unit_bytes = sum(map(_size_bytes, unit_ops))
        if ops and (len(ops) + len(unit_ops) > max_ops or size_bytes + unit_bytes > max_bytes):
            yield ops, changes
            ops, changes, size_bytes = [], [], 0
        ops += unit_ops
        changes += unit_changes
        size_bytes += unit_bytes
    yield ops, changes


# Whose node it is: a topic's, and which partition's of it; or nobody's but its own.
_Scope = tuple[str, int | None]


def _units(
    decision: Decision[Result], max_ops: int, max_bytes: int
) -> Iterator[tuple[list[TreeOp], list[Change]]]:
    """What may not be torn, in order; torn nevertheless, partition by partition, where it would not fit alone."""
    changes_of: dict[_Scope, list[Change]] = {}
    for change in decision.changes:
        changes_of.setdefault(_scope_of_change(change), []).append(change)
    pieces = [
        (scope, [op for _, op in scoped])
        for scope, scoped in groupby([(_scope(op.path), op) for op in decision.ops], key=itemgetter(0))
    ]
    for owner, of_owner in groupby(pieces, key=lambda piece: piece[0][0]):
        parts = list(of_owner)
        if all(index is not None for (_, index), _ in parts):
            yield from ((ops, changes_of.pop(scope, [])) for scope, ops in parts)
            continue
        changes = [change for scope, _ in parts for change in changes_of.pop(scope, [])]
        whole = [op for _, ops in parts for op in ops]
        if _fits(whole, max_ops, max_bytes):
            yield whole, changes
        else:
            *first, last = _torn([ops for _, ops in parts], owner)
            yield from ((ops, []) for ops in first)
            yield last, changes
    yield from (([], changes) for changes in changes_of.values())


def _torn(pieces: list[list[TreeOp]], name: str) -> list[list[TreeOp]]:
    """Cut between partitions only, so that a partition's node never goes without its state."""
    mark = znodes.delete_topic_path(name)
    if Delete(znodes.topic_path(name)) in pieces[-1] and Delete(mark) not in pieces[-1]:
        pieces[0].insert(0, Create(mark))
        pieces[-1].append(Delete(mark))
    return pieces


_TOPICS_PREFIX = znodes.TOPICS + "/"
_TOPIC_PREFIXES = (znodes.config_path("topics", ""), znodes.delete_topic_path(""))


def _scope(path: str) -> _Scope:
    if path.startswith(_TOPICS_PREFIX):
        name, _, rest = path[len(_TOPICS_PREFIX) :].partition("/partitions/")
        if rest:
            return name, int(rest.partition("/")[0])
        return name.partition("/")[0], None
    for prefix in _TOPIC_PREFIXES:
        if path.startswith(prefix):
            return path[len(prefix) :], None
    return path, None


def _scope_of_change(change: Change) -> _Scope:
    if isinstance(change, PartitionChanged):
        return change.name, change.partition_index
    if isinstance(change, ConfigsChanged):
        return _scope(znodes.config_path(change.entity_type, change.entity_name))
    if isinstance(change, AclsChanged):
        return _scope(acl_path(change.pattern))
    if isinstance(change, TokenChanged):
        return _scope(znodes.token_path(change.token_id))
    return change.name, None


def _fits(ops: list[TreeOp], max_ops: int, max_bytes: int) -> bool:
    return len(ops) <= max_ops and sum(map(_size_bytes, ops)) <= max_bytes


def _size_bytes(op: TreeOp) -> int:
    data = 0 if isinstance(op, (Delete, Check)) else len(op.data)
    return len(op.path) + data + OP_OVERHEAD_BYTES
