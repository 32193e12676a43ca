"""ForeignKeyJoin: the left row names the key of the right row, which lies in another partition.

The left side's task sends a subscription to the partition of the right key; the right side's task keeps it, and answers with
the right
row, now and whenever that changes. The answer goes back to the left row's partition. There it counts only if the left row is
still the
one that asked: subscription and answer carry a hash of it.

    subscription   key: the right key, in the node's format     value: how, left partition, left key, window, hash
    answer         key: the left key, packed                    value: left key, window, hash, right row
"""

from __future__ import annotations

from enum import IntEnum
from hashlib import blake2b
from struct import Struct
from typing import Any, Final

from penstock.streams.kernel.building import Building, Emit, kept, with_value
from penstock.streams.kernel.records import InputRecord, OutputRecord, Row
from penstock.streams.kernel.state_keys import row_key
from penstock.streams.kernel.state_values import pack, unpack
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import JoinKind

Values = tuple[Any, ...]
_length: Final = Struct(">I")


class How(IntEnum):
    """What the right side does with a subscription."""

    REMOVE = 0  # and say nothing
    ANSWER_IF_THERE = 1
    ANSWER = 2  # also that there is no right row
    REMOVE_AND_ANSWER = 3  # that there is none any more; the answer's time is the later of both rows'


def subscription_topic(node: nodes.ForeignKeyJoin) -> str:
    return f"{node.name}-subscription-registration-topic"


def answer_topic(node: nodes.ForeignKeyJoin) -> str:
    return f"{node.name}-subscription-response-topic"


def subscription_store(node: nodes.ForeignKeyJoin) -> str:
    return f"{node.name}-subscription-store"


def hash_of(value: Values | None) -> bytes | None:
    return None if value is None else blake2b(pack(value), digest_size=16).digest()


class LeftSide:
    def __init__(self, node: nodes.ForeignKeyJoin, building: Building, emit: Emit) -> None:
        self._node, self._building = node, building
        if building.needs.wants_store(node):
            emit = kept(building.store(node.name), emit, give_old=building.needs.wants_old(node))
        self._emit = emit
        self._view = building.view(node.left)
        self._foreign = building.items(node, (node.left_key,), node.left.schema)
        self._topic = building.topic_name(subscription_topic(node))
        codec = building.key_codec(node.right.schema, node.formats, None, self._topic)
        self._encode = codec.encode
        self._is_left_join = node.join is JoinKind.LEFT
        self._nobody = (None,) * len(node.right.schema.value)
        building.entry(building.topic_name(answer_topic(node)), self._answered)

    def change(self, row: Row) -> None:
        if row.key is None or (row.value is None and row.old is None):
            return
        new = None if row.value is None else self._foreign(row)[0]
        old = None if row.old is None else self._foreign(with_value(row, row.old))[0]
        if old is not None and old != new:
            goes = new is None and not self._is_left_join
            self._subscribe(row, old, How.REMOVE_AND_ANSWER if goes else How.REMOVE)
        if new is not None:
            first = not self._is_left_join and (old is None or old == new)
            self._subscribe(row, new, How.ANSWER_IF_THERE if first else How.ANSWER)
        elif self._is_left_join:
            self._emit(with_value(row, None if row.value is None else (*row.value, *self._nobody)))

    def _subscribe(self, row: Row, foreign: Any, how: How) -> None:
        try:
            key = self._encode((foreign,), None)
        except Exception as error:  # a value that the format cannot carry
            self._building.trouble(self._node, "serialize", error, row)
            return
        content = (how, (foreign,), self._building.partition, row.key, row.window, hash_of(row.value))
        self._building.output(OutputRecord(self._topic, key, pack(content), row.timestamp, row.headers))

    def _answered(self, record: InputRecord) -> None:
        assert record.value is not None
        key, window, digest, right = unpack(record.value)
        bounds = None if window is None else (window[0], window[1])
        left = self._view(tuple(key), bounds)
        value = None if left is None else left.value
        if hash_of(value) != digest:
            return  # the left row has changed since, and has asked again
        if value is None or (right is None and not self._is_left_join):
            joined = None
        else:
            joined = (*value, *(self._nobody if right is None else right))
        self._emit(Row(tuple(key), joined, record.timestamp, None, bounds, record.headers))


class RightSide:
    def __init__(self, node: nodes.ForeignKeyJoin, building: Building) -> None:
        self._building = building
        self._view = building.view(node.right)
        self._store = building.store(subscription_store(node))
        self._topic = building.topic_name(answer_topic(node))
        building.entry(building.topic_name(subscription_topic(node)), self._subscribed)

    def change(self, row: Row) -> None:
        if row.key is None:
            return
        head = _head(row.key)
        for _, (partition, key, window, digest) in list(self._store.range(head, head + b"\xff")):
            self._answer(row, partition, (tuple(key), window, digest, row.value), row.timestamp)

    def _subscribed(self, record: InputRecord) -> None:
        assert record.value is not None
        how, foreign, partition, key, window, digest = unpack(record.value)
        key, foreign = tuple(key), tuple(foreign)
        at = _head(foreign) + row_key(key, None if window is None else (window[0], window[1]))
        goes = how in (How.REMOVE, How.REMOVE_AND_ANSWER)
        self._store.put(at, None if goes else (partition, key, window, digest))
        right = None if how == How.REMOVE else self._view(foreign, None)
        if how == How.REMOVE or (how == How.ANSWER_IF_THERE and right is None):
            return
        value = None if right is None or goes else right.value
        timestamp = record.timestamp if right is None else max(record.timestamp, right.timestamp)
        self._answer(record, partition, (key, window, digest, value), timestamp)

    def _answer(
        self, cause: Row | InputRecord, partition: int, content: tuple[Any, ...], timestamp: int
    ) -> None:
        record = OutputRecord(
            self._topic, pack(content[:2]), pack(content), timestamp, cause.headers, partition
        )
        self._building.output(record)


def _head(foreign: Values) -> bytes:
    packed = pack(foreign)
    return _length.pack(len(packed)) + packed
