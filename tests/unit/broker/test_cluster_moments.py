"""Moments at which something of a cluster crosses something else: the controller's word, sessions, registrations, reads."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from penstock.broker import serving
from penstock.broker.cluster import notifications
from penstock.broker.metadata.effects import Effects
from penstock.controller import brokers
from penstock.metadata import znodes
from penstock.metadata.image import NO_BROKER_EPOCH, NO_CONTROLLER, TOPICS, ConfigsChanged
from penstock.metadata.tree import StoreUnavailable
from penstock.metadata.znodes import EpochsSeen
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from penstock.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest
from tests.unit.broker.simulated_cluster import (
    SimulatedCluster,
    in_cluster,
    node_of,
    others,
    partition_at,
)

# --- roles


def test_a_broker_that_is_not_registered_takes_no_role_of_its_predecessor() -> None:
    """The controller may still be telling the process before it: that one's log may have been longer."""

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        epoch, node.broker_epoch = node.broker_epoch, NO_BROKER_EPOCH
        request = LeaderAndIsrRequest(
            controller_id=1, controller_epoch=node.image.controller_epoch, broker_epoch=epoch
        )
        with pytest.raises(ApiError) as refused:
            await cluster.on(machine, node.roles.lead_or_follow(request))
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH
        node.broker_epoch = epoch
        await cluster.on(machine, node.roles.lead_or_follow(request))

    in_cluster(main)


def test_what_a_controller_says_before_a_broker_knows_its_own_epoch_is_not_refused() -> None:
    """Kafka's controller tells a broker its roles as soon as its node is there, and does not say them again."""

    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        read = node.tree.get
        epoch, told = node.broker_epoch, []

        async def tell_first(path: str) -> Any:
            found = await read(path)
            if path == znodes.broker_path(machine.broker_id) and found.created > epoch and not told:
                request = LeaderAndIsrRequest(
                    controller_id=cluster.controller.broker_id,
                    controller_epoch=node.image.controller_epoch,
                    broker_epoch=found.created,
                )
                told.append(node.loop.create_task(node.roles.lead_or_follow(request)))
                await asyncio.sleep(0.1)
            return found

        node.tree.get = tell_first  # type: ignore[method-assign]
        assert machine.process is not None
        cluster.cluster.store.expire(machine.process)
        await cluster.until(lambda: told and told[0].done())
        assert told[0].result().error_code == ErrorCode.NONE

    in_cluster(main)


def test_a_disk_that_fails_under_one_partition_leaves_the_others_their_roles() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", partitions=12)
        old, heir = others(cluster, cluster.controller)
        led = [index for index in range(12) if partition_at(old, "orders", index).is_leader]
        failing = next(
            index for index in led if partition_at(old, "orders", index).replica.replicas[1] == heir.broker_id
        )
        log = partition_at(heir, "orders", failing).log
        log.leader_epochs = NotToBeWritten(log.leader_epochs)  # type: ignore[assignment]
        old.kill()
        heirs = others(cluster, old)
        # Also that one: then another leads it.
        await cluster.until(
            lambda: all(any(partition_at(each, "orders", index).is_leader for each in heirs) for index in led)
        )
        image = node_of(heir).image
        await cluster.until(lambda: old.broker_id not in image.brokers)

    in_cluster(main)


class NotToBeWritten:
    def __init__(self, real: Any) -> None:
        self._real = real

    def assign(self, epoch: int, start_offset: int) -> None:
        raise OSError(24, "Too many open files")  # of the process, not of the directory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


# --- in-sync sets


def test_a_replica_joins_only_with_the_epoch_that_it_has_when_that_is_decided() -> None:
    """It was caught up, then it was started again: the request that was made before must not let it in."""

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        leader, controller = cluster.leader("orders"), cluster.controller
        joining = next(each for each in others(cluster, leader) if each is not controller)
        epoch = node_of(joining).broker_epoch
        joining.kill()
        await cluster.until(lambda: len(partition_at(leader, "orders").replica.isr) == 2)
        led, node = partition_at(leader, "orders"), node_of(leader)
        members = [leader.broker_id, *(id for id in led.replica.isr if id != leader.broker_id)]
        states = [BrokerState(broker_id=id, broker_epoch=NO_BROKER_EPOCH) for id in members]
        states.append(BrokerState(broker_id=joining.broker_id, broker_epoch=epoch))
        request = AlterPartitionRequest(
            broker_id=leader.broker_id,
            broker_epoch=node.broker_epoch,
            topics=[
                RequestTopicData(
                    topic_id=node.image.topic_id("orders"),
                    partitions=[
                        RequestPartitionData(
                            partition_index=0,
                            leader_epoch=led.leader_epoch,
                            new_isr_with_epochs=states,
                            partition_epoch=led.replica.partition_epoch,
                        )
                    ],
                )
            ],
        )
        controlling = node_of(controller).controlling
        image = node_of(controller).image
        registered = dict(image.brokers)
        image.brokers[joining.broker_id] = registered[leader.broker_id]._replace(
            id=joining.broker_id, epoch=epoch
        )

        async def decide_late() -> ErrorCode:
            lock = node_of(controller).changes._lock
            async with lock:
                asked = asyncio.get_running_loop().create_task(controlling.requests.alter_partition(request))
                await asyncio.sleep(0.001)
                image.brokers[joining.broker_id] = image.brokers[joining.broker_id]._replace(epoch=epoch + 1)
            return ErrorCode((await asked).topics[0].partitions[0].error_code)

        assert await cluster.on(controller, decide_late()) == ErrorCode.INELIGIBLE_REPLICA
        image.brokers.clear()
        image.brokers.update(registered)

    in_cluster(main)


