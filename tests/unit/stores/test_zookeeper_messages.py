"""ZooKeeper's wire format: our bytes beside those of kazoo, an independent client, and answers that make no sense."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol import serialization as kazoo
from kazoo.security import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from penstock.stores import zookeeper_messages as messages
from penstock.stores import zookeeper_wire as wire

STAT = wire.Stat(7, 8, 1, 2, 3, 4, 5, 0x1234_5678_9ABC_DEF0, 3, 2, 9)
STAT_BYTES = struct.pack(">qqqqiiiqiiq", *STAT)
ACL = [wire.CREATOR_MAY_ALL, wire.ANYONE_MAY_READ]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            messages.Create("/ä", b"one", [wire.ANYONE_MAY_ALL, wire.ANYONE_MAY_READ], messages.EPHEMERAL),
            kazoo.Create("/ä", b"one", [*OPEN_ACL_UNSAFE, *READ_ACL_UNSAFE], 1),
        ),
        (
            messages.Create("/a", b"", [wire.ANYONE_MAY_ALL], messages.SEQUENCE),
            kazoo.Create("/a", b"", OPEN_ACL_UNSAFE, 2),
        ),
        (messages.Delete("/a", 3), kazoo.Delete("/a", 3)),
        (messages.SetData("/a", b"two", -1), kazoo.SetData("/a", b"two", -1)),
        (messages.Exists("/a"), kazoo.Exists("/a", None)),
        (messages.GetData("/a"), kazoo.GetData("/a", None)),
        (messages.GetChildren("/a"), kazoo.GetChildren("/a", None)),
        (messages.Check("/a", 4), kazoo.CheckVersion("/a", 4)),
        (
            messages.Multi([messages.Check("/a", 4), messages.SetData("/a", b"two", 4)]),
            kazoo.Transaction([kazoo.CheckVersion("/a", 4), kazoo.SetData("/a", b"two", 4)]),
        ),
    ],
)
def test_a_request_is_the_same_bytes_as_kazoos(ours: wire.Request, theirs: Any) -> None:
    assert theirs.type == ours.TYPE
    assert ours.body() == bytes(theirs.serialize())


def test_a_greeting_is_the_same_bytes_as_kazoos() -> None:
    password = bytes(range(16))
    theirs = bytes(kazoo.Connect(0, 5, 6000, 77, password, False).serialize())
    ours = wire.connect_frame(last_zxid=5, timeout_ms=6000, session_id=77, password=password)
    assert ours == struct.pack(">i", len(theirs)) + theirs


def test_a_welcome_without_a_timeout_is_the_end_of_the_session() -> None:
    answer = struct.pack(">iiqi", 0, 4000, 9, 16) + bytes(16) + b"\0"
    assert wire.read_connected(answer) == wire.Connected(4000, 9, bytes(16))
    assert wire.read_connected(struct.pack(">iiqi", 0, 0, 0, 16) + bytes(16)).session_id == 0


def result(kind: int, body: bytes) -> bytes:
    return struct.pack(">i?i", kind, False, 0) + body


END = struct.pack(">i?i", -1, True, -1)


def test_the_answer_to_a_multi_is_read_op_by_op() -> None:
    request = messages.Multi(
        [
            messages.Create("/a", b"", ACL, 0),
            messages.SetData("/b", b"", -1),
            messages.Delete("/c", -1),
            messages.Check("/d", 1),
        ]
    )
    answer = result(1, wire.string("/a")) + result(5, STAT_BYTES) + result(2, b"") + result(13, b"") + END
    assert request.answer(wire.Reader(answer)) == ["/a", STAT.version, None, None]
    failed = b"".join(result(-1, struct.pack(">i", code)) for code in (0, 0, -101, -2)) + END
    codes = [each.code for each in request.answer(wire.Reader(failed))]
    assert codes == [
        wire.Code.ROLLED_BACK,
        wire.Code.ROLLED_BACK,
        wire.Code.NO_NODE,
        wire.Code.RUNTIME_INCONSISTENCY,
    ]


def test_of_many_nodes_each_is_there_or_says_why_not() -> None:
    request = messages.ReadMany(["/a", "/b"])
    names = struct.pack(">i", 2) + wire.string("x") + wire.string("y")
    there = result(4, wire.buffer(b"one") + STAT_BYTES) + result(8, names)
    not_there = result(-1, struct.pack(">i", -101)) * 2
    found, refused = request.answer(wire.Reader(there + not_there + END))
    assert found == messages.Found(b"one", STAT, ["x", "y"])
    assert isinstance(refused, wire.Refused)
    assert str(refused) == "NO_NODE"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_answer_with_another_number_of_results_is_malformed(count: int) -> None:
    request = messages.Multi([messages.Delete("/a", -1)] * 2)
    with pytest.raises(wire.Malformed):
        request.answer(wire.Reader(result(2, b"") * count + END))


REQUESTS = st.sampled_from(
    [
        messages.Create("/a", b"", ACL, 0),
        messages.GetData("/a"),
        messages.GetChildren("/a"),
        messages.Exists("/a"),
        messages.Multi([messages.SetData("/a", b"", 1)]),
        messages.ReadMany(["/a"]),
    ]
)


@given(REQUESTS, st.binary(max_size=200))
def test_what_is_no_answer_is_malformed_and_nothing_else(request: wire.Request, data: bytes) -> None:
    try:
        request.answer(wire.Reader(data))
        wire.read_connected(data)
        wire.read_event(wire.Reader(data))
    except wire.Malformed:
        pass


def test_an_error_that_we_do_not_know_is_told_by_its_number() -> None:
    assert str(wire.Refused(-999)) == "error -999"
