"""Short forms of what consumers say in bytes, for transcripts: `subscription(orders,payments)`,
`subscription(orders owns orders:0,1)`, `assignment(orders:0,1 payments:0)` and `id(orders)`, a topic id that is the topic's
name in 16 bytes.

Version 0 of both, without user data: version int16, then [topic: string] or [topic: string, [partition: int32]],
then user data: bytes (null). A subscription that owns partitions is of version 1, which has them at the end.
"""

import struct

NO_USER_DATA = b"\xff\xff\xff\xff"


def subscription(text: str) -> bytes:
    wanted, owns, owned = text.partition(" owns ")
    topics = [topic for topic in wanted.replace(",", " ").split() if topic]
    parts = [struct.pack(">hi", 1 if owns else 0, len(topics))]
    parts += [_string(topic) for topic in topics]
    return b"".join(parts) + NO_USER_DATA + (_places(owned) if owns else b"")


def assignment(text: str) -> bytes:
    return b"\0\0" + _places(text) + NO_USER_DATA


def _places(text: str) -> bytes:
    topics = [topic.partition(":") for topic in text.split()]
    parts = [struct.pack(">i", len(topics))]
    for topic, _, indexes in topics:
        partitions = [int(index) for index in indexes.split(",")]
        parts.append(_string(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions))
    return b"".join(parts)


def topic_id(text: str) -> bytes:
    return text.strip().encode().ljust(16, b"\0")


def show_bytes(raw: bytes) -> str:
    """The shortest form that says the same."""
    for show in (_show_id, _show_subscription, _show_assignment):
        shown = show(raw)
        if shown is not None:
            return shown
    text = raw.decode("ascii", "replace")
    if raw and text.isprintable() and "\ufffd" not in text:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "0x" + raw.hex() if raw else '""'


def _show_id(raw: bytes) -> str | None:
    name = raw.rstrip(b"\0").decode("ascii", "replace")
    if len(raw) != 16 or not name or not name.replace("-", "").replace("_", "").isalnum():
        return None
    return f"id({name})" if topic_id(name) == raw else None


def _show_subscription(raw: bytes) -> str | None:
    try:
        (count,), at = struct.unpack_from(">i", raw, 2), 6
        topics = []
        for _ in range(count if count < 1000 else 0):
            topic, at = _read_string(raw, at)
            topics.append(topic)
        text = ",".join(topics)
        if raw[:2] == b"\0\1":
            text += f" owns {_read_places(raw, at + len(NO_USER_DATA))}"
        return f"subscription({text})" if subscription(text) == raw else None
    except (struct.error, UnicodeDecodeError, ValueError):
        return None


def _show_assignment(raw: bytes) -> str | None:
    try:
        text = _read_places(raw, 2)
        return f"assignment({text})" if assignment(text) == raw else None
    except (struct.error, UnicodeDecodeError, ValueError):
        return None


def _read_places(raw: bytes, at: int) -> str:
    (count,) = struct.unpack_from(">i", raw, at)
    at += 4
    topics = []
    for _ in range(count if count < 1000 else 0):
        topic, at = _read_string(raw, at)
        (partitions,) = struct.unpack_from(">i", raw, at)
        indexes = struct.unpack_from(f">{min(partitions, 10_000)}i", raw, at + 4)
        topics.append(f"{topic}:{','.join(map(str, indexes))}")
        at += 4 + 4 * partitions
    return " ".join(topics)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _read_string(raw: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", raw, at)
    end = at + 2 + length
    if length < 0 or end > len(raw):
        raise struct.error("a string ends too early")
    return raw[at + 2 : end].decode(), end
