"""What stands in the way of a broker that is to join a cluster of Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from penstock.broker.adoption.joining import Finding, findings, kafkas_members, must_not_join
from penstock.config.loading import load
from penstock.controller.features import FEATURES
from penstock.metadata import znodes
from penstock.metadata.image import TOPICS, BrokerRegistration
from penstock.metadata.tree import Create, TreeNode
from penstock.model.endpoints import Endpoint
from penstock.net.peers import PeerUnavailable
from penstock.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from simulation.memory_tree import MemoryTree
from tests.unit.broker.test_members import KAFKA_3_4, KAFKA_3_9

CLUSTER_ID = "M9DNpGvdQy-1HV6XFlUEjA"
OWN = {"PLAINTEXT": Endpoint("PLAINTEXT", "three", 9092, "PLAINTEXT")}
CONFIG = {"zookeeper.connect": "zk:2181/kafka", "broker.id": "3", "listeners": "PLAINTEXT://three:9092"}
NODES = {
    znodes.BROKER_IDS: b"",
    znodes.CLUSTER_ID: znodes.encode_cluster_id(CLUSTER_ID),
    znodes.CONTROLLER: znodes.encode_controller(1, now_ms=1),
    znodes.FEATURE: znodes.FIRST_DATA[znodes.FEATURE],
}


def kafka(broker_id: int, listener: str = "PLAINTEXT", protocol: str = "PLAINTEXT") -> BrokerRegistration:
    return BrokerRegistration(broker_id, {listener: Endpoint(listener, f"kafka-{broker_id}", 9092, protocol)})


class Reading:
    """A tree that can only be read."""

    def __init__(self, nodes: Mapping[str, bytes]) -> None:
        self._tree = MemoryTree()
        made: set[str] = set()
        for path, data in sorted(nodes.items()):
            parts = path.split("/")
            for end in range(2, len(parts)):
                parent = "/".join(parts[:end])
                if parent not in made and parent not in nodes:
                    self._tree.apply([Create(parent)], 1)
                    made.add(parent)
            self._tree.apply([Create(path, data)], 1)

    async def get(self, path: str) -> TreeNode:
        return self._tree.get(path)

    async def exists(self, path: str) -> bool:
        return self._tree.owner(path) is not None

    async def subtree(self, path: str) -> dict[str, TreeNode]:
        return self._tree.subtree(path)


class Members:
    """What the brokers answer; `configs` is what they have set."""

    def __init__(
        self, configs: Mapping[str, str] | None = None, versions: Mapping[Any, Any] = KAFKA_3_9
    ) -> None:
        self.configs = {"inter.broker.protocol.version": "3.9-IV0", **(configs or {})}
        self.versions = versions
        self.error = ""

    async def ask(self, member: BrokerRegistration, request: Any, response: Any, version: int) -> Any:
        if self.error:
            raise PeerUnavailable(self.error)
        if isinstance(request, ApiVersionsRequest):
            rows = [
                ApiVersion(api_key=key, min_version=a, max_version=b) for key, (a, b) in self.versions.items()
            ]
            return ApiVersionsResponse(api_keys=rows)
        configs = [
            DescribeConfigsResourceResult(name=name, value=value) for name, value in self.configs.items()
        ]
        return DescribeConfigsResponse(results=[DescribeConfigsResult(configs=configs)])


def look(
    *members: BrokerRegistration,
    nodes: Mapping[str, bytes] = {},
    answers: Members | None = None,
    config: Mapping[str, str] = {},
    cluster_id: str | None = None,
    tree_is_empty: bool = False,
) -> list[Finding]:
    async def main() -> list[Finding]:
        written = {} if tree_is_empty else {**NODES, **nodes}
        for member in members:
            written[znodes.broker_path(member.id)] = znodes.encode_broker(member, now_ms=1)
        tree: Any = Reading(written)
        loaded, _ = load({**CONFIG, **config}, {})
        asked = answers or Members()
        found = await findings(loaded, tree, asked.ask, known_cluster_id=cluster_id, own_endpoints=OWN)
        stops = [each for each in found if each.stops]
        others = await kafkas_members(tree, loaded)
        at_start = await must_not_join(tree, asked.ask, loaded, others) if others else []
        assert {each.text for each in at_start if each.stops} <= {each.text for each in stops}
        return found

    return asyncio.run(main())


def the_one_that_stops(found: list[Finding]) -> str:
    (only,) = [each.text for each in found if each.stops]
    return only


def test_nothing_stands_in_the_way_of_a_cluster_of_apache_kafka_3_9() -> None:
    assert look(kafka(1), kafka(2)) == []


def test_a_chroot_without_a_cluster() -> None:
    text = the_one_that_stops(look(tree_is_empty=True))
    assert text.startswith("zookeeper.connect=zk:2181/kafka holds no cluster of Apache Kafka")


def test_an_id_that_another_broker_has() -> None:
    text = the_one_that_stops(look(kafka(1), kafka(3)))
    assert text == "broker 3 is already in the cluster, at kafka-3:9092: stop it, or set another broker.id"


def test_a_broker_that_returns_is_not_another_one() -> None:
    assert look(kafka(1), BrokerRegistration(3, OWN, features=FEATURES)) == []


def test_a_protocol_version_that_is_too_low() -> None:
    answers = Members({"inter.broker.protocol.version": "3.4-IV0"})
    text = the_one_that_stops(look(kafka(1), answers=answers))
    assert text.startswith(
        "broker 1 has inter.broker.protocol.version=3.4-IV0: raise it to 3.5 or later on every"
    )


def test_a_broker_that_is_too_old() -> None:
    text = the_one_that_stops(look(kafka(1), answers=Members(versions=KAFKA_3_4)))
    assert "broker 1 knows versions 0–2 of ALTER_PARTITION, this broker 3–3" in text


def test_a_record_format_that_we_do_not_read() -> None:
    text = the_one_that_stops(look(kafka(1), answers=Members({"log.message.format.version": "0.10.2-IV0"})))
    assert text.startswith("broker 1 writes records in the format of 0.10.2-IV0")
    old = {znodes.config_path(TOPICS, "old"): znodes.encode_config({"message.format.version": "0.9.0"})}
    assert "topic old keeps its records in the format of 0.9.0" in the_one_that_stops(
        look(kafka(1), nodes=old)
    )


def test_a_cluster_of_kraft_or_on_its_way_there() -> None:
    controller = b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}'
    text = the_one_that_stops(look(kafka(1), nodes={znodes.CONTROLLER: controller}))
    assert text.startswith("a KRaft controller has this cluster")
    text = the_one_that_stops(look(kafka(1), nodes={"/migration": b"{}"}))
    assert "a migration to KRaft was begun" in text
    text = the_one_that_stops(
        look(kafka(1), answers=Members({"zookeeper.metadata.migration.enable": "true"}))
    )
    assert text == "broker 1 has zookeeper.metadata.migration.enable=true: take it out first"


def test_a_feature_that_we_do_not_have() -> None:
    feature = b'{"features":{"tiers":{"min_version_level":1,"max_version_level":3}},"version":2,"status":1}'
    text = the_one_that_stops(look(kafka(1), nodes={znodes.FEATURE: feature}))
    assert text == "the cluster has feature tiers at level 3, which Penstock does not have"


def test_security_that_differs() -> None:
    text = the_one_that_stops(look(kafka(1, "INTERNAL")))
    assert text.startswith(
        "broker 1 has no listener PLAINTEXT, by which this broker would reach it, but INTERNAL"
    )
    text = the_one_that_stops(look(kafka(1, protocol="SSL")))
    assert text == "listener PLAINTEXT is SSL at broker 1 and PLAINTEXT here"
    text = the_one_that_stops(look(kafka(1), answers=Members({"authorizer.class.name": "kafka.Some"})))
    assert text.startswith("broker 1 has an authorizer, and this broker has none")


def test_log_directories_of_another_cluster() -> None:
    text = the_one_that_stops(look(kafka(1), cluster_id="other"))
    assert (
        text == f"the log directories belong to cluster other, and this is {CLUSTER_ID}: use other log.dirs"
    )


def test_a_broker_that_does_not_answer_is_named_and_stops_nothing() -> None:
    answers = Members()
    answers.error = "kafka-1:9092: Connection refused"
    (found,) = look(kafka(1), answers=answers)
    assert not found.stops
    assert found.text == "broker 1 does not answer, so it was not looked at: kafka-1:9092: Connection refused"


def test_values_of_topics_that_we_would_not_take_are_used_or_named() -> None:
    small = {znodes.config_path(TOPICS, "small"): znodes.encode_config({"segment.bytes": "100000"})}
    assert look(kafka(1), nodes=small) == []
    wrong = {znodes.config_path(TOPICS, "wrong"): znodes.encode_config({"segment.ms": "0"})}
    (found,) = look(kafka(1), nodes=wrong)
    assert (found.check, found.stops) == ("configs", False)
    assert found.text.startswith("topic wrong: Invalid value 0 for configuration segment.ms")


def test_nodes_that_we_do_not_know_are_left_alone() -> None:
    assert look(kafka(1), nodes={"/somebody/elses": b"\xff\x00"}) == []
