"""The proxy in front of Apache Kafka: it knows a cluster by its protocol only."""

from collections.abc import Iterator

import pytest

from simulation.apache.apache_kafka import ApacheKafka
from tests.rest.proxies import JSON, RestProxy


@pytest.fixture(scope="module")
def in_front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestProxy]:
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), quick=True) as kafka:
        proxy = RestProxy(tmp_path_factory.mktemp("rest"), kafka.bootstrap)
        yield proxy
        assert proxy.close() == 0
        assert "Traceback" not in proxy.log, proxy.log


def test_topics_are_made_written_read_and_committed(in_front: RestProxy) -> None:
    assert [one["offset"] for one in in_front.produce("made-by-writing", 1, 2).json()["offsets"]] == [0, 1]
    assert (
        in_front.post("/topics/no%20topic", {"records": [{"value": 1}]}, JSON).json()["error_code"] == 40401
    )
    instance = in_front.instance("group")
    instance.subscribe("made-by-writing")
    # Kafka waits 3 s for more members of a new group; so does the first read.
    assert [one["value"] for one in instance.records()] == [1, 2]
    assert instance.post("offsets", b"").status == 200
    (told,) = instance.get("offsets?partition=made-by-writing:0").json()["offsets"]
    assert told["offset"] == 2
    assert instance.delete().status == 204


def test_the_cluster_is_seen_and_changed(in_front: RestProxy) -> None:
    (cluster,) = in_front.get("/v3/clusters").json()["data"]
    at = f"/v3/clusters/{cluster['cluster_id']}"
    assert in_front.ask("POST", f"{at}/topics", {"topic_name": "made", "partitions_count": 2}).status == 201
    for path in (
        "/topics", "/topics/made", "/topics/made/configs", "/topics/made/partitions/1/offset", "/brokers",
        "/brokers/1/configs", "/broker-configs", "/consumer-groups", "/topics/-/partitions/-/reassignment",
    ):  # fmt: skip
        assert in_front.get(at + path).status == 200, path
    assert in_front.ask("PUT", f"{at}/topics/made/configs/retention.ms", {"value": "1000"}).status == 204
    assert in_front.ask("PATCH", f"{at}/topics/made", {"partitions_count": 3}).status == 200
    answer = in_front.ask(
        "POST", f"{at}/topics/made/records", {"partition_id": 2, "value": {"type": "JSON", "data": 1}}
    )
    assert (answer.json()["error_code"], answer.json()["partition_id"]) == (200, 2)
    assert in_front.ask("DELETE", f"{at}/topics/made").status == 204
