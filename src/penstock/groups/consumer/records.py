"""The records of consumer groups in `__consumer_offsets`, byte for byte Kafka's.

A key is its type (int16) and one or two strings with two-byte lengths; a value is version 0 (int16) and one of the
structs below, all of them flexible:

    key 3   group                      GroupValue                epoch and hash of the topics' metadata
    key 4   group                      (not read)                partition metadata: older brokers wrote it, we delete it
    key 5   group, member              MemberValue               who it is and what it subscribes to
    key 6   group                      TargetEpochValue          the epoch that the target assignment is for
    key 7   group, member              TargetValue               what the member shall have
    key 8   group, member              CurrentValue              what the member has, and has yet to give back
    key 16  group, regular expression  RegexValue                the topics that it matches

A null value deletes.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.wire.codec import decode, encode
from penstock.wire.errors import Malformed
from penstock.wire.schema import ZERO_UUID, Struct

GROUP: Final = 3
PARTITION_METADATA: Final = 4
MEMBER: Final = 5
TARGET_EPOCH: Final = 6
TARGET: Final = 7
CURRENT: Final = 8
REGEX: Final = 16

KEY_TYPES: Final = frozenset((GROUP, PARTITION_METADATA, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX))
_WITH_NAME: Final = frozenset((MEMBER, TARGET, CURRENT, REGEX))

ALL: Final = (0, 0)
"""All versions there are."""


class ConsumerKey(NamedTuple):
    kind: int
    group: str
    name: str
    """The member, or the regular expression; empty where the record is about the group."""


class GroupValue(Struct):
    __slots__ = ("epoch", "metadata_hash")
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("epoch", "int32", ALL, None, None, 0, None),
        ("metadata_hash", "int64", ALL, None, 0, 0, None),
    )

    def __init__(self, *, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


class ClassicProtocol(Struct):
    __slots__ = ("metadata", "name")
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("name", "string", ALL, None, None, "", None),
        ("metadata", "bytes", ALL, None, None, b"", None),
    )

    def __init__(self, *, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata


class ClassicMemberMetadata(Struct):
    """What must be known of a member that speaks the classic protocol, to answer it and to convert the group back."""

    __slots__ = ("session_timeout_ms", "supported_protocols")
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("session_timeout_ms", "int32", ALL, None, None, 0, None),
        ("supported_protocols", "[]struct", ALL, None, None, (), ClassicProtocol),
    )

    def __init__(
        self, *, session_timeout_ms: int = 0, supported_protocols: Sequence[ClassicProtocol] = ()
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = supported_protocols


class MemberValue(Struct):
    __slots__ = (
        "classic_member_metadata",
        "client_host",
        "client_id",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
    )
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("instance_id", "string", ALL, ALL, None, None, None),
        ("rack_id", "string", ALL, ALL, None, None, None),
        ("client_id", "string", ALL, None, None, "", None),
        ("client_host", "string", ALL, None, None, "", None),
        ("subscribed_topic_names", "[]string", ALL, None, None, (), None),
        ("subscribed_topic_regex", "string", ALL, ALL, None, None, None),
        ("rebalance_timeout_ms", "int32", ALL, None, None, -1, None),
        ("server_assignor", "string", ALL, ALL, None, None, None),
        ("classic_member_metadata", "struct", ALL, ALL, 0, None, ClassicMemberMetadata),
    )

    def __init__(
        self,
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: Sequence[str] = (),
        subscribed_topic_regex: str | None = None,
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = None,
        classic_member_metadata: ClassicMemberMetadata | None = None,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = classic_member_metadata


class TargetEpochValue(Struct):
    __slots__ = ("assignment_epoch", "assignment_timestamp")
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("assignment_epoch", "int32", ALL, None, None, 0, None),
        ("assignment_timestamp", "int64", ALL, None, 0, 0, None),
    )

    def __init__(self, *, assignment_epoch: int = 0, assignment_timestamp: int = 0) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp


class TargetPartitions(Struct):
    __slots__ = ("partitions", "topic_id")
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("topic_id", "uuid", ALL, None, None, ZERO_UUID, None),
        ("partitions", "[]int32", ALL, None, None, (), None),
    )

    def __init__(self, *, topic_id: bytes = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic_id = topic_id
        self.partitions = partitions


class TargetValue(Struct):
    __slots__ = ("topic_partitions",)
    FLEXIBLE_FROM = 0
    FIELDS = (("topic_partitions", "[]struct", ALL, None, None, (), TargetPartitions),)

    def __init__(self, *, topic_partitions: Sequence[TargetPartitions] = ()) -> None:
        self.topic_partitions = topic_partitions


class CurrentPartitions(Struct):
    """`assignment_epochs` is beside `partitions`: the member epoch with which the member got each. Records of brokers before
    4.3 have none: then it is the member's epoch."""

    __slots__ = ("assignment_epochs", "partitions", "topic_id")
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("topic_id", "uuid", ALL, None, None, ZERO_UUID, None),
        ("partitions", "[]int32", ALL, None, None, (), None),
        ("assignment_epochs", "[]int32", ALL, None, 0, (), None),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: Sequence[int] = (),
        assignment_epochs: Sequence[int] = (),
    ) -> None:
        self.topic_id = topic_id
        self.partitions = partitions
        self.assignment_epochs = assignment_epochs


