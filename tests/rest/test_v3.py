"""v3: the cluster as resources. Confluent's documented requests, and the codes of what is wrong."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.rest.proxies import JSON, RestProxy


def test_the_cluster_and_its_brokers_have_links_that_lead_somewhere(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic
) -> None:
    make_topic()
    clusters = proxy.get("/v3/clusters").json()
    assert (clusters["kind"], clusters["metadata"]["next"]) == ("KafkaClusterList", None)
    (cluster,) = clusters["data"]
    assert proxy.get(cluster_path).json() == cluster
    assert cluster["metadata"] == {
        "self": proxy.url + cluster_path, "resource_name": f"crn:///kafka={cluster['cluster_id']}",
    }  # fmt: skip
    links = [cluster["controller"]]
    links += [cluster[name] for name in ("brokers", "broker_configs", "consumer_groups", "topics")]
    links += [cluster["partition_reassignments"]]
    (broker,) = proxy.get(f"{cluster_path}/brokers").json()["data"]
    assert proxy.get(f"{cluster_path}/brokers/1").json() == broker
    links += [broker["configs"], broker["partition_replicas"]]
    for link in links:
        assert proxy.get(link["related"].removeprefix(proxy.url)).status == 200, link


def test_a_topic_is_made_grown_and_deleted(proxy: RestProxy, cluster_path: str, topic_name: str) -> None:
    wanted = {
        "topic_name": topic_name, "partitions_count": 2, "replication_factor": 1,
        "configs": [{"name": "retention.ms", "value": "1000000"}],
    }  # fmt: skip
    at = f"{cluster_path}/topics"
    tried = proxy.ask("POST", at, {**wanted, "validate_only": True})
    assert (tried.status, tried.json()["partitions_count"]) == (200, 2)
    assert proxy.get(f"{at}/{topic_name}").json()["error_code"] == 40403
    defaults = proxy.ask("POST", at, {"topic_name": topic_name, "validate_only": True})
    assert defaults.status == 200
    assert (defaults.json()["partitions_count"], defaults.json()["replication_factor"]) == (1, 1)
    placed = {"topic_name": topic_name, "validate_only": True, "replicas_assignments": {"0": [1], "1": [1]}}
    assert proxy.ask("POST", at, placed).json()["partitions_count"] == 2
    made = proxy.ask("POST", at, wanted)
    assert (made.status, made.headers["location"]) == (201, f"{proxy.url}{at}/{topic_name}")
    found = proxy.get(f"{at}/{topic_name}").json()
    assert found == made.json()
    assert (found["kind"], found["is_internal"], found["replication_factor"]) == ("KafkaTopic", False, 1)
    assert found["metadata"]["resource_name"].endswith(f"/topic={topic_name}")
    again = proxy.ask("POST", at, wanted)
    assert (again.status, again.json()["error_code"]) == (400, 40002)
    assert proxy.ask("PATCH", f"{at}/{topic_name}", {"partitions_count": 3}).json()["partitions_count"] == 3
    fewer = proxy.ask("PATCH", f"{at}/{topic_name}", {"partitions_count": 1})
    assert (fewer.status, fewer.json()["error_code"]) == (400, 40002)
    assert proxy.ask("DELETE", f"{at}/{topic_name}").status == 204
    assert proxy.ask("DELETE", f"{at}/{topic_name}").json()["error_code"] == 40403


@pytest.mark.parametrize(
    "wrong",
    [
        {"replication_factor": 7},
        {"partitions_count": 0},
        {"partitions_count": "many"},
        {"configs": [{"name": "no.such.config", "value": "1"}]},
        {"configs": [{"name": "retention.ms", "value": "soon"}]},
        {"replicas_assignments": {"0": [9]}},
        {"replicas_assignments": {"1": [1]}},
        {"replicas_assignments": {"x": [1]}},
        {"topic_name": "no/topic"},
    ],
)
def test_topics_that_cannot_be_are_refused(
    proxy: RestProxy, cluster_path: str, topic_name: str, wrong: dict[str, object]
) -> None:
    answer = proxy.ask("POST", f"{cluster_path}/topics", {"topic_name": topic_name, **wrong})
    assert (answer.status, answer.json()["error_code"] in (400, 40002)) == (400, True), answer.body


def test_replicas_are_placed_by_hand(proxy: RestProxy, cluster_path: str, topic_name: str) -> None:
    wanted = {"topic_name": topic_name, "replicas_assignments": {"0": [1], "1": [1]}}
    assert proxy.ask("POST", f"{cluster_path}/topics", wanted).json()["partitions_count"] == 2


def test_what_the_caller_may_do_is_told_where_it_is_asked_for(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic
) -> None:
    at = f"{cluster_path}/topics/{make_topic()}"
    assert proxy.get(at).json()["authorized_operations"] == []
    assert "READ" in proxy.get(f"{at}?include_authorized_operations=true").json()["authorized_operations"]


def test_partitions_have_replicas_offsets_and_a_leader(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    proxy.post(f"/topics/{topic}/partitions/1", {"records": [{"value": 1}]}, JSON)
    at = f"{cluster_path}/topics/{topic}/partitions"
    data = proxy.get(at).json()["data"]
    assert [one["partition_id"] for one in data] == [0, 1]
    assert proxy.get(f"{at}/1").json() == data[1]
    assert data[1]["leader"]["related"] == f"{proxy.url}{at}/1/replicas/1"
    replica = proxy.get(f"{at}/1/replicas/1").json()
    assert (replica["is_leader"], replica["is_in_sync"]) == (True, True)
    assert proxy.get(f"{at}/1/replicas").json()["data"] == [replica]
    assert replica in proxy.get(f"{cluster_path}/brokers/1/partition-replicas").json()["data"]
    both = proxy.get(f"{at}/1/offset").json()
    assert (both["earliest_offset"], both["latest_offset"]) == (0, 1)
    assert "latest_offset" not in proxy.get(f"{at}/1/offset?offset_type=earliest").json()
    assert proxy.get(f"{at}/-/reassignment").json()["data"] == []
    assert proxy.get(f"{at}/1/reassignment").status == 404


def test_configs_are_listed_set_and_reset(proxy: RestProxy, cluster_path: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    at = f"{cluster_path}/topics/{topic}/configs"
    assert proxy.ask("PUT", f"{at}/retention.ms", {"value": "5000"}).status == 204
    one = proxy.get(f"{at}/retention.ms").json()
    assert (one["kind"], one["value"], one["is_default"], one["source"]) == (
        "KafkaTopicConfig", "5000", False, "DYNAMIC_TOPIC_CONFIG",
    )  # fmt: skip
    assert one["synonyms"][0] == {"name": "retention.ms", "value": "5000", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert one in proxy.get(at).json()["data"]
    assert [
        each["value"]
        for each in proxy.get(f"{cluster_path}/topics/-/configs").json()["data"]
        if (each["topic_name"], each["name"]) == (topic, "retention.ms")
    ] == ["5000"]
    assert proxy.ask("DELETE", f"{at}/retention.ms").status == 204
    assert proxy.get(f"{at}/retention.ms").json()["is_default"]
    changes = [
        {"name": "retention.ms", "value": "7"},
        {"name": "cleanup.policy", "operation": "SET", "value": "compact"},
        {"name": "segment.ms", "operation": "DELETE"},
    ]
    assert proxy.ask("POST", f"{at}:alter", {"data": changes, "validate_only": True}).status == 204
    assert proxy.get(f"{at}/retention.ms").json()["is_default"]
    assert proxy.ask("POST", f"{at}:alter", {"data": changes}).status == 204
    assert proxy.get(f"{at}/cleanup.policy").json()["value"] == "compact"
    for method, path, body, code in (
        ("PUT", "/retention.ms", {"value": "soon"}, 40002),
        ("PUT", "/no.such.config", {"value": "1"}, 404),
        ("DELETE", "/no.such.config", None, 404),
        ("GET", "/no.such.config", None, 404),
        ("POST", ":alter", {"data": [{"name": "retention.ms", "operation": "SUBTRACT"}]}, 400),
        ("POST", ":alter", {"data": []}, 422),
        ("POST", ":alter", {"data": [{"name": "retention.ms", "value": "soon"}]}, 40002),
    ):
        assert proxy.ask(method, at + path, body).json()["error_code"] == code, (method, path, body)


def test_configs_of_brokers_are_changed(proxy: RestProxy, cluster_path: str) -> None:
    for at, kind in (("brokers/1/configs", "KafkaBrokerConfig"), ("broker-configs", "KafkaClusterConfig")):
        path = f"{cluster_path}/{at}/log.cleaner.backoff.ms"
        assert proxy.ask("PUT", path, {"value": "14999"}).status == 204
        found = proxy.get(path).json()
        assert (found["kind"], found["value"]) == (kind, "14999")
        assert found in proxy.get(f"{cluster_path}/{at}").json()["data"]
        assert proxy.ask("DELETE", path).status == 204
    assert proxy.get(f"{cluster_path}/brokers/1/configs/broker.id").json()["is_read_only"]
    assert len(proxy.get(f"{cluster_path}/brokers/-/configs").json()["data"]) > 100
    assert proxy.get(f"{cluster_path}/brokers/7/configs").json()["error_code"] == 40002


def test_groups_have_members_assignments_and_lag(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic, broker: PenstockBroker
) -> None:
    topic = make_topic()
    proxy.produce(topic, *range(10))
    instance = proxy.instance(topic)
    instance.subscribe(topic)
    assert instance.values_until(10) == list(range(10))
    instance.post("offsets", {"offsets": [{"topic": topic, "partition": 0, "offset": 3}]})
    at = f"{cluster_path}/consumer-groups/{topic}"
    group = proxy.get(at).json()
    assert (group["state"], group["type"], group["is_simple"]) == ("STABLE", "CLASSIC", False)
    assert group in proxy.get(f"{cluster_path}/consumer-groups").json()["data"]
    (member,) = proxy.get(f"{at}/consumers").json()["data"]
    assert member["client_id"] == instance.id
    name = member["consumer_id"]
    assert proxy.get(f"{at}/consumers/{name}").json() == member
    (assignment,) = proxy.get(f"{at}/consumers/{name}/assignments").json()["data"]
    assert proxy.get(assignment["metadata"]["self"].removeprefix(proxy.url)).json() == assignment
    lag = proxy.get(assignment["lag"]["related"].removeprefix(proxy.url)).json()
    assert (lag["current_offset"], lag["log_end_offset"], lag["lag"]) == (4, 10, 6)
    assert lag["consumer_id"] == name
    assert proxy.get(f"{at}/lags").json()["data"] == [lag]
    summary = proxy.get(f"{at}/lag-summary").json()
    assert (summary["max_lag"], summary["total_lag"], summary["max_lag_topic_name"]) == (6, 6, topic)
    instance.delete()
    assert proxy.get(f"{at}/consumers").json()["data"] == []
    assert proxy.get(f"{at}/consumers/{name}").status == 404


def test_a_group_that_only_commits_is_simple(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic, broker: PenstockBroker
) -> None:
    topic = make_topic()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    found = proxy.get(f"{cluster_path}/consumer-groups/{topic}").json()
    assert (found["is_simple"], found["state"]) == (True, "EMPTY")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v3/clusters/another", 404),
        ("/v3/clusters/another/topics", 404),
        ("{cluster}/brokers/9", 404),
        ("{cluster}/brokers/x", 404),
        ("{cluster}/topics/nowhere-at-all", 40403),
        ("{cluster}/topics/nowhere-at-all/partitions", 40403),
        ("{cluster}/topics/nowhere-at-all/configs", 40403),
        ("{cluster}/topics/{topic}/partitions/7", 40403),
        ("{cluster}/topics/{topic}/partitions/0/replicas/7", 404),
        ("{cluster}/topics/{topic}/partitions/0/offset?offset_type=middle", 400),
        ("{cluster}/consumer-groups/nobody", 40403),
        ("{cluster}/consumer-groups/nobody/lags", 40403),
        ("{cluster}/acls", 40002),  # the broker has no authorizer
        ("{cluster}/acls?resource_type=CAR", 400),
    ],
)
def test_what_is_not_there_is_said_to_be(
    proxy: RestProxy, cluster_path: str, make_topic: MakeTopic, path: str, code: int
) -> None:
    answer = proxy.get(path.format(cluster=cluster_path, topic=make_topic()))
    assert answer.json()["error_code"] == code, answer.body
    assert str(code).startswith(str(answer.status))
