"""What is no request at all: random bytes, wrong sizes, unknown APIs and versions, frames that never end."""

import random
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.model.errors import ErrorCode
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.apis import APIS
from tests.hostile.message_maker import make
from tests.hostile.raw_client import (
    API_VERSIONS_KEY,
    OFFERED,
    Closed,
    RawClient,
    frame_of,
    header_of,
    message_class,
    read_response,
)

MEBIBYTE = 1024 * 1024


def closing_lines(broker: PenstockBroker) -> int:
    return broker.log_path.read_text().count("closing the connection from")


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    data=st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=100).map(lambda frame: struct.pack(">i", len(frame)) + frame),
        st.binary(max_size=100).map(lambda rest: b"\x00\x00\x00\x20\x00" + rest),
    )
)
def test_random_bytes_on_the_port_harm_nobody(hostile_broker: PenstockBroker, data: bytes) -> None:
    with RawClient(hostile_broker.port) as attacker, RawClient(hostile_broker.port) as other:
        attacker.send_bytes(data)
        assert other.is_served()
    assert hostile_broker.process.is_running
    assert "Traceback" not in hostile_broker.log_path.read_text()


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 1, 7, 100 * MEBIBYTE + 1, 2**31 - 1])
@pytest.mark.parametrize("in_pieces", [False, True], ids=["at once", "in pieces"])
def test_a_size_that_no_request_has_closes_the_connection_with_one_line(
    hostile_broker: PenstockBroker, size: int, in_pieces: bool
) -> None:
    before = closing_lines(hostile_broker)
    raw = struct.pack(">i", size) + b"x" * 16
    with RawClient(hostile_broker.port) as client:
        if in_pieces:
            client.send_bytes(raw[:2])
            with RawClient(hostile_broker.port) as other:
                assert other.is_served()  # by now the broker has read the first piece
        client.send_bytes(raw[2:] if in_pieces else raw)
        assert client.is_closed_by_the_broker()
    assert closing_lines(hostile_broker) == before + 1


@pytest.mark.parametrize("api_key", [-32768, -1, 999, 32767, 52, 58, 62])
def test_an_unknown_api_closes_the_connection_with_one_line(
    hostile_broker: PenstockBroker, api_key: int
) -> None:
    before = closing_lines(hostile_broker)
    with RawClient(hostile_broker.port) as client:
        client.send_frame(header_of(api_key, 0))
        assert client.is_closed_by_the_broker()
    assert closing_lines(hostile_broker) == before + 1


@pytest.mark.parametrize("api_key", sorted(APIS.keys() - OFFERED), ids=lambda key: APIS[key].name)
def test_what_brokers_say_to_one_another_closes_the_connection_to_a_broker_without_a_cluster(
    hostile_broker: PenstockBroker, api_key: int
) -> None:
    before = closing_lines(hostile_broker)
    api = APIS[api_key]
    for version in range(api.min_version, api.max_version + 1):
        request = make(message_class(api, "Request"), version, random.Random(version))
        with RawClient(hostile_broker.port) as client:
            client.send_frame(frame_of(request, version))
            assert client.is_closed_by_the_broker()
    assert closing_lines(hostile_broker) == before + 1 + api.max_version - api.min_version


@pytest.mark.parametrize(
    "api_key", [key for key in APIS if key != API_VERSIONS_KEY], ids=lambda key: APIS[key].name
)
def test_an_unknown_version_closes_the_connection(hostile_broker: PenstockBroker, api_key: int) -> None:
    api = APIS[api_key]
    for version in (-1, api.min_version - 1, api.max_version + 1, 32767):
        with RawClient(hostile_broker.port) as client:
            client.send_frame(header_of(api_key, version))
            assert client.is_closed_by_the_broker()


@pytest.mark.parametrize("version", [5, 99, 32767, -1, -32768])
def test_api_versions_of_an_unknown_version_is_answered_in_version_0(
    hostile_broker: PenstockBroker, version: int
) -> None:
    with RawClient(hostile_broker.port) as client:
        client.send_frame(header_of(API_VERSIONS_KEY, version) + b"\x00")
        response = read_response(API_VERSIONS_KEY, 0, client.read_frame())
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert {entry.api_key for entry in response.api_keys} == OFFERED
        assert client.is_served()  # on the same connection, in a version that both know


@pytest.mark.parametrize(
    "header",
    [
        struct.pack(">hhih", 18, 0, 1, -2),
        struct.pack(">hhih", 18, 0, 1, 32767) + b"raw",
        struct.pack(">hhih", 18, 0, 1, 2) + b"\xff\xfe",
        struct.pack(">hhi", 18, 0, 1),
        struct.pack(">hhih", 18, 3, 1, -1),
        struct.pack(">hhih", 18, 3, 1, -1) + b"\xff\xff\xff\xff\x0f",
        struct.pack(">hhih", 18, 3, 1, -1) + b"\x01\x00\xff\xff\xff\xff\x0f",
    ],
    ids=["negative", "too long", "not UTF-8", "cut off", "no tags", "endless tags", "endless tag"],
)
def test_a_header_that_cannot_be_read_closes_the_connection_with_one_line(
    hostile_broker: PenstockBroker, header: bytes
) -> None:
    before = closing_lines(hostile_broker)
    with RawClient(hostile_broker.port) as client:
        client.send_frame(header)
        assert client.is_closed_by_the_broker()
    assert closing_lines(hostile_broker) == before + 1


