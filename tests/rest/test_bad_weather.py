"""Requests that are too large, never end, or come in numbers; and a cluster that is away."""

import socket
import threading
import time
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_port
from tests.conftest import MakeTopic, StartBroker
from tests.rest.proxies import JSON, TIMEOUT_S, RestProxy


def test_bodies_are_bounded(
    broker: PenstockBroker, make_topic: MakeTopic, tmp_path: Path, cluster_path: str
) -> None:
    topic = make_topic()
    proxy = RestProxy(
        tmp_path,
        broker.bootstrap,
        {"penstock.request.max.bytes": "10000", "penstock.request.timeout.ms": "1000"},
    )
    try:
        assert proxy.produce(topic, "x" * 20000).json()["error_code"] == 413
        # Of a stream each record is bounded, not the whole.
        at = f"{cluster_path}/topics/{topic}/records"
        records = b'{"value":{"type":"STRING","data":"%s"}}' % (b"x" * 5000)
        answers = proxy.post(at, records * 10, "application/json").body.splitlines()
        assert len(answers) == 10
        large = b'{"value":{"type":"STRING","data":"%s"}}' % (b"x" * 20000)
        assert b'"error_code":413' in proxy.post(at, large, "application/json").body
        deep = b'{"a":' * 4000
        assert b'"error_code":4' in proxy.post(at, deep, "application/json").body
        # A body that stops in the middle ends with the request's time.
        head = (
            f"POST /topics/{topic} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\ncontent-length: 100\r\n\r\n"
        )
        assert b" 408 " in proxy.raw(head.encode() + b'{"records":[')
        assert proxy.get(f"/topics/{topic}/partitions/0/offsets").json()["end_offset"] == 10
    finally:
        assert proxy.close() == 0


def test_a_client_that_leaves_in_the_middle_of_a_stream_leaves_nothing_behind(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    head = f"POST {cluster_path}/topics/{topic}/records HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    record = b'{"value":{"type":"STRING","data":"a"}}'
    for rest in (b"", record, record + b'{"value":'):
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=TIMEOUT_S) as stream:
            stream.sendall(head.encode())
            if rest:
                stream.sendall(b"%x\r\n%s\r\n" % (len(rest), rest))
                stream.recv(100)
    deadline_s = time.monotonic() + TIMEOUT_S
    while b"_in_flight 1.0" not in proxy.get("/metrics").body and time.monotonic() < deadline_s:
        threading.Event().wait(0.02)
    assert b"_in_flight 1.0" in proxy.get("/metrics").body


def test_a_slow_reader_and_a_large_request_hold_up_no_other(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic, empty = make_topic(), make_topic()
    waiting = proxy.instance(empty, consumer_request_timeout_ms=60000)
    waiting.subscribe(empty)
    readers = [threading.Thread(target=waiting.records) for _ in range(3)]
    large = threading.Thread(target=lambda: proxy.produce(topic, *range(200_000)))
    for thread in (*readers, large):
        thread.start()
    answers = 0
    while large.is_alive():
        assert proxy.get("/brokers").status == 200
        answers += 1
    large.join(TIMEOUT_S)
    assert answers > 3
    assert proxy.get(f"/topics/{topic}/partitions/0/offsets").json()["end_offset"] == 200_000
    waiting.delete()
    for thread in readers:
        thread.join(TIMEOUT_S)


def test_a_cluster_that_is_away_is_told_and_comes_back(start_broker: StartBroker, tmp_path: Path) -> None:
    port = free_port()
    properties = {"producer.delivery.timeout.ms": "1000", "producer.request.timeout.ms": "500"}
    proxy = RestProxy(tmp_path / "rest", f"127.0.0.1:{port}", properties)
    try:
        for answer in (
            proxy.get("/topics"),
            proxy.get("/v3/clusters"),
            proxy.produce("topic", 1),
            proxy.post("/consumers/g", b""),
        ):
            assert (answer.status, answer.json()["error_code"]) == (503, 50302)
        assert proxy.get("/health").json()["status"] == "DOWN"
        broker = start_broker(port=port)
        assert proxy.get("/topics").json() == []
        assert proxy.produce("topic", 1).json()["offsets"][0]["offset"] == 0
        broker.stop()
        (told,) = proxy.produce("topic", 2).json()["offsets"]
        assert told["error_code"] == 50003
        again = start_broker(port=port)
        assert again.port == port
        deadline_s = time.monotonic() + TIMEOUT_S
        while proxy.produce("topic", 3).json()["offsets"][0]["error_code"] and time.monotonic() < deadline_s:
            pass
        assert proxy.produce("topic", 4).json()["offsets"][0]["error_code"] is None
    finally:
        assert proxy.close() == 0


@pytest.mark.parametrize("name", ["api.v2.enable", "api.v3.enable"])
def test_each_version_can_be_switched_off(broker: PenstockBroker, tmp_path: Path, name: str) -> None:
    proxy = RestProxy(
        tmp_path, broker.bootstrap, {name: "false", "consumer.theads": "1", "bootstrap.server": "x"}
    )
    try:
        found = proxy.get("/topics").status, proxy.get("/v3/clusters").status
        assert found == ((404, 200) if name == "api.v2.enable" else (200, 404))
        assert "there is no property bootstrap.server; did you mean bootstrap.servers?" in proxy.log
    finally:
        assert proxy.close() == 0


def test_links_lead_to_where_the_proxy_says_that_it_is(broker: PenstockBroker, tmp_path: Path) -> None:
    proxy = RestProxy(tmp_path, broker.bootstrap, {"advertised.listeners": "https://rest.example.com:8443"})
    try:
        made = proxy.post("/consumers/g", {"name": "a"}).json()
        assert made["base_uri"] == "https://rest.example.com:8443/consumers/g/instances/a"
        (cluster,) = proxy.get("/v3/clusters").json()["data"]
        assert cluster["metadata"]["self"].startswith("https://rest.example.com:8443/v3/clusters/")
    finally:
        assert proxy.close() == 0
