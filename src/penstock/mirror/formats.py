"""The records in the topics of mirroring, as MirrorMaker 2 has them. Pure.

Fields in their order, big-endian, strings behind their length:

    mm2-offset-syncs.B.internal   key: topic, partition i32        value: upstream offset i64, downstream offset i64
    A.checkpoints.internal        key: group, topic, partition i32 value: version i16 = 0, upstream i64, downstream i64, metadata
    heartbeats                    key: source alias, target alias  value: version i16 = 0, timestamp in ms i64

The topic of offset syncs is compacted, and MirrorMaker 2 keeps in it the last pair of offsets of each partition. Ours has all
pairs from which offsets are translated exactly: each behind a key with a number at its end (i32, a slot), which Kafka's readers
pass over. A slot is used again after SLOTS others, so that the topic stays bounded.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

SLOTS: Final = 1 << 16
"""Changes of the distance between the two offsets that are known of each partition."""
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_PAIR: Final = struct.Struct(">qq")
_TIME: Final = struct.Struct(">hq")
_VERSION: Final = 0


class OffsetSync(NamedTuple):
    topic: str
    partition: int
    upstream: int
    downstream: int
    slot: int | None = None
    """None: one of MirrorMaker 2, or of how far we are."""

    def key(self) -> bytes:
        slot = b"" if self.slot is None else _I32.pack(self.slot)
        return _text(self.topic) + _I32.pack(self.partition) + slot

    def value(self) -> bytes:
        return _PAIR.pack(self.upstream, self.downstream)


class Checkpoint(NamedTuple):
    group: str
    topic: str
    """At the target."""
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    def key(self) -> bytes:
        return _text(self.group) + _text(self.topic) + _I32.pack(self.partition)

    def value(self) -> bytes:
        return _I16.pack(_VERSION) + _PAIR.pack(self.upstream, self.downstream) + _text(self.metadata)


class Heartbeat(NamedTuple):
    source: str
    target: str
    timestamp_ms: int

    def key(self) -> bytes:
        return _text(self.source) + _text(self.target)

    def value(self) -> bytes:
        return _TIME.pack(_VERSION, self.timestamp_ms)


def read_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync | None:
    """None for what is none."""
    try:
        topic, at = _read_text(key or b"", 0)
        (partition,) = _I32.unpack_from(key or b"", at)
        rest = (key or b"")[at + 4 :]
        slot = _I32.unpack(rest)[0] if len(rest) == 4 else None
        upstream, downstream = _PAIR.unpack_from(value or b"")
    except (struct.error, UnicodeDecodeError):
        return None
    return OffsetSync(topic, partition, upstream, downstream, slot)


def read_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint | None:
    try:
        group, at = _read_text(key or b"", 0)
        topic, at = _read_text(key or b"", at)
        (partition,) = _I32.unpack_from(key or b"", at)
        upstream, downstream = _PAIR.unpack_from(value or b"", 2)
        metadata, _ = _read_text(value or b"", 18)
    except (struct.error, UnicodeDecodeError):
        return None
    return Checkpoint(group, topic, partition, upstream, downstream, metadata)


def read_heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat | None:
    try:
        source, at = _read_text(key or b"", 0)
        target, _ = _read_text(key or b"", at)
        (_, timestamp_ms) = _TIME.unpack_from(value or b"")
    except (struct.error, UnicodeDecodeError):
        return None
    return Heartbeat(source, target, timestamp_ms)


def _text(text: str) -> bytes:
    raw = text.encode()
    return _I16.pack(len(raw)) + raw


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _I16.unpack_from(data, at)
    end = at + 2 + size
    if size < 0 or end > len(data):
        raise struct.error("a string passes the end")
    return data[at + 2 : end].decode(), end
