"""v2: consumer instances, from their making to their end."""

import base64
import json
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.rest.proxies import BINARY, JSON, TIMEOUT_S, V2, Instance, RestProxy


def test_the_documented_requests_are_answered(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert proxy.produce(topic, {"foo": "bar"}).status == 200
    made = proxy.post(
        f"/consumers/group-of-{topic}",
        {"name": "my_consumer", "format": "json", "auto.offset.reset": "earliest"},
    )
    base = f"http://127.0.0.1:{proxy.port}/consumers/group-of-{topic}/instances/my_consumer"
    assert made.json() == {"instance_id": "my_consumer", "base_uri": base}
    instance = Instance(proxy, made.json())
    assert instance.post("subscription", {"topics": [topic]}).status == 204
    read = instance.get("records", Accept=JSON)
    assert (read.status, read.headers["content-type"]) == (200, JSON)
    (record,) = read.json()
    assert record.pop("timestamp") > 0
    assert record == {
        "topic": topic, "key": None, "value": {"foo": "bar"}, "partition": 0, "offset": 0, "headers": [],
    }  # fmt: skip
    assert instance.get("subscription").json() == {"topics": [topic]}
    assert instance.get("assignments").json() == {"partitions": [{"topic": topic, "partition": 0}]}
    assert instance.post("offsets", b"").json() == []
    partitions = {"partitions": [{"topic": topic, "partition": 0}]}
    committed = {"offsets": [{"topic": topic, "partition": 0, "offset": 1, "metadata": ""}]}
    asked = proxy.ask("GET", f"{instance.path}/offsets", partitions, {"Content-Type": V2})
    assert asked.json() == committed
    assert instance.get(f"offsets?partition={topic}:0").json() == committed
    assert instance.delete("subscription").status == 204
    assert instance.get("subscription").json() == {"topics": []}
    assert instance.delete().status == 204
    assert instance.delete().json()["error_code"] == 40403


def test_binary_values_have_keys_headers_and_timestamps(
    proxy: RestProxy, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"\x00\xff", b"key", headers=[("trace", b"1"), ("none", None)], timestamp=1234567)
    producer.flush(TIMEOUT_S)
    instance = proxy.instance(topic, format="binary")
    instance.subscribe(topic)
    (record,) = instance.records()
    assert base64.b64decode(record["value"]) == b"\x00\xff"
    assert base64.b64decode(record["key"]) == b"key"
    assert record["headers"] == [{"name": "trace", "value": "MQ=="}, {"name": "none", "value": None}]
    assert record["timestamp"] == 1234567
    instance.delete()


def test_json_comes_out_as_it_is_in_the_record(
    proxy: RestProxy, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    deep = "[" * 600 + "]" * 600
    for value in ('{"n": 123456789012345678901234567890}', deep):
        producer.produce(topic, value)
    producer.flush(TIMEOUT_S)
    instance = proxy.instance(topic)
    instance.subscribe(topic)
    first, second = instance.values_until(2)
    assert first == {"n": 123456789012345678901234567890}
    assert json.dumps(second) == deep
    instance.delete()


def test_a_read_ends_before_the_record_that_is_too_much(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic()
    proxy.produce(topic, *("x" * 98 for _ in range(10)))  # 100 bytes each, with the quotes
    instance = proxy.instance(topic)
    instance.subscribe(topic)
    assert [one["offset"] for one in instance.records("?max_bytes=350")] == [0, 1, 2]
    assert [one["offset"] for one in instance.records("?max_bytes=1")] == [3]
    assert [one["offset"] for one in instance.records()] == [4, 5, 6, 7, 8, 9]
    started_s = time.monotonic()
    assert instance.records("?timeout=200") == []
    assert time.monotonic() - started_s < TIMEOUT_S / 2
    instance.delete()


def test_positions_are_moved(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for value in range(5):
        proxy.produce(topic, value)
    instance = proxy.instance(topic)
    here = {"topic": topic, "partition": 0}
    refused = instance.post("positions", {"offsets": [{**here, "offset": 1}]})
    assert (refused.status, refused.json()["error_code"]) == (409, 40903)
    instance.subscribe(topic)
    assert instance.values_until(5) == [0, 1, 2, 3, 4]
    assert instance.post("positions", {"offsets": [{**here, "offset": 3}]}).status == 204
    assert instance.values_until(2) == [3, 4]
    assert instance.post("positions/beginning", {"partitions": [here]}).status == 204
    assert instance.records()[0]["offset"] == 0
    assert instance.post("positions/end", {"partitions": [here]}).status == 204
    assert instance.records("?timeout=100") == []
    proxy.produce(topic, "new")
    assert instance.values_until(1) == ["new"]
    early = {"timestamps": [{**here, "timestamp": "2001-01-01T00:00:00Z"}]}
    assert instance.post("positions", early).status == 204
    assert instance.records()[0]["offset"] == 0
    never = {"timestamps": [{**here, "timestamp": "yesterday"}]}
    assert instance.post("positions", never).status == 400
    instance.delete()


def test_a_committed_offset_is_that_of_the_last_record(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic()
    proxy.produce(topic, *range(10))
    first = proxy.instance(topic, auto_commit_enable="false")
    first.subscribe(topic)
    assert first.values_until(10) == list(range(10))
    offset = {"topic": topic, "partition": 0, "offset": 4, "metadata": "so far"}
    assert first.post("offsets", {"offsets": [offset]}).status == 200
    (told,) = first.get(f"offsets?partition={topic}:0").json()["offsets"]
    assert told == {**offset, "offset": 5}
    first.delete()
    second = proxy.instance(topic)
    second.subscribe(topic)
    assert second.values_until(5) == [5, 6, 7, 8, 9]
    second.delete()


def test_partitions_are_taken_by_hand(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    for partition in (0, 1):
        body = {"records": [{"value": partition}]}
        assert proxy.post(f"/topics/{topic}/partitions/{partition}", body, JSON).status == 200
    instance = proxy.instance(topic)
    assert instance.post("assignments", {"partitions": [{"topic": topic, "partition": 1}]}).status == 204
    assert instance.values_until(1) == [1]
    assert instance.get("assignments").json() == {"partitions": [{"topic": topic, "partition": 1}]}
    refused = instance.post("subscription", {"topics": [topic]})
    assert (refused.status, refused.json()["error_code"]) == (409, 40903)
    instance.delete()


@pytest.mark.parametrize("has_read", [False, True])
def test_partitions_are_taken_by_hand_after_a_subscription(
    proxy: RestProxy, make_topic: MakeTopic, has_read: bool
) -> None:
    """What the group says of the subscription comes late, and is not about them."""
    topic = make_topic()
    proxy.produce(topic, 1, 2, 3)
    instance = proxy.instance(topic)
    instance.subscribe(topic)
    if has_read:
        assert instance.values_until(3) == [1, 2, 3]
    here = {"topic": topic, "partition": 0}
    assert instance.delete("subscription").status == 204
    assert instance.post("assignments", {"partitions": [here]}).status == 204
    assert instance.post("positions/beginning", {"partitions": [here]}).status == 204
    assert instance.values_until(3) == [1, 2, 3]
    assert instance.get("assignments").json() == {"partitions": [here]}
    assert instance.post("offsets", {"offsets": [{**here, "offset": 2}]}).status == 200
    instance.delete()


def test_topics_are_found_by_a_pattern(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topics = [make_topic(), make_topic()]
    for topic in topics:
        proxy.produce(topic, topic)
    instance = proxy.instance(topics[0])
    prefix = topics[0].rpartition("-")[0]
    assert instance.post("subscription", {"topic_pattern": f"{prefix}-(0|1)"}).status == 204
    assert sorted(instance.values_until(2)) == sorted(topics)
    wrong = proxy.instance(f"{topics[0]}-2")
    assert wrong.post("subscription", {"topic_pattern": "("}).json()["error_code"] == 42204
    assert wrong.post("subscription", {"topic_pattern": "(a*)*b" * 20}).status == 204  # RE2 does not explode
    instance.delete()
    wrong.delete()


def test_two_instances_share_a_topic_though_one_does_not_read(
    proxy: RestProxy, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    first = proxy.instance(topic)
    first.subscribe(topic)
    assert first.records("?timeout=100") == []
    second = proxy.instance(topic)
    second.subscribe(topic)
    # The first one answers the rebalance while nobody reads from it.
    deadline_s = time.monotonic() + TIMEOUT_S
    while len(second.get("assignments").json()["partitions"]) != 1 and time.monotonic() < deadline_s:
        second.records("?timeout=100")
    for partition in (0, 1):
        proxy.post(f"/topics/{topic}/partitions/{partition}", {"records": [{"value": partition}]}, JSON)
    found = first.values_until(1) + second.values_until(1)
    assert sorted(found) == [0, 1]
    second.delete()
    first.delete()


def test_a_read_that_waits_ends_with_its_instance(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic()
    instance = proxy.instance(topic, consumer_request_timeout_ms=60000)
    instance.subscribe(topic)
    answers: list[int] = []
    reader = threading.Thread(target=lambda: answers.append(instance.get("records").status))
    reader.start()
    assert proxy.get("/topics").status == 200  # nobody else waits for it
    assert instance.delete().status == 204
    reader.join(TIMEOUT_S)
    assert answers in ([200], [404])  # 404 where the read had not begun


def test_the_format_is_that_of_the_instance(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic()
    proxy.produce(topic, 1)
    instance = proxy.instance(topic)
    instance.subscribe(topic)
    refused = instance.get("records", Accept=BINARY)
    assert (refused.status, refused.json()["error_code"]) == (406, 40601)
    assert instance.get("records", Accept="text/html").status == 406
    read = instance.get("records", Accept="*/*")
    assert (read.headers["content-type"], len(read.json())) == (JSON, 1)
    instance.delete()


def test_what_is_not_json_is_told_and_can_be_stepped_over(
    proxy: RestProxy, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in (b"1", b"no json", b"3"):
        producer.produce(topic, value)
    producer.flush(TIMEOUT_S)
    instance = proxy.instance(topic)
    instance.subscribe(topic)
    assert instance.values_until(1) == [1]
    refused = instance.get("records")
    assert (refused.status, refused.json()["error_code"]) == (500, 50002)
    assert f"{topic}-0 at offset 1" in refused.json()["message"]
    place = {"topic": topic, "partition": 0, "offset": 2}
    assert instance.post("positions", {"offsets": [place]}).status == 204
    assert instance.values_until(1) == [3]
    instance.delete()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"format": "xml"}, 422, 42204),
        ({"format": "avro"}, 422, 42204),  # this proxy has no registry
        ({"auto.offset.reset": "somewhere"}, 422, 42204),
        ({"auto.commit.enable": "perhaps"}, 422, 42204),
        ({"fetch.min.bytes": -2}, 400, 40001),
        ({"consumer.request.timeout.ms": -1}, 400, 40001),
        ({"consumer.request.timeout.ms": "soon"}, 400, 400),
        ({"name": "x" * 300}, 422, 42204),
        ({"format": 7}, 400, 400),
        ({"colour": "red"}, 422, 422),
        (b"{", 400, 400),
    ],
)
def test_settings_that_cannot_be_are_refused(proxy: RestProxy, body: object, status: int, code: int) -> None:
    answer = proxy.post("/consumers/refused", body)
    assert (answer.status, answer.json()["error_code"]) == (status, code), answer.body


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("subscription", {"topics": [1]}),
        ("subscription", {"topics": "t"}),
        ("assignments", {"partitions": [{"topic": "t"}]}),
        ("assignments", {"partitions": [{"topic": "t", "partition": -1}]}),
        ("positions", {"offsets": [{"topic": "t", "partition": 0, "offset": -5}]}),
        ("offsets", {"offsets": [{"topic": "t", "partition": 0, "offset": 1e30}]}),
        ("offsets", b"nonsense"),
        ("positions/end", {"partitions": [{"topic": "t", "partition": 0, "more": 1}]}),
    ],
)
def test_bodies_that_cannot_be_are_refused(proxy: RestProxy, what: str, body: object) -> None:
    instance = proxy.instance("refused-bodies")
    answer = instance.post(what, body)
    assert answer.status in (400, 422)
    assert "\n" not in answer.json()["message"]
    instance.delete()


def test_an_instance_has_its_name_once_and_is_found_in_its_group_only(proxy: RestProxy) -> None:
    assert proxy.post("/consumers/one-name", {"name": "a"}).status == 200
    again = proxy.post("/consumers/one-name", {"name": "a"})
    assert (again.status, again.json()["error_code"]) == (409, 40902)
    assert proxy.post("/consumers/other-name", {"name": "a"}).status == 200
    missing = proxy.get("/consumers/third-name/instances/a/records")
    assert (missing.status, missing.json()["error_code"]) == (404, 40403)
    made = proxy.post("/consumers/a%2Fb", b"").json()
    assert made["instance_id"].startswith("rest-consumer-one-")
    assert "/consumers/a%2Fb/instances/" in made["base_uri"]
    for group, name in (("one-name", "a"), ("other-name", "a"), ("a%2Fb", made["instance_id"])):
        assert proxy.ask("DELETE", f"/consumers/{group}/instances/{name}").status == 204


def test_instances_are_bounded_and_end_when_nobody_uses_them(
    broker: PenstockBroker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    limits = {"penstock.consumer.instance.limit": "5", "consumer.instance.timeout.ms": "1500"}
    proxy = RestProxy(tmp_path, broker.bootstrap, limits)
    try:
        answers = [proxy.post(f"/consumers/{topic}", b"") for _ in range(50)]
        assert [one.status for one in answers] == [200] * 5 + [429] * 45
        assert answers[-1].json()["error_code"] == 42901
        last = Instance(proxy, answers[4].json())
        deadline_s = time.monotonic() + TIMEOUT_S
        # Asking for it keeps it; so another one is asked for, by making one of the same name.
        while time.monotonic() < deadline_s:
            if proxy.post(f"/consumers/{topic}", {"name": last.id}).status == 200:
                break
            threading.Event().wait(0.1)
        assert proxy.get(f"{Instance(proxy, answers[0].json()).path}/subscription").status == 404
    finally:
        assert proxy.close() == 0


def test_a_bound_on_bytes_is_never_gone_over(
    broker: PenstockBroker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    proxy = RestProxy(tmp_path, broker.bootstrap, {"consumer.request.max.bytes": "1000"})
    try:
        proxy.produce(topic, *("x" * 398 for _ in range(5)))
        instance = proxy.instance(topic)
        instance.subscribe(topic)
        sizes = []
        while sum(sizes) < 5:
            sizes.append(len(json.loads(instance.get("records?max_bytes=100000").body)))
        assert sizes == [2, 2, 1]
    finally:
        assert proxy.close() == 0
