"""v2: topics, partitions, brokers, and records written. Confluent's documented requests and the codes of what is wrong."""

import base64

import pytest

from tests.conftest import MakeTopic
from tests.rest.proxies import BINARY, JSON, V2, RestProxy

AVRO = "application/vnd.kafka.avro.v2+json"


def test_the_documented_requests_are_answered(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    written = proxy.post(f"/topics/{topic}", {"records": [{"value": {"foo": "bar"}, "partition": 1}]}, JSON)
    assert (written.status, written.headers["content-type"]) == (200, V2)
    assert written.json() == {
        "offsets": [{"partition": 1, "offset": 0, "error_code": None, "error": None}],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    assert topic in proxy.get("/topics").json()
    found = proxy.get(f"/topics/{topic}").json()
    assert (found["name"], found["configs"]["cleanup.policy"]) == (topic, "delete")
    replica = {"broker": 1, "leader": True, "in_sync": True}
    assert found["partitions"] == [{"partition": n, "leader": 1, "replicas": [replica]} for n in (0, 1)]
    assert proxy.get(f"/topics/{topic}/partitions").json() == found["partitions"]
    assert proxy.get(f"/topics/{topic}/partitions/1").json() == found["partitions"][1]
    spans = proxy.get(f"/topics/{topic}/partitions/1/offsets").json()
    assert spans == {"beginning_offset": 0, "end_offset": 1}
    assert proxy.get("/brokers").json() == {"brokers": [1]}
    assert proxy.get("/").json() == {}


def test_records_are_written_in_order_and_by_key(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    records = [{"key": base64.b64encode(b"key-%d" % (n % 7)).decode(), "value": "YQ=="} for n in range(2000)]
    offsets = proxy.post(f"/topics/{topic}", {"records": records}, BINARY).json()["offsets"]
    assert len(offsets) == 2000
    for partition in range(3):
        mine = [one["offset"] for one in offsets if one["partition"] == partition]
        assert mine == list(range(len(mine)))
    by_key = {(record["key"], one["partition"]) for record, one in zip(records, offsets, strict=True)}
    assert len(by_key) == 7


def test_a_partition_is_written_to(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    records = {"records": [{"key": "a2V5", "value": "Y29uZmx1ZW50"}, {"value": "a2Fma2E="}, {"value": None}]}
    for first in (0, 3):
        answer = proxy.post(f"/topics/{topic}/partitions/1", records, V2).json()
        assert [one["offset"] for one in answer["offsets"]] == [first, first + 1, first + 2]
    assert proxy.get(f"/topics/{topic}/partitions/0/offsets").json()["end_offset"] == 0


def test_a_topic_is_made_where_the_brokers_make_topics(proxy: RestProxy, topic_name: str) -> None:
    assert proxy.produce(topic_name, 1).json()["offsets"][0]["offset"] == 0


@pytest.mark.parametrize(
    ("path", "body", "content", "status", "code"),
    [
        ("/topics/{topic}", b"{", JSON, 400, 400),
        ("/topics/{topic}", b"\xff\xfe", JSON, 400, 400),
        ("/topics/{topic}", b"", JSON, 422, 42206),
        ("/topics/{topic}", [], JSON, 400, 400),
        ("/topics/{topic}", {"records": []}, JSON, 422, 422),
        ("/topics/{topic}", {"records": [1]}, JSON, 400, 400),
        ("/topics/{topic}", {"records": "x"}, JSON, 400, 400),
        ("/topics/{topic}", {"rows": [{"value": 1}]}, JSON, 422, 422),
        ("/topics/{topic}", {"records": [{"worth": 1}]}, JSON, 422, 422),
        ("/topics/{topic}", {"records": [{"value": 1, "partition": "one"}]}, JSON, 400, 400),
        ("/topics/{topic}", {"records": [{"value": 1, "partition": -1}]}, JSON, 422, 422),
        ("/topics/{topic}", b'{"records":[{"value":' + b"[" * 600 + b"]" * 600 + b"}]}", JSON, 422, 42203),
        ("/topics/{topic}", b'{"records":[{"value":' + b"[" * 600 + b"]" * 600 + b"}]}", BINARY, 400, 400),
        ("/topics/{topic}", b'{"records":[{"value":' + b"[" * 9000 + b"]" * 9000 + b"}]}", JSON, 400, 400),
        ("/topics/{topic}", {"records": [{"value": "?"}]}, BINARY, 400, 400),
        ("/topics/{topic}", {"records": [{"value": "YQ==="}]}, BINARY, 400, 400),
        ("/topics/{topic}", {"records": [{"value": {"a": 1}}]}, BINARY, 400, 400),
        ("/topics/{topic}", {"records": [{"value": 1}]}, "application/json", 415, 415),
        ("/topics/{topic}", {"records": [{"value": 1}]}, "application/x-www-form-urlencoded", 415, 415),
        ("/topics/{topic}", {"records": [{"value": 1}]}, AVRO, 422, 42202),
        ("/topics/{topic}", {"value_schema_id": 1, "records": [{"key": 1, "value": 1}]}, AVRO, 422, 42201),
        ("/topics/{topic}", {"value_schema_id": 1, "records": [{"value": 1}]}, AVRO, 422, 42206),
        ("/topics/{topic}/partitions/7", {"records": [{"value": 1}]}, JSON, 404, 40402),
        ("/topics/{topic}/partitions/x", {"records": [{"value": 1}]}, JSON, 404, 404),
        ("/topics/{topic}/partitions/0", {"records": [{"value": 1, "partition": 0}]}, JSON, 422, 422),
        ("/topics/no%20topic", {"records": [{"value": 1}]}, JSON, 404, 40401),
        ("/topics/a%2Fb", {"records": [{"value": 1}]}, JSON, 404, 40401),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused_and_nothing_is_written(
    proxy: RestProxy, make_topic: MakeTopic, path: str, body: object, content: str, status: int, code: int
) -> None:
    topic = make_topic()
    answer = proxy.post(path.format(topic=topic), body, content)
    assert (answer.status, answer.json()["error_code"]) == (status, code), answer.body
    assert "\n" not in answer.json()["message"]
    assert proxy.get(f"/topics/{topic}/partitions/0/offsets").json()["end_offset"] == 0


def test_one_bad_record_does_not_hold_back_the_others(proxy: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"max.message.bytes": "1000"})
    body = {
        "records": [{"value": "a"}, {"value": "x" * 5000}, {"value": "b", "partition": 9}, {"value": "c"}]
    }
    offsets = proxy.post(f"/topics/{topic}", body, JSON).json()["offsets"]
    assert offsets[1]["error_code"] == 50002
    assert offsets[2]["error_code"] == 50002
    assert "no partition 9" in offsets[2]["error"]
    assert [offsets[n]["error_code"] for n in (0, 3)] == [None, None]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/topics/nowhere-to-be-found", 40401),
        ("/topics/nowhere-to-be-found/partitions", 40401),
        ("/topics/nowhere-to-be-found/partitions/0", 40401),
        ("/topics/nowhere-to-be-found/partitions/0/offsets", 40401),
        ("/topics/{topic}/partitions/1", 40402),
        ("/topics/{topic}/partitions/1/offsets", 40402),
        ("/topics/{topic}/partitions/99999999999", 404),
        ("/subjects", 404),
    ],
)
def test_what_is_not_there_is_said_to_be(
    proxy: RestProxy, make_topic: MakeTopic, path: str, code: int
) -> None:
    answer = proxy.get(path.format(topic=make_topic()))
    assert (answer.status, answer.json()["error_code"]) == (404, code)


def test_a_partition_that_is_new_is_written_to(
    proxy: RestProxy, make_topic: MakeTopic, cluster_path: str
) -> None:
    topic = make_topic()
    assert proxy.produce(topic, 1).status == 200
    grown = proxy.ask("PATCH", f"{cluster_path}/topics/{topic}", {"partitions_count": 2})
    assert grown.status == 200
    record = {"records": [{"value": 1, "partition": 1}]}
    assert proxy.post(f"/topics/{topic}", record, JSON).json()["offsets"][0] == {
        "partition": 1, "offset": 0, "error_code": None, "error": None,
    }  # fmt: skip
