"""What a broker does itself, and what it does not pass on, while a broker of Apache Kafka is the controller."""

from typing import Any

import pytest

from penstock.broker.metadata.configs import log_options
from penstock.broker.node import Node
from penstock.config.check import check_topic_overrides
from penstock.config.layers import BrokerConfig
from penstock.controller.decision import Decision
from penstock.metadata import znodes
from penstock.metadata.image import BROKERS, TOPICS, ConfigsChanged, TopicDeleted
from penstock.metadata.znodes import ProducerIdBlock
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from simulation.seeds.machine import Machine
from tests.unit.broker.simulated_cluster import SimulatedCluster, in_cluster, node_of

BROKER = 4
TOPIC = 2


def be_kafkas(cluster: SimulatedCluster, machine: Machine) -> None:
    """As all the others see it, this broker is one of Kafka's."""
    for each in cluster.machines:
        members = node_of(each).membership.members
        known = members._registered[machine.broker_id]
        members._registered[machine.broker_id] = known._replace(features={}, intact_since=-1)


def alteration(broker_id: int, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name="log.cleaner.threads", config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=str(broker_id), configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource])


def test_a_brokers_own_config_is_written_by_that_broker() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        asked = next(each for each in cluster.machines if each is not controller)
        be_kafkas(cluster, controller)
        passed_on: list[int] = []
        peers = node_of(asked).peers
        peer = peers.peer

        def note(broker_id: int, purpose: Any = "control") -> Any:
            if purpose == "forward":
                passed_on.append(broker_id)
            return peer(broker_id, purpose)

        peers.peer = note  # type: ignore[method-assign]
        answer = await cluster.client.ask(
            asked.address, alteration(asked.broker_id, "2"), IncrementalAlterConfigsResponse, 1
        )
        assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]
        assert passed_on == []
        assert node_of(asked).image.broker_overrides(asked.broker_id) == {"log.cleaner.threads": "2"}
        path = znodes.config_path(BROKERS, str(asked.broker_id))
        stored = await cluster.on(asked, node_of(asked).tree.get(path))
        assert znodes.decode_config(path, stored.data) == {"log.cleaner.threads": "2"}
        await cluster.until(
            lambda: all(
                node_of(each).image.broker_overrides(asked.broker_id) == {"log.cleaner.threads": "2"}
                for each in cluster.machines
            )
        )

    in_cluster(main)


def test_a_config_is_not_written_over_one_of_which_this_broker_has_not_heard_yet() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        asked = next(each for each in cluster.machines if each is not cluster.controller)
        be_kafkas(cluster, cluster.controller)
        image = node_of(asked).image

        async def alter(name: str, value: str) -> None:
            config = AlterableConfig(name=name, config_operation=0, value=value)
            resource = AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[config])
            answer = await cluster.client.ask(
                asked.address,
                IncrementalAlterConfigsRequest(resources=[resource]),
                IncrementalAlterConfigsResponse,
                1,
            )
            assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]

        await alter("retention.ms", "-1")
        image.apply(ConfigsChanged(TOPICS, "orders", {}))  # as before that was told
        await alter("segment.ms", "7000")
        both = {"retention.ms": "-1", "segment.ms": "7000"}.items()
        stored = await cluster.on(asked, node_of(asked).tree.get(znodes.config_path(TOPICS, "orders")))
        assert both <= znodes.decode_config("orders", stored.data).items()
        assert both <= image.topic_overrides("orders").items()

    in_cluster(main)


def test_what_only_a_controller_may_write_is_not_written_beside_it() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        asked = next(each for each in cluster.machines if each is not cluster.controller)
        be_kafkas(cluster, cluster.controller)
        with pytest.raises(ApiError) as refused:
            await cluster.on(
                asked, node_of(asked).changes.make(lambda: Decision([], [], [TopicDeleted("orders")]))
            )
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert node_of(asked).image.topic("orders") is not None

    in_cluster(main)


def allocation(node: Node, *, epoch: int | None = None, broker_id: int | None = None) -> Any:
    asking = node.broker_id if broker_id is None else broker_id
    return AllocateProducerIdsRequest(
        broker_id=asking, broker_epoch=node.broker_epoch if epoch is None else epoch
    )


