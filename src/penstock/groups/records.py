"""The records of `__consumer_offsets`, byte for byte Kafka's.

A key opens with its type, a value with its version, both int16, big-endian throughout:

    key 0, 1   offset    group: string, topic: string, partition: int32
    key 2      group     group: string
    offset     v0–v4     offset: int64, [v3+ leader epoch: int32], metadata: string, commit time: int64,
                         [v1 expire time: int64], [v4 tagged fields, 0 = topic id]
    group      v0–v4     protocol type: string, generation: int32, protocol: string?, leader: string?,
                         [v2+ state time: int64], members: [member id: string, [v3+ instance id: string?],
                         client id: string, client host: string, [v1+ rebalance timeout: int32],
                         session timeout: int32, subscription: bytes, assignment: bytes]

Version 4 is "flexible": lengths are varints (length + 1, 0 = null) and each struct ends with tagged fields.
Written are group v3, and offset v4 (v1 where the client set a retention time): what Apache Kafka 4.3 writes.
A null value deletes. Other key types (consumer, share and streams groups) are not ours to read yet:
`read_key` gives None.
"""

import struct
from typing import NamedTuple

from penstock.model.ids import NO_ID
from penstock.wire.primitives import read_uvarint, uvarint

NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

OFFSET_KEYS = (b"\0\1", b"\0\0")
GROUP_KEY = b"\0\2"
NO_TAGS = b"\0"
TOPIC_ID_TAG = b"\1\0\x10"
"""One tagged field, number 0, 16 bytes."""
_OFFSET_HEAD = struct.Struct(">hqi")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_TIME_AND_COUNT = struct.Struct(">qi")
_TIMEOUTS_AND_LENGTH = struct.Struct(">iii")


class OffsetKey(NamedTuple):
    group: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    group: str


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: bytes = NO_ID


