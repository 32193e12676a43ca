"""The bytes of MirrorMaker 2's records."""

from penstock.mirror.formats import (
    Checkpoint,
    Heartbeat,
    OffsetSync,
    read_checkpoint,
    read_heartbeat,
    read_offset_sync,
)


def test_an_offset_sync_has_the_bytes_of_mirror_maker() -> None:
    sync = OffsetSync("t", 2, 5, 7)
    assert sync.key() == b"\x00\x01t\x00\x00\x00\x02"
    assert sync.value() == b"\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x07"
    assert read_offset_sync(sync.key(), sync.value()) == sync


def test_the_slot_of_a_pair_is_behind_the_key() -> None:
    sync = OffsetSync("t", 2, 5, 7, 9)
    assert sync.key() == b"\x00\x01t\x00\x00\x00\x02\x00\x00\x00\x09"
    assert read_offset_sync(sync.key(), sync.value()) == sync


def test_a_checkpoint_has_the_bytes_of_mirror_maker() -> None:
    one = Checkpoint("g", "A.t", 1, 10, 8, "m")
    assert one.key() == b"\x00\x01g\x00\x03A.t\x00\x00\x00\x01"
    assert one.value() == b"\x00\x00" + (10).to_bytes(8, "big") + (8).to_bytes(8, "big") + b"\x00\x01m"
    assert read_checkpoint(one.key(), one.value()) == one


def test_a_heartbeat_has_the_bytes_of_mirror_maker() -> None:
    beat = Heartbeat("A", "B", 1234)
    assert beat.key() == b"\x00\x01A\x00\x01B"
    assert beat.value() == b"\x00\x00" + (1234).to_bytes(8, "big")
    assert read_heartbeat(beat.key(), beat.value()) == beat


def test_what_is_something_else_is_nothing() -> None:
    for key, value in (
        (None, None),
        (b"", b""),
        (b"\x00\x05ab", b"\0" * 16),
        (b"\x00\x01t\0\0\0\0", None),
        (b"\xff\xff", b""),
    ):
        assert read_offset_sync(key, value) is None
        assert read_checkpoint(key, value) is None