def test_our_controller_gives_blocks_of_producer_ids_and_gives_each_once() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        other = next(each for each in cluster.machines if each is not controller)

        async def ask(machine: Machine, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
            return await cluster.client.ask(machine.address, request, AllocateProducerIdsResponse, 0)

        node = node_of(other)
        given = [await ask(controller, allocation(node)) for _ in range(2)]
        assert [(each.error_code, each.producer_id_len) for each in given] == [(0, 1000), (0, 1000)]
        assert given[1].producer_id_start == given[0].producer_id_start + 1000
        stored = await cluster.on(controller, node_of(controller).tree.get(znodes.PRODUCER_ID_BLOCK))
        first = given[1].producer_id_start
        assert znodes.decode_producer_id_block(stored.data) == ProducerIdBlock(
            other.broker_id, first, first + 999
        )
        own = await cluster.on(other, node.producer_ids.next())
        assert not given[0].producer_id_start <= own < first + 1000
        assert (await ask(controller, allocation(node, epoch=1))).error_code == ErrorCode.STALE_BROKER_EPOCH
        unknown = await ask(controller, allocation(node, broker_id=77))
        assert unknown.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        assert (await ask(other, allocation(node))).error_code == ErrorCode.NOT_CONTROLLER

    in_cluster(main)


def config(**static: str) -> BrokerConfig:
    return BrokerConfig({name.replace("_", "."): value for name, value in static.items()})


def test_small_segments_of_older_releases_are_used() -> None:
    overrides = {"segment.bytes": "100000"}
    assert config().topic_value(overrides, "segment.bytes") == 100_000
    assert config().log_options(overrides)["segment.bytes"] == 100_000
    assert config().topic_mistakes(overrides) == []


@pytest.mark.parametrize("text", ["0", "-7", "soon", "1" * 30])
def test_a_stored_value_that_is_none_gives_way_to_the_brokers(text: str) -> None:
    found = config(log_roll_ms="5000")
    assert found.topic_value({"segment.ms": text}, "segment.ms") == 5000
    (mistake,) = found.topic_mistakes({"segment.ms": text})
    assert mistake.endswith("; used is 5000")
    (entry,) = found.describe_topic({"segment.ms": text}, ["segment.ms"])
    assert entry.value == "5000"


@pytest.mark.parametrize(
    ("name", "text", "used"),
    [
        ("cleanup.policy", "compact,", "none"),
        ("cleanup.policy", "none", "none"),
        ("retention.ms", "for ever", "-1"),
        ("retention.bytes", "1" * 30, "-1"),
        ("unclean.leader.election.enable", "no", "false"),
    ],
)
def test_a_mistake_in_what_deletes_records_deletes_none(name: str, text: str, used: str) -> None:
    found = config(
        log_retention_ms="1000",
        log_retention_bytes="1",
        log_cleanup_policy="delete",
        unclean_leader_election_enable="true",
    )
    (mistake,) = found.topic_mistakes({name: text})
    assert mistake.endswith(f"; used is {used}")
    options = log_options(found, {name: text})
    keeps = (
        not options.delete_enabled and not options.compacted,
        options.retention_ms == -1,
        options.retention_bytes == -1,
        not found.topic_value({name: text}, "unclean.leader.election.enable"),
    )
    assert keeps.count(True) == 1


def test_names_that_we_do_not_know_are_no_mistakes() -> None:
    assert config().topic_mistakes({"message.format.version": "3.0-IV1", "somebodys.own": "?"}) == []


def test_a_topic_with_a_stored_value_that_we_would_not_take_can_be_altered() -> None:
    stored = {"segment.bytes": "100000", "message.format.version": "3.0-IV1"}
    check_topic_overrides(config(), {**stored, "retention.ms": "1000"}, stored=stored)
    with pytest.raises(ApiError, match=r"retention\.ms"):
        check_topic_overrides(config(), {**stored, "retention.ms": "soon"}, stored=stored)
    with pytest.raises(ApiError, match=r"segment\.bytes"):
        check_topic_overrides(config(), {"segment.bytes": "200000"}, stored=stored)