def test_good_requests_before_a_bad_one_are_answered(hostile_broker: PenstockBroker) -> None:
    with RawClient(hostile_broker.port) as client:
        good = header_of(API_VERSIONS_KEY, 0)
        client.send_bytes(3 * (struct.pack(">i", len(good)) + good))
        for _ in range(3):
            read_response(API_VERSIONS_KEY, 0, client.read_frame())
        client.send_frame(header_of(999, 0))
        with pytest.raises(Closed):
            client.read_frame()


def test_a_request_that_arrives_byte_by_byte_is_answered(hostile_broker: PenstockBroker) -> None:
    frame = header_of(3, 12) + b"\x01\x01\x00\x00"
    raw = struct.pack(">i", len(frame)) + frame
    with RawClient(hostile_broker.port) as slow, RawClient(hostile_broker.port) as other:
        for number in range(len(raw)):
            slow.send_bytes(raw[number : number + 1])
            assert other.is_served()
        read_response(3, 12, slow.read_frame())


def test_half_frames_on_500_connections_leave_the_others_alone(hostile_broker: PenstockBroker) -> None:
    frame = header_of(3, 12) + b"\x01\x01\x00\x00"
    raw = struct.pack(">i", len(frame)) + frame
    chance = random.Random(500)
    hanging = [RawClient(hostile_broker.port) for _ in range(500)]
    try:
        cuts = [chance.randrange(1, len(raw)) for _ in hanging]
        for client, cut in zip(hanging, cuts, strict=True):
            client.send_bytes(raw[:cut])
        with RawClient(hostile_broker.port) as other:
            for _ in range(100):
                assert other.is_served()
        for client, cut in zip(hanging, cuts, strict=True):
            client.send_bytes(raw[cut:])
        for client in hanging:
            read_response(3, 12, client.read_frame())
    finally:
        for client in hanging:
            client.close()


def test_frames_that_only_announce_100_megabytes_reserve_nothing(hostile_broker: PenstockBroker) -> None:
    before = hostile_broker.usage().resident_bytes
    announced = struct.pack(">i", 100 * MEBIBYTE) + header_of(0, 9) + b"x" * 100
    hanging = [RawClient(hostile_broker.port) for _ in range(1000)]
    try:
        for client in hanging:
            client.send_bytes(announced)
        with RawClient(hostile_broker.port) as other:
            assert other.is_served()
        grown = hostile_broker.usage().resident_bytes - before
        assert grown < 60 * MEBIBYTE, f"{grown / MEBIBYTE:.1f} MiB for 1,000 connections"
    finally:
        for client in hanging:
            client.close()


def test_a_client_that_asks_without_listening_is_not_read_from(hostile_broker: PenstockBroker) -> None:
    before = hostile_broker.usage().resident_bytes
    frame = header_of(3, 12) + b"\x00\x01\x00\x00"  # the metadata of all topics
    many = 1_000_000 * (struct.pack(">i", len(frame)) + frame)
    with RawClient(hostile_broker.port, timeout_s=0.3) as deaf, RawClient(hostile_broker.port) as other:
        with pytest.raises(TimeoutError):
            deaf.socket.sendall(many)
        assert other.is_served()
        grown = hostile_broker.usage().resident_bytes - before
        assert grown < 60 * MEBIBYTE, f"{grown / MEBIBYTE:.1f} MiB for one connection"


def test_an_ordinary_request_of_many_megabytes_is_refused(hostile_broker: PenstockBroker) -> None:
    before = hostile_broker.usage().peak_resident_bytes
    many = 3_000_000  # topics with empty names: a few bytes here, an object each there
    for version in (1, 9):
        frame = (
            header_of(3, version)
            + (struct.pack(">i", many) + b"\x00\x00" * many if version == 1 else b"\x00")
            + b"x" * 9 * MEBIBYTE
        )
        with RawClient(hostile_broker.port) as client:
            client.send_frame(frame)
            assert client.is_closed_by_the_broker()
    assert hostile_broker.usage().peak_resident_bytes - before < 200 * MEBIBYTE


EMPTY_TOPICS = {
    ("produce", 0, 3): struct.pack(">hhii", -1, 1, 1000, 9_000_000) + bytes(6) * 9_000_000,
    ("fetch", 1, 4): struct.pack(">iiiibi", -1, 0, 0, 1, 0, 9_000_000) + bytes(6) * 9_000_000,
    ("fetch", 1, 18): struct.pack(">iiibii", 0, 0, 1, 0, 0, -1)
    + b"\xff\xff\xff\x01"
    + (bytes(16) + b"\x01\x00") * 4_194_302,
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind,
            id=f"{kind[0]} version {kind[2]}",
        )
        for kind in EMPTY_TOPICS
    ],
)
def test_many_megabytes_of_empty_topics_neither_fill_memory_nor_stop_the_others(
    tmp_path: Path, kind: tuple[str, int, int]
) -> None:
    """Each costs a few bytes to send, and objects to keep."""
    _, api_key, version = kind
    broker = PenstockBroker(tmp_path)
    try:
        with RawClient(broker.port) as client, RawClient(broker.port, timeout_s=3) as other:
            assert other.is_served()
            before = broker.usage().peak_resident_bytes
            client.send_frame(header_of(api_key, version) + EMPTY_TOPICS[kind])
            assert other.is_served()
            assert client.is_closed_by_the_broker()
        assert broker.usage().peak_resident_bytes - before < 300 * MEBIBYTE
    finally:
        broker.kill()
