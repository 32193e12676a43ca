"""What consumers of the classic protocol say inside their opaque bytes: subscriptions and assignments.

Both are an int16 version and a struct. A version newer than ours is read as the newest that we know, as Kafka does: later
versions only add to the end.
"""

import struct

from penstock.groups.consumer.state import Target
from penstock.groups.topics import Topics
from penstock.wire.codec import decode, encode
from penstock.wire.errors import Malformed
from penstock.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


def read_subscription(raw: bytes) -> ConsumerProtocolSubscription:
    """ValueError if it is none."""
    version = _version(raw, highest=ConsumerProtocolSubscription.VERSIONS[1])
    try:
        return decode(ConsumerProtocolSubscription, version, raw, 2)[0]
    except Malformed as error:
        raise ValueError(str(error)) from None


def subscribed_topics(raw: bytes) -> set[str] | None:
    """None if it is no subscription. All versions begin as version 0 does, with the topics, so that what a newer one has
    behind them cannot hide which topics they are."""
    try:
        return set(decode(ConsumerProtocolSubscription, 0, raw, 2)[0].topics)
    except Malformed:
        return None


def read_assignment(raw: bytes, topics: Topics) -> tuple[Target, bool]:
    """The partitions of topics that are there, and whether there is user data with them. ValueError if it is none."""
    if not raw:
        return {}, False
    assignment = _decode_assignment(raw)
    target = {}
    for part in assignment.assigned_partitions:
        topic_id = topics.topic_id(part.topic)
        if topic_id is not None:
            target[topic_id] = frozenset(part.partitions)
    return target, bool(assignment.user_data)


def assigned_partitions(raw: bytes) -> list[tuple[str, int]]:
    """Topic and partition; nothing if it is no assignment."""
    try:
        parts = _decode_assignment(raw).assigned_partitions if raw else ()
    except ValueError:
        return []
    return [(part.topic, index) for part in parts for index in part.partitions]


def write_assignment(target: Target, topics: Topics, *, like: bytes) -> bytes:
    """In the version of a subscription, so that its sender can read it. Topics that are gone are left out."""
    version = _version(like, highest=ConsumerProtocolAssignment.VERSIONS[1])
    parts = []
    for topic_id in target:
        name = topics.topic_name(topic_id)
        if name is not None:
            parts.append(TopicPartition(topic=name, partitions=sorted(target[topic_id])))
    parts.sort(key=lambda part: part.topic)
    return struct.pack(">h", version) + encode(ConsumerProtocolAssignment(assigned_partitions=parts), version)


def gives_up(subscription: bytes, assignment: bytes) -> bool:
    """Whether a member owned partitions when it joined that it was not assigned again: cooperative consumers give them up
    first and then join once more, and only the assignment after that hands them on. False if this cannot be read."""
    try:
        owned = {
            (part.topic, index)
            for part in read_subscription(subscription).owned_partitions
            for index in part.partitions
        }
        if not owned or not assignment:
            return bool(owned)
        assigned = _decode_assignment(assignment)
    except ValueError:
        return False
    return not owned <= {
        (part.topic, index) for part in assigned.assigned_partitions for index in part.partitions
    }


def _decode_assignment(raw: bytes) -> ConsumerProtocolAssignment:
    version = _version(raw, highest=ConsumerProtocolAssignment.VERSIONS[1])
    try:
        return decode(ConsumerProtocolAssignment, version, raw, 2)[0]
    except Malformed as error:
        raise ValueError(str(error)) from None


def _version(raw: bytes, *, highest: int) -> int:
    version = int.from_bytes(raw[:2], "big", signed=True)
    if len(raw) < 2 or version < 0:
        raise ValueError("the embedded consumer protocol has no version")
    return min(version, highest)