class MemberMetadata(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int
    members: tuple[MemberMetadata, ...]


def with_new_id(group: GroupMetadata, instance_id: str, member_id: str) -> GroupMetadata | None:
    """The same generation with another id for a static member; None if it is not in it, or has that id."""
    old = next((member for member in group.members if member.group_instance_id == instance_id), None)
    if old is None or old.member_id == member_id:
        return None
    members = tuple(
        member._replace(member_id=member_id) if member is old else member for member in group.members
    )
    leader = member_id if group.leader == old.member_id else group.leader
    return group._replace(leader=leader, members=members)


def new_group(now_ms: int) -> GroupMetadata:
    """What is written of a group that somebody has begun to join."""
    return GroupMetadata("", 0, None, None, now_ms, ())


def write_offset_key(key: OffsetKey) -> bytes:
    return write_offset_key_head(key.group, topic=key.topic) + struct.pack(">i", key.partition)


def write_offset_key_head(group: str, *, topic: str) -> bytes:
    """All but the partition, which is the last four bytes: a commit names a topic once."""
    return b"\0\1" + _string(group) + _string(topic)


def write_group_key(group: str) -> bytes:
    return b"\0\2" + _string(group)


def write_offset(value: CommittedOffset) -> bytes:
    if value.expire_timestamp_ms != NO_TIMESTAMP:
        head = struct.pack(">hq", 1, value.offset) + _string(value.metadata)
        return head + struct.pack(">qq", value.commit_timestamp_ms, value.expire_timestamp_ms)
    tail = write_offset_tail(value.commit_timestamp_ms, value.topic_id)
    return write_offset_with(value.offset, value.metadata, tail, leader_epoch=value.leader_epoch)


def write_offset_with(offset: int, metadata: str, tail: bytes, *, leader_epoch: int) -> bytes:
    """As `write_offset` without expire time, given what the offsets of one topic in a commit share."""
    head = _OFFSET_HEAD.pack(4, offset, leader_epoch)
    if not metadata:
        return head + b"\1" + tail
    raw = metadata.encode()
    return head + uvarint(len(raw) + 1) + raw + tail


def write_offset_tail(commit_timestamp_ms: int, topic_id: bytes) -> bytes:
    return struct.pack(">q", commit_timestamp_ms) + (
        NO_TAGS if topic_id == NO_ID else TOPIC_ID_TAG + topic_id
    )


def write_group(value: GroupMetadata) -> bytes:
    parts = [b"\0\3", _string(value.protocol_type), struct.pack(">i", value.generation)]
    parts += (_nullable_string(value.protocol), _nullable_string(value.leader))
    parts.append(struct.pack(">qi", value.current_state_timestamp_ms, len(value.members)))
    for member in value.members:
        parts += (_string(member.member_id), _nullable_string(member.group_instance_id))
        parts += (_string(member.client_id), _string(member.client_host))
        parts.append(struct.pack(">ii", member.rebalance_timeout_ms, member.session_timeout_ms))
        parts += (_bytes(member.subscription), _bytes(member.assignment))
    return b"".join(parts)


def read_key(key: bytes) -> OffsetKey | GroupKey | None:
    """None for a type that is not ours; ValueError when the bytes are not what the type says."""
    reader = _Reader(key)
    kind = reader.int16()
    if kind in (0, 1):
        return OffsetKey(reader.string(), reader.string(), reader.int32())
    if kind == 2:
        return GroupKey(reader.string())
    return None


def check_offset(value: bytes) -> None:
    """ValueError unless `read_offset` will read it. The layouts that brokers write today are told by their lengths alone."""
    if len(value) >= 24 and value[0] == 0:
        if value[1] == 4:
            length = value[14]  # of the metadata, plus one
            end = 22 + length
            if (
                0 < length < 0x80
                and (
                    (len(value) == end + 19 and value.startswith(TOPIC_ID_TAG, end))
                    or (len(value) == end + 1 and value[end] == 0)
                )
                and (length == 1 or value[15 : 14 + length].isascii())
            ):
                return
        elif value[1] == 3 and value[14:16] == b"\0\0" and len(value) == 24:
            return
    read_offset(value)


def offset_of(value: bytes) -> int:
    """The offset alone, of a value that `check_offset` has taken: all versions have it in the same place."""
    return int.from_bytes(value[2:10], "big", signed=True)


def read_offset(value: bytes) -> CommittedOffset:
    if len(value) >= 24 and value[:2] == b"\0\4" and 0 < value[14] < 0x80:
        end = 14 + value[14]
        tags = value[end + 8 :]
        if tags == NO_TAGS or (len(tags) == 19 and tags[:3] == TOPIC_ID_TAG):
            _, offset, leader_epoch = _OFFSET_HEAD.unpack_from(value)
            commit_timestamp_ms = int.from_bytes(value[end : end + 8], "big", signed=True)
            topic_id = tags[3:] if len(tags) == 19 else NO_ID
            metadata = value[15:end].decode()
            return CommittedOffset(
                offset, leader_epoch, metadata, commit_timestamp_ms, NO_TIMESTAMP, topic_id
            )
    return _read_any_offset(value)


def _read_any_offset(value: bytes) -> CommittedOffset:
    reader = _Reader(value)
    version = reader.version(highest=4)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else NO_LEADER_EPOCH
    metadata = reader.string()
    commit_timestamp_ms = reader.int64()
    expire_timestamp_ms = reader.int64() if version == 1 else NO_TIMESTAMP
    topic_id = reader.tagged_fields().get(0, NO_ID)
    if len(topic_id) != 16:
        raise ValueError("a topic id is not 16 bytes long")
    return CommittedOffset(offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id)


def read_group(value: bytes) -> GroupMetadata:
    if value[:2] == b"\0\3":
        return _read_group_of_today(value)
    return _read_any_group(value)


def _read_any_group(value: bytes) -> GroupMetadata:
    reader = _Reader(value)
    version = reader.version(highest=4)
    protocol_type, generation = reader.string(), reader.int32()
    protocol, leader = reader.nullable_string(), reader.nullable_string()
    state_timestamp_ms = reader.int64() if version >= 2 else NO_TIMESTAMP
    members = tuple(_read_member(reader, version) for _ in range(reader.array_length()))
    reader.tagged_fields()
    return GroupMetadata(protocol_type, generation, protocol, leader, state_timestamp_ms, members)


def _read_group_of_today(value: bytes) -> GroupMetadata:
    """Version 3, which is what brokers write: the same as `_read_any_group` in a third of the time, for a broker that starts."""
    try:
        protocol_type, at = _cut_string(value, 2)
        (generation,) = _INT32.unpack_from(value, at)
        protocol, at = _cut_string(value, at + 4)
        leader, at = _cut_string(value, at)
        state_timestamp_ms, count = _TIME_AND_COUNT.unpack_from(value, at)
        at += 12
        members = []
        for _ in range(count):
            member_id, at = _cut_string(value, at)
            group_instance_id, at = _cut_string(value, at)
            client_id, at = _cut_string(value, at)
            client_host, at = _cut_string(value, at)
            rebalance_timeout_ms, session_timeout_ms, length = _TIMEOUTS_AND_LENGTH.unpack_from(value, at)
            at += 12
            subscription = value[at : at + length]
            at += max(length, 0)
            (length,) = _INT32.unpack_from(value, at)
            at += 4
            assignment = value[at : at + length]
            at += max(length, 0)
            if at > len(value) or member_id is None or client_id is None or client_host is None:
                raise ValueError("a group record ends too early, or has no name for a member")
            if rebalance_timeout_ms == -1:
                rebalance_timeout_ms = session_timeout_ms
            members.append(
                MemberMetadata(
                    member_id,
                    group_instance_id,
                    client_id,
                    client_host,
                    rebalance_timeout_ms,
                    session_timeout_ms,
                    subscription,
                    assignment,
                )
            )
    except struct.error as error:
        raise ValueError("a group record ends too early") from error
    if protocol_type is None:
        raise ValueError("a group record without a protocol type")
    return GroupMetadata(protocol_type, generation, protocol, leader, state_timestamp_ms, tuple(members))


def _cut_string(value: bytes, at: int) -> tuple[str | None, int]:
    (length,) = _INT16.unpack_from(value, at)
    at += 2
    if length < 0:
        return None, at
    end = at + length
    if end > len(value):
        raise ValueError("a group record ends too early")
    return value[at:end].decode(), end


def _read_member(reader: "_Reader", version: int) -> MemberMetadata:
    member_id = reader.string()
    group_instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    if rebalance_timeout_ms == -1:  # a record from before the two were told apart
        rebalance_timeout_ms = session_timeout_ms
    subscription, assignment = reader.byte_string(), reader.byte_string()
    reader.tagged_fields()
    return MemberMetadata(
        member_id,
        group_instance_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )


def _string(text: str) -> bytes:
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def _nullable_string(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else _string(text)


def _bytes(raw: bytes) -> bytes:
    return _INT32.pack(len(raw)) + raw


class _Reader:
    """Reads in order, never past the end; flexible once `version` has read one that is."""

    __slots__ = ("_at", "_flexible", "_raw")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0
        self._flexible = False

    def version(self, *, highest: int) -> int:
        version = self.int16()
        if not 0 <= version <= highest:
            raise ValueError(f"version {version} of a group record is not known")
        self._flexible = version >= 4
        return version

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise ValueError("a string of a group record is null")
        return text

    def nullable_string(self) -> str | None:
        length = self._unsigned_varint() - 1 if self._flexible else self.int16()
        return None if length < 0 else self._take(length).decode()

    def byte_string(self) -> bytes:
        length = self._unsigned_varint() - 1 if self._flexible else self.int32()
        return b"" if length < 0 else self._take(length)

    def array_length(self) -> int:
        return self._unsigned_varint() - 1 if self._flexible else self.int32()

    def tagged_fields(self) -> dict[int, bytes]:
        if not self._flexible:
            return {}
        return {
            self._unsigned_varint(): self._take(self._unsigned_varint())
            for _ in range(self._unsigned_varint())
        }

    def _unsigned_varint(self) -> int:
        try:
            number, self._at = read_uvarint(self._raw, self._at)
        except IndexError:
            raise ValueError("a group record ends too early") from None
        return number

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if count < 0 or end > len(self._raw):
            raise ValueError("a group record ends too early")
        raw = self._raw[self._at : end]
        self._at = end
        return raw
