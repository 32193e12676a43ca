"""mm2.properties: which flows there are, and what their connectors are configured with."""

import pytest

from penstock.client.errors import BadOption
from penstock.mirror.filters import Filter
from penstock.mirror.flows import read_flows, warnings_of
from penstock.mirror.settings import EXCLUDED_TOPICS, SOURCE_SETTINGS

GIVEN = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:1",
    "B.bootstrap.servers": "b:2",
    "A->B.enabled": "true",
}


def test_a_flow_has_three_connectors_and_the_other_direction_heartbeats() -> None:
    there, back = read_flows(GIVEN)
    assert str(there) == "A->B"
    assert list(there.connectors) == [
        "MirrorSourceConnector",
        "MirrorCheckpointConnector",
        "MirrorHeartbeatConnector",
    ]
    assert list(back.connectors) == ["MirrorHeartbeatConnector"]
    assert not back.is_enabled


def test_without_heartbeats_there_is_no_other_direction() -> None:
    assert [str(one) for one in read_flows(GIVEN | {"emit.heartbeats.enabled": "false"})] == ["A->B"]
    assert [str(one) for one in read_flows(GIVEN | {"B->A.emit.heartbeats.enabled": "false"})] == ["A->B"]


def test_what_is_closer_counts_more() -> None:
    given = GIVEN | {
        "topics": "x", "A->B.topics": "orders.*", "A->B.source.consumer.isolation.level": "read_uncommitted",
        "A.sasl.mechanism": "PLAIN", "sasl.mechanism": "SCRAM-SHA-256", "tasks.max": "3",
    }  # fmt: skip
    config = read_flows(given)[0].connectors["MirrorSourceConnector"]
    assert config["topics"] == "orders.*"
    assert config["tasks.max"] == "3"
    assert config["source.cluster.sasl.mechanism"] == "PLAIN"
    assert config["target.cluster.sasl.mechanism"] == "SCRAM-SHA-256"
    assert config["source.cluster.bootstrap.servers"] == "a:1"
    assert config["source.consumer.isolation.level"] == "read_uncommitted"


def test_offsets_are_in_the_topic_of_mirror_maker() -> None:
    worker = read_flows(GIVEN)[0].worker
    assert worker["offset.storage.topic"] == "mm2-offsets.A.internal"
    assert worker["bootstrap.servers"] == "b:2"


def test_only_flows_into_some_clusters() -> None:
    assert [str(one) for one in read_flows(GIVEN | {"B->A.enabled": "true"}, ["A"])] == ["B->A"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"clusters": "A"}, "name two or more"),
        ({"B.bootstrap.servers": ""}, r"B\.bootstrap\.servers: say where"),
        ({"A->C.enabled": "true"}, "there is no cluster C"),
        ({"A->B.enabled": "yes"}, "neither true nor false"),
        ({"A->B.enabled": "false"}, "no flow is enabled"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, str], told: str) -> None:
    with pytest.raises(BadOption, match=told):
        read_flows(GIVEN | changes)


def test_properties_that_do_nothing_are_told() -> None:
    given = GIVEN | {
        "A->B.topcis": "x", "A.sasl.mechanism": "PLAIN", "B.producer.compression.type": "lz4", "A.consumer.isolation.level": "x",
        "rest.port": "1", "transforms.x.type": "y", "refresh.topics.interval.seconds": "1", "offset.storage.partitions": "1",
    }  # fmt: skip
    assert warnings_of(given) == [
        "there is no property A->B.topcis; did you mean topics?",
        "rest.port has no effect",
    ]


def test_patterns_are_of_whole_names_and_exclusion_wins() -> None:
    wanted = Filter(["orders", "pay.*"], ["pay-old"], "topics")
    assert [name for name in ("orders", "orders2", "pay-1", "pay-old") if wanted.passes(name)] == [
        "orders",
        "pay-1",
    ]
    everything = Filter([".*"], EXCLUDED_TOPICS, "topics")
    assert not everything.passes("__consumer_offsets")
    assert not everything.passes("mm2-offsets.A.internal")


def test_the_defaults_are_kafkas() -> None:
    values = SOURCE_SETTINGS.parse({"source.cluster.alias": "A"})
    assert values["replication.factor"] == 2
    assert values["refresh.topics.interval.seconds"] == 600
    assert values["offset-syncs.topic.location"] == "source"