# --- the controller


def test_an_operator_can_have_another_controller_elected() -> None:
    """By deleting /controller, as with Kafka. Whoever was it may win again; its earlier term is over all the same."""

    async def main(cluster: SimulatedCluster) -> None:
        old = cluster.controller
        node = node_of(old)
        epoch, tasks = node.image.controller_epoch, node.controlling._tasks
        await cluster.on(old, node.tree.delete(znodes.CONTROLLER))
        await cluster.until(
            lambda: cluster.controllers == 1 and node_of(cluster.controller).image.controller_epoch > epoch
        )
        await cluster.until(lambda: all(task.done() for task in tasks))
        await cluster.create("orders")

    in_cluster(main)


def test_a_controller_that_reads_the_tree_of_its_successor_resigns_without_a_word() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        old = cluster.controller
        node = node_of(old)
        epoch = node.image.controller_epoch

        async def read_late() -> None:
            found = await node.tree.get(znodes.CONTROLLER_EPOCH)
            await node.tree.set(
                znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch + 1), found.version
            )
            node.controlling.channels.close_all()
            with pytest.raises(Exception, match="another broker has become the controller"):
                await node.controlling.reload()
            assert list(node.controlling.channels) == []
            assert node.image.controller_epoch == epoch

        await cluster.on(old, read_late())
        node.changes._is_unsure = True
        with pytest.raises(ApiError) as refused:
            await cluster.on(old, node.changes.make(lambda: brokers.epochs_seen(EpochsSeen())))
        assert refused.value.code == ErrorCode.NOT_CONTROLLER

    in_cluster(main)


def test_what_a_controller_could_not_complete_at_first_it_completes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        leader = cluster.leader("orders")
        tried = []
        for machine in cluster.machines:
            controlling = node_of(machine).controlling

            async def complete(real: Callable[[], Any] = controlling._complete_partitions) -> None:
                tried.append(1)
                if len(tried) == 1:
                    raise StoreUnavailable("/", "the store does not answer")
                await real()

            monkeypatch.setattr(controlling, "_complete_partitions", complete)
        await cluster.on(cluster.controller, node_of(cluster.controller).tree.delete(znodes.CONTROLLER))
        await cluster.until(lambda: len(tried) >= 2)
        leader.kill()
        await cluster.until(
            lambda: any(partition_at(each, "orders").is_leader for each in others(cluster, leader))
        )

    in_cluster(main)


def test_a_reload_leaves_no_channel_to_a_broker_that_is_gone() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        controller = cluster.controller
        controlling = node_of(controller).controlling
        gone = others(cluster, controller)[0]

        async def reload() -> list[int]:
            for task in controlling._tasks:
                task.cancel()  # which would see to it by themselves, if they came first
            await node_of(controller).tree.delete(znodes.broker_path(gone.broker_id))
            await controlling.reload()
            return [channel.broker_id for channel in controlling.channels]

        assert gone.broker_id not in await cluster.on(controller, reload())

    in_cluster(main)


# --- sessions and configs


def test_a_session_that_is_lost_twice_is_registered_once() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        assert machine.process is not None
        session: Any = node.tree
        reconnect, lost = session.reconnect, []

        async def lose_again() -> None:
            if not lost:
                lost.append(node.broker_epoch)
                node.membership._on_lost()
            await reconnect()

        session.reconnect = lose_again
        cluster.cluster.store.expire(machine.process)
        await cluster.until(lambda: lost and node.broker_epoch != NO_BROKER_EPOCH)
        epoch = node.broker_epoch
        await asyncio.sleep(5)
        assert node.broker_epoch == epoch

    in_cluster(main)


