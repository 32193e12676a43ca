"""What a broker hears in an order that it did not expect, and what it does not hear at all."""

import pytest

from penstock.broker.replication.cuts import Cuts
from penstock.metadata.image import ALL_BROKERS, BROKERS, NO_BROKER_EPOCH, ConfigsChanged
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import CONSUMER_OFFSETS
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from simulation.seeds.machine import Machine
from tests.unit.broker.simulated_cluster import SimulatedCluster, node_of, partition_at


def other_than_the_controller(cluster: SimulatedCluster) -> list[Machine]:
    return [machine for machine in cluster.machines if machine is not cluster.controller]


def test_a_default_of_all_brokers_counts_for_a_partition_that_the_image_does_not_know_yet() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        node = node_of(cluster.machines[0])
        partition = node.effects.open_partition("orders", bytes(15) + b"1", 0, is_new=True)
        node.effects.apply(ConfigsChanged(BROKERS, ALL_BROKERS, {"message.max.bytes": "500"}))
        assert partition.log.options.max_message_bytes == 500

    SimulatedCluster().run(main)


def test_a_leaders_address_is_the_one_of_our_own_listener() -> None:
    """LeaderAndIsr names one address of each leader; where brokers have several, it may be another's."""

    async def main(cluster: SimulatedCluster) -> None:
        one, other = other_than_the_controller(cluster)
        node = node_of(one)
        known = node.peers.address(other.broker_id)
        request = LeaderAndIsrRequest(
            controller_id=cluster.controller.broker_id,
            controller_epoch=node.image.controller_epoch,
            broker_epoch=node.broker_epoch,
            live_leaders=[LeaderAndIsrLiveLeader(broker_id=other.broker_id, host_name="elsewhere", port=1)],
        )
        await cluster.on(one, node.roles.lead_or_follow(request))
        assert known is not None
        assert node.peers.address(other.broker_id) == known

    SimulatedCluster().run(main)


def test_a_role_that_waited_for_a_cut_is_not_given_once_the_session_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the broker would lead by the word to an earlier registration, and the next one would count as its proof."""

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        one = next(
            each for each in other_than_the_controller(cluster) if each is not cluster.leader("orders")
        )
        node, partition = node_of(one), partition_at(one, "orders")
        topic = node.image.topic("orders")
        assert topic is not None

        async def settled(self: Cuts, topic_id: bytes, index: int) -> None:
            node.broker_epoch = NO_BROKER_EPOCH

        monkeypatch.setattr(Cuts, "settled", settled)
        state = LeaderAndIsrPartitionState(
            partition_index=0,
            controller_epoch=node.image.controller_epoch,
            leader=one.broker_id,
            leader_epoch=partition.leader_epoch + 1,
            isr=[one.broker_id],
            partition_epoch=partition.replica.partition_epoch + 1,
            replicas=[1, 2, 3],
        )
        request = LeaderAndIsrRequest(
            controller_id=cluster.controller.broker_id,
            controller_epoch=node.image.controller_epoch,
            broker_epoch=node.broker_epoch,
            topic_states=[
                LeaderAndIsrTopicState(topic_name="orders", topic_id=topic.topic_id, partition_states=[state])
            ],
        )
        with pytest.raises(ApiError) as refused:
            await cluster.on(one, node.roles.lead_or_follow(request))
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH
        assert not partition.is_leader

    SimulatedCluster().run(main)


def test_a_topic_that_nobody_can_make_now_holds_up_nobody_for_long() -> None:
    """What else was asked on the same connection waits behind the answer."""

    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        one = other_than_the_controller(cluster)[0]
        cluster.cluster.network.split([one.name], [controller.name])
        began = cluster.schedule.now
        with pytest.raises(ApiError) as refused:
            await cluster.on(one, node_of(one).topics.consumer_offsets())
        assert refused.value.code == ErrorCode.LEADER_NOT_AVAILABLE
        assert cluster.schedule.now - began < 5
        cluster.cluster.network.heal()
        await cluster.until(lambda: node_of(one).image.topic(CONSUMER_OFFSETS) is not None)

    SimulatedCluster().run(main)


def test_a_client_hears_in_time_that_the_store_does_not_answer() -> None:
    """Also the second one, who waits behind the first."""

    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=1)], timeout_ms=5_000
        )
        assert controller.process is not None
        cluster.cluster.store.cut_off(controller.process, silently=True)
        began = cluster.schedule.now
        asked = [controller.process.start(node_of(controller).topics.create(request)) for _ in range(2)]
        for each in asked:
            await cluster.until(each.done)
            refusal = each.exception()
            assert isinstance(refusal, ApiError)
            assert refusal.code == ErrorCode.REQUEST_TIMED_OUT
        assert cluster.schedule.now - began < 5

    SimulatedCluster().run(main)
