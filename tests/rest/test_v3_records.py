"""v3: records as a stream of objects, and in small batches."""

import base64
import json
import socket
from typing import Any

import pytest
from confluent_kafka import Consumer

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.rest.proxies import TIMEOUT_S, RestProxy

OBJECT = "application/json"


def told(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.splitlines()]


def test_a_record_has_key_value_headers_and_a_time(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic, broker: PenstockBroker
) -> None:
    topic = make_topic(partitions=2)
    record = {
        "partition_id": 1,
        "headers": [{"name": "Header-1", "value": base64.b64encode(b"one").decode()}, {"name": "none"}],
        "key": {"type": "BINARY", "data": "Zm9vYmFy"},
        "value": {"type": "JSON", "data": {"foo": "bar"}},
        "timestamp": "2021-02-05T19:14:42.017Z",
    }
    answer = proxy.post(f"{cluster_path}/topics/{topic}/records", record, OBJECT)
    assert answer.status == 200
    assert answer.json() == {
        "error_code": 200,
        "cluster_id": cluster_path.rpartition("/")[2],
        "topic_name": topic,
        "partition_id": 1,
        "offset": 0,
        "timestamp": "2021-02-05T19:14:42.017Z",
        "key": {"type": "BINARY", "size": 6},
        "value": {"type": "JSON", "size": 13},
    }
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    message = consumer.poll(TIMEOUT_S)
    consumer.close()
    assert message is not None
    assert (message.key(), message.value(), message.timestamp()[1]) == (
        b"foobar", b'{"foo":"bar"}', 1612552482017,
    )  # fmt: skip
    assert message.headers() == [("Header-1", b"one"), ("none", None)]


def test_records_of_a_stream_are_answered_while_it_is_open(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=TIMEOUT_S) as stream:
        head = f"POST {cluster_path}/topics/{topic}/records HTTP/1.1\r\nhost: x\r\n"
        stream.sendall(f"{head}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        for offset in range(3):
            record = b'{"value":{"type":"STRING","data":"}{\\"\\\\"}}'
            # Cut in the middle: what has come is kept.
            for piece in (record[:30], record[30:]):
                stream.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            found = b""
            while b'"value"' not in found:
                found += stream.recv(65536)
            assert b'"offset":%d,' % offset in found
        stream.sendall(b"0\r\n\r\n")
        assert stream.recv(65536).endswith(b"0\r\n\r\n")


def test_errors_stand_in_the_place_of_their_records(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    body = (
        b'{"value":{"type":"STRING","data":"a"}} {"value":{"type":"BINARY","data":1}}\n'
        b'{"value":{"type":"BINARY","data":"?"}}{x}{"worth":1},{"partition_id":5}{"partition_id":-1}'
        b'{"value":{"type":"AVRO","data":1}}{"value":{"type":"AVRO","schema":"\\"int\\"","data":1}}'
        b'{"value":{"data":1}}{"value":{"type":"JSON","schema":"{}","data":1}}'
        b'{"headers":[{"name":"h","value":"?"}]}{"timestamp":"soon"}{"key":7}{"value":{"type":"STRING","data":1}}'
        b'{"value":{"type":"STRING","data":"b"}} rubbish {"value":{"type":"STRING","data":"c"}}'
    )
    answers = told(proxy.post(f"{cluster_path}/topics/{topic}/records", body, OBJECT).body)
    assert [one["error_code"] for one in answers] == [
        200, 400, 400, 400, 422, 40402, 40402, 400, 42206, 42206, 400, 400, 400, 400, 400, 200, 400,
    ]  # fmt: skip
    assert [one["offset"] for one in answers if one["error_code"] == 200] == [0, 1]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, 42206),
        (b" \n ", 422, 42206),
        (b"[1]", 200, 400),
        (b'{"value":', 200, 400),
        (b'{"a', 200, 400),
    ],
)
def test_a_stream_without_a_record_is_refused(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic, body: bytes, status: int, code: int
) -> None:
    answer = proxy.post(f"{cluster_path}/topics/{make_topic()}/records", body, OBJECT)
    assert (answer.status, answer.json()["error_code"]) == (status, code)


def test_a_topic_that_cannot_be_is_told_before_the_stream(proxy: RestProxy, cluster_path: str) -> None:
    answer = proxy.post(f"{cluster_path}/topics/no%20topic/records", b"{}", OBJECT)
    assert (answer.status, answer.json()["error_code"]) == (404, 40403)


def test_a_record_that_is_too_large_is_told(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic
) -> None:
    at = f"{cluster_path}/topics/{make_topic(configs={'max.message.bytes': '1000'})}/records"
    for size in (5000, 2_000_000):  # for the topic; for the producer
        record = {"value": {"type": "STRING", "data": "x" * size}}
        assert proxy.post(at, record, OBJECT).json()["error_code"] == 413


def test_many_records_of_one_stream_keep_their_order(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    body = b"".join(b'{"value":{"type":"JSON","data":%d}}' % n for n in range(5000))
    answers = told(proxy.post(f"{cluster_path}/topics/{topic}/records", body, OBJECT).body)
    assert [one["offset"] for one in answers] == list(range(5000))


def test_a_batch_tells_what_was_written_and_what_was_not(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic
) -> None:
    at = f"{cluster_path}/topics/{make_topic()}/records:batch"
    entries = [
        {"id": "1", "value": {"type": "JSON", "data": {"a": 1}}},
        {"id": "2", "value": {"type": "BINARY", "data": "?"}},
        {"id": "3", "worth": 1},
    ]
    answer = proxy.post(at, {"entries": entries}, OBJECT)
    assert answer.status == 207
    (written,) = answer.json()["successes"]
    assert (written["id"], written["offset"], "error_code" in written) == ("1", 0, False)
    assert [(one["id"], one["error_code"]) for one in answer.json()["failures"]] == [("2", 400), ("3", 422)]


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"id": str(n)} for n in range(11)],
        [{"id": "a"}, {"id": "a"}],
        [{"id": ""}],
        [{"id": 7}],
        [{}],
        [3],
    ],
)
def test_batches_that_cannot_be_are_refused(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic, entries: object
) -> None:
    answer = proxy.post(f"{cluster_path}/topics/{make_topic()}/records:batch", {"entries": entries}, OBJECT)
    assert (answer.status, answer.json()["error_code"]) == (422, 42208)