def test_a_broker_whose_session_ends_while_it_opens_its_logs_joins_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a crash that takes as long as it takes, and nothing is told to the store meanwhile."""

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        machine = others(cluster, cluster.controller)[0]
        machine.kill()
        open_logs, opened = Effects.open_logs, []

        def open_slowly(effects: Effects) -> None:
            open_logs(effects)
            assert machine.process is not None
            cluster.cluster.store.expire(machine.process)
            opened.append(effects)

        monkeypatch.setattr(Effects, "open_logs", open_slowly)
        machine.start()
        await cluster.until(lambda: opened and machine.broker_id in node_of(cluster.controller).image.brokers)
        await cluster.until(lambda: machine.node is not None and not machine.has_given_up)
        assert len(opened) == 1

    in_cluster(main)


def test_a_config_that_changes_while_a_broker_starts_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        machine = others(cluster, cluster.controller)[0]
        machine.kill()
        load_image = serving.load_image

        async def load_and_change(tree: Any, **more: Any) -> Any:
            image = await load_image(tree, **more)
            path = znodes.config_path(TOPICS, "orders")
            await tree.set(path, znodes.encode_config({"min.insync.replicas": "3"}))
            return image

        monkeypatch.setattr(serving, "load_image", load_and_change)
        machine.start()
        await cluster.until(lambda: cluster.cluster.is_settled)
        await cluster.until(lambda: partition_at(machine, "orders").replica.min_insync_replicas == 3)

    in_cluster(main)


def test_a_config_counts_for_a_partition_that_the_image_does_not_know_yet() -> None:
    """LeaderAndIsr comes before UpdateMetadata, and the store's word between the two."""

    async def main(cluster: SimulatedCluster) -> None:
        node = node_of(cluster.machines[0])
        partition = node.effects.open_partition("orders", bytes(15) + b"1", 0, is_new=True)
        assert partition.replica.min_insync_replicas == 1
        node.effects.apply(ConfigsChanged(TOPICS, "orders", {"min.insync.replicas": "2"}))
        assert partition.replica.min_insync_replicas == 2

    in_cluster(main)


# --- stopping


def test_the_last_broker_stops_without_waiting_for_anybody() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=2)
        first, last = cluster.machines
        first.kill()
        await cluster.until(lambda: partition_at(last, "orders").replica.isr == {2})
        began = cluster.schedule.now
        stopped = last.stop()
        await cluster.until(stopped.done)
        assert cluster.schedule.now - began < 1

    in_cluster(main, of=2)


def test_a_broker_waits_for_a_replica_that_is_catching_up() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", replicas=2)
        first, last = cluster.machines
        leader = cluster.leader("orders")
        other = first if leader is last else last
        other.kill()
        await cluster.until(lambda: len(partition_at(leader, "orders").replica.isr) == 1)
        other.start()
        await cluster.until(lambda: other.node is not None)
        stopped = leader.stop()
        await cluster.until(stopped.done)
        assert partition_at(other, "orders").is_leader

    in_cluster(main, of=2)


# --- what clients ask


def test_a_request_for_the_controller_is_answered_by_the_broker_that_becomes_it() -> None:
    """It reached a broker that knew of no controller, and waits there until there is one."""

    async def main(cluster: SimulatedCluster) -> None:
        asked = others(cluster, cluster.controller)[0]
        # Else its last word may come after we have forgotten it.
        await cluster.on(cluster.controller, node_of(cluster.controller).controlling.channels.settle(5))
        for machine in others(cluster, asked):
            machine.kill()
        image = node_of(asked).image
        image.set_controller(NO_CONTROLLER, epoch=image.controller_epoch)
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        answer = await cluster.client.ask(asked.address, request, CreateTopicsResponse, 5, answer_seconds=20)
        assert answer.topics[0].error_code == ErrorCode.NONE

    in_cluster(main)


def test_notifications_of_changed_configurations_go_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "LOOK_SECONDS", 2.0)
    monkeypatch.setattr(notifications, "MAX_AGE_SECONDS", 5.0)

    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        controller = cluster.controller
        node = node_of(controller)
        entry = AlterableConfig(name="retention.ms", config_operation=0, value="1000")
        altered = AlterConfigsResource(resource_type=2, resource_name="orders", configs=[entry])
        (answer,) = await cluster.on(
            controller, node.configs.alter_incrementally([altered], validate_only=False)
        )
        assert answer.error_code == 0

        async def left() -> list[str]:
            return await node.tree.children(znodes.CONFIG_CHANGES)

        assert await cluster.on(controller, left()) == ["config_change_0000000000"]
        await asyncio.sleep(4.0)
        assert await cluster.on(controller, left()) == ["config_change_0000000000"]
        await asyncio.sleep(6.0)
        assert await cluster.on(controller, left()) == []

    in_cluster(main)