class CurrentValue(Struct):
    __slots__ = (
        "assigned_partitions",
        "member_epoch",
        "partitions_pending_revocation",
        "previous_member_epoch",
        "state",
    )
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("member_epoch", "int32", ALL, None, None, 0, None),
        ("previous_member_epoch", "int32", ALL, None, None, 0, None),
        ("state", "int8", ALL, None, None, 0, None),
        ("assigned_partitions", "[]struct", ALL, None, None, (), CurrentPartitions),
        ("partitions_pending_revocation", "[]struct", ALL, None, None, (), CurrentPartitions),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: Sequence[CurrentPartitions] = (),
        partitions_pending_revocation: Sequence[CurrentPartitions] = (),
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = assigned_partitions
        self.partitions_pending_revocation = partitions_pending_revocation


class RegexValue(Struct):
    __slots__ = ("timestamp", "topics", "version")
    FLEXIBLE_FROM = 0
    FIELDS = (
        ("topics", "[]string", ALL, None, None, (), None),
        ("version", "int64", ALL, None, None, 0, None),
        ("timestamp", "int64", ALL, None, None, 0, None),
    )

    def __init__(self, *, topics: Sequence[str] = (), version: int = 0, timestamp: int = 0) -> None:
        self.topics = topics
        self.version = version
        self.timestamp = timestamp


Value = GroupValue | MemberValue | TargetEpochValue | TargetValue | CurrentValue | RegexValue

VALUES: Final[dict[int, type[Value]]] = {
    GROUP: GroupValue,
    MEMBER: MemberValue,
    TARGET_EPOCH: TargetEpochValue,
    TARGET: TargetValue,
    CURRENT: CurrentValue,
    REGEX: RegexValue,
}


def is_consumer_key(key: bytes) -> bool:
    return int.from_bytes(key[:2], "big") in KEY_TYPES


def write_key(kind: int, group: str, name: str = "") -> bytes:
    key = struct.pack(">h", kind) + _string(group)
    return key + _string(name) if kind in _WITH_NAME else key


def read_key(key: bytes) -> ConsumerKey:
    kind = int.from_bytes(key[:2], "big", signed=True)
    if kind not in KEY_TYPES:
        raise ValueError(f"key type {kind} is none of a consumer group")
    group, at = _read_string(key, 2)
    name = _read_string(key, at)[0] if kind in _WITH_NAME else ""
    return ConsumerKey(kind, group, name)


def write_value(value: Value) -> bytes:
    raw = b"\0\0" + encode(value, 0)
    if isinstance(value, MemberValue) and value.classic_member_metadata is None:
        # To Kafka the default of this field is an empty struct, so that null has to be written: in place of "no tagged
        # fields" come one field, tag 0, one byte long, null.
        return raw[:-1] + b"\1\0\1\0"
    return raw


def read_value(kind: int, value: bytes) -> Value | None:
    """None for partition metadata, of which only its presence matters."""
    if kind == PARTITION_METADATA:
        return None
    if value[:2] != b"\0\0":
        raise ValueError(f"version {value[:2].hex()} of a consumer group's record is not known")
    try:
        return decode(VALUES[kind], 0, value, 2)[0]
    except Malformed as error:
        raise ValueError(str(error)) from None


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _read_string(raw: bytes, at: int) -> tuple[str, int]:
    end = at + 2 + int.from_bytes(raw[at : at + 2], "big")
    if at + 2 > len(raw) or end > len(raw):
        raise ValueError("the key of a group record ends too early")
    return raw[at + 2 : end].decode(), end
