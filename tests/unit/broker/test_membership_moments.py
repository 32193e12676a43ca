"""The lease of a broker, its registration, and what a new topic begins with."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.broker.cluster import membership
from penstock.broker.cluster.shared_configs import CONFIG_SECONDS
from penstock.metadata import znodes
from penstock.metadata.image import NO_BROKER_EPOCH
from penstock.metadata.tree import Check, SessionLost, StoreUnavailable, TreeNode, TreeOp
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.build import build_batch
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from penstock.wire.messages.produce import ProduceResponse
from simulation.seeds.machine import Machine
from simulation.seeds.producers import produce_request
from tests.unit.broker.simulated_cluster import (
    SimulatedCluster,
    in_cluster,
    node_of,
    others,
    partition_at,
)

CONFIGS = "/config/topics/"


# --- the lease


def test_a_store_that_ends_each_session_at_once_is_asked_with_pauses() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        store: Any = node.tree
        asked = 0
        reconnect = store.reconnect

        async def refuse() -> None:
            nonlocal asked
            asked += 1
            raise SessionLost("/", "the login is refused")

        store.reconnect = refuse
        member: Any = node.membership
        member._lost.set()
        await asyncio.sleep(1)
        assert 1 < asked <= 1 / membership.SESSION_AGAIN_SECONDS + 1
        store.reconnect = reconnect
        await cluster.until(node.is_proven)

    in_cluster(main)


def test_a_store_that_only_answers_reads_proves_nothing() -> None:
    """As a server that is cut off from the others together with its broker: it reads from its own memory."""

    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        await cluster.until(node.is_proven)

        async def no_quorum(ops: Sequence[TreeOp]) -> None:
            raise StoreUnavailable(ops[0].path, "no quorum", maybe_done=True)

        store: Any = node.tree
        store.multi, multi = no_quorum, store.multi
        await cluster.until(lambda: not node.is_proven())
        assert await cluster.on(machine, node.tree.exists(znodes.broker_path(node.broker_id)))
        store.multi = multi
        await cluster.until(node.is_proven)

    in_cluster(main)


def test_a_lease_counts_from_the_proof_before_the_last() -> None:
    """That one the quorum has surely heard of: a server tells it of its clients' requests a little later."""

    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        store: Any = node.tree
        multi = store.multi
        own = [Check(znodes.broker_path(node.broker_id))]
        asked: list[float] = []

        async def note(ops: Sequence[TreeOp]) -> Any:
            if list(ops) == own:
                asked.append(node.clock.monotonic())
            return await multi(ops)

        store.multi = note
        await cluster.until(lambda: len(asked) == 3)
        assert node.is_proven()
        assert node.membership._heard_at <= asked[1]

    in_cluster(main)


def test_a_broker_whose_registration_is_deleted_leads_nothing_and_registers_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders", partitions=3)
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        led = next(
            partition_at(machine, "orders", index)
            for index in range(3)
            if partition_at(machine, "orders", index).is_leader
        )
        epoch = node.broker_epoch
        await cluster.until(node.is_proven)
        noticed = []
        step_down = node.roles.step_down

        def note() -> None:
            step_down()
            noticed.append((led.is_leader, node.is_proven()))

        monkeypatch.setattr(node.roles, "step_down", note)
        await cluster.on(
            cluster.controller,
            node_of(cluster.controller).tree.delete(znodes.broker_path(machine.broker_id)),
        )
        await cluster.until(lambda: noticed)
        assert noticed == [(False, False)]
        await cluster.until(lambda: node.broker_epoch not in (epoch, NO_BROKER_EPOCH))
        await cluster.until(lambda: cluster.cluster.is_settled)
        await cluster.until(node.is_proven)

    in_cluster(main)


def test_a_controller_whose_registration_is_deleted_is_elected_anew() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        machine = cluster.controller
        node = node_of(machine)
        epoch = node.image.controller_epoch
        await cluster.on(machine, node.tree.delete(znodes.broker_path(machine.broker_id)))
        await cluster.until(
            lambda: cluster.controllers == 1 and node_of(cluster.controller).image.controller_epoch > epoch
        )
        await cluster.until(lambda: len(node_of(cluster.controller).image.brokers) == 3)

    in_cluster(main)


def test_a_lease_ends_with_a_session_that_a_new_server_grants_a_shorter_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(cluster: SimulatedCluster) -> None:
        node = node_of(others(cluster, cluster.controller)[0])
        await cluster.until(node.is_proven)
        monkeypatch.setattr(cluster.cluster.store.zookeeper, "session_timeout_s", 0.001)
        assert not node.is_proven()

    in_cluster(main)


def test_proofs_that_follow_each_other_at_once_do_not_lengthen_the_lease() -> None:
    """The server that took the first has not told the quorum of it yet."""

    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        member = node.membership
        await cluster.until(lambda: member._heard_at > 0)
        for _ in range(5):
            await cluster.on(machine, member._prove_once(node.broker_epoch))
        session_s = cluster.cluster.store.zookeeper.session_timeout_s
        assert member._heard_at <= cluster.schedule.now - session_s / membership.PROOFS_PER_TIMEOUT

    in_cluster(main)


def test_a_broker_whose_node_is_taken_acknowledges_nothing_alone_from_that_moment() -> None:
    """It hears of it by its watch, long before its next proof."""

    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        await cluster.until(node.is_proven)
        store: Any = node.tree
        proofs: list[float] = []
        multi = store.multi

        async def slowly(ops: Sequence[TreeOp]) -> Any:
            proofs.append(node.clock.monotonic())
            await asyncio.sleep(1.0)
            return await multi(ops)

        store.multi = slowly
        began = cluster.schedule.now
        controller = node_of(cluster.controller)
        await cluster.on(cluster.controller, controller.tree.delete(znodes.broker_path(machine.broker_id)))
        await cluster.until(lambda: not node.is_proven())
        assert cluster.schedule.now - began < 0.1
        await cluster.until(lambda: proofs)
        assert proofs[0] - began < 0.1

    in_cluster(main)


# --- one id, one broker


def twin_of(cluster: SimulatedCluster, machine: Machine) -> tuple[Machine, list[str]]:
    """Another machine with the id and the advertised address of one that is there; and why it gave up."""
    options = {"zookeeper.connect": "memory", "log.cleaner.enable": "false"}
    store = cluster.cluster.store
    twin = Machine(cluster.cluster.network, machine.broker_id, store, options, host="twin")
    endings: list[str] = []
    twin.on_given_up = lambda _, reason: endings.append(reason)
    return twin, endings


def test_a_second_broker_of_an_id_and_an_address_is_refused_and_the_first_stays() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        epoch = node.broker_epoch
        twin, endings = twin_of(cluster, machine)
        twin.start()
        began = cluster.schedule.now

        def is_over() -> bool:
            assert node.broker_epoch == epoch
            assert cluster.cluster.store.broker_epoch(machine.broker_id) == epoch
            return bool(endings)

        await cluster.until(is_over)
        assert endings == [
            f"broker {machine.broker_id} is already in the cluster, at broker-{machine.broker_id}:9092; "
            "stop it, or give this one another id (--broker-id)"
        ]
        assert cluster.schedule.now - began > cluster.cluster.store.zookeeper.session_timeout_s
        assert node.is_proven()

    in_cluster(main)


def test_a_broker_whose_id_was_taken_waits_for_the_other_and_acknowledges_nothing() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        assert machine.process is not None
        store = cluster.cluster.store
        twin, endings = twin_of(cluster, machine)
        twin.start()
        store.part(machine.name)
        await cluster.until(lambda: twin.node is not None and twin.node.broker_epoch != NO_BROKER_EPOCH)
        taken = node_of(twin).broker_epoch
        store.unite(machine.name)
        await cluster.until(lambda: node.broker_epoch == NO_BROKER_EPOCH)
        for _ in range(100):
            await asyncio.sleep(0.1)
            assert store.broker_epoch(machine.broker_id) == taken
            assert not node.is_proven()
        twin.kill()
        await cluster.until(lambda: node.broker_epoch > taken)
        await cluster.until(node.is_proven)
        assert endings == []

    in_cluster(main)


def test_a_killed_broker_takes_its_own_node_and_need_not_wait_for_its_old_session() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        machine = cluster.controller
        epoch = node_of(machine).broker_epoch
        machine.kill()
        began = cluster.schedule.now
        machine.start()
        await cluster.until(lambda: machine.node is not None and machine.node.broker_epoch > epoch)
        await cluster.until(lambda: cluster.controllers == 1)
        assert cluster.schedule.now - began < cluster.cluster.store.zookeeper.session_timeout_s / 2

    in_cluster(main)


# --- what a new topic begins with


def slow_configs(machine: Machine, seconds: float) -> list[str]:
    """Every read of a topic's configuration takes so long; which were read."""
    store: Any = node_of(machine).tree
    get = store.get
    read: list[str] = []

    async def slowly(path: str) -> TreeNode:
        if path.startswith(CONFIGS):
            read.append(path)
            await asyncio.sleep(seconds)
        found: TreeNode = await get(path)
        return found

    store.get = slowly
    return read


async def create(cluster: SimulatedCluster, name: str, partitions: int, **configs: str) -> None:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=3,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5_000)
    answer = await cluster.client.ask(cluster.controller.address, request, CreateTopicsResponse, 5)
    assert answer.topics[0].error_code == ErrorCode.NONE


def test_a_new_topics_first_records_meet_its_own_options() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        read = {machine.broker_id: slow_configs(machine, 0.5) for machine in cluster.machines}
        await create(cluster, "orders", 6, max_message_bytes="3000000", min_insync_replicas="2")
        now_ms = node_of(cluster.machines[0]).clock.now_ms()
        records = bytes(build_batch([(None, bytes(1_500_000), (), now_ms)]))
        for index in range(6):
            await cluster.until(
                lambda index=index: any(  # type: ignore[misc]
                    node_of(each).partitions.topic("orders") is not None
                    and partition_at(each, "orders", index).is_leader
                    for each in cluster.machines
                )
            )
            leader = next(each for each in cluster.machines if partition_at(each, "orders", index).is_leader)
            assert partition_at(leader, "orders", index).replica.min_insync_replicas == 2
            answer = await cluster.client.ask(
                leader.address, produce_request(("orders", index), records), ProduceResponse, 9
            )
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        for machine in others(cluster, cluster.controller):
            # Once for all partitions, and when the watch tells.
            assert 1 <= len(read[machine.broker_id]) <= 3

    in_cluster(main)


def test_a_topic_made_again_does_not_begin_with_the_options_of_the_one_before() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        slow_configs(machine, 0.5)
        # As after a deletion of which only the watch has not told yet.
        path = znodes.config_path("topics", "orders")
        await cluster.on(machine, node.tree.create(path, znodes.encode_config({"min.insync.replicas": "3"})))
        await cluster.until(lambda: node.image.topic_overrides("orders"))
        await cluster.on(machine, node.tree.delete(path))
        await create(cluster, "orders", 1, min_insync_replicas="2")
        await cluster.until(lambda: node.partitions.topic("orders") is not None)
        assert partition_at(machine, "orders").replica.min_insync_replicas == 2

    in_cluster(main)


def test_a_store_that_is_silent_does_not_keep_a_new_topic_from_its_leader() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        for machine in others(cluster, cluster.controller):
            slow_configs(machine, 1000)
        began = cluster.schedule.now
        await create(cluster, "orders", 3, min_insync_replicas="2")
        await cluster.until(
            lambda: all(node_of(each).partitions.topic("orders") is not None for each in cluster.machines)
        )
        assert cluster.schedule.now - began < 2 * CONFIG_SECONDS

    in_cluster(main)


def test_roles_of_a_controller_that_is_superseded_while_configs_are_read_are_refused() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        node = node_of(machine)
        read = slow_configs(machine, 0.5)
        state = LeaderAndIsrPartitionState(
            partition_index=0, leader=machine.broker_id, leader_epoch=0, isr=[1, 2, 3], replicas=[1, 2, 3]
        )
        topic = LeaderAndIsrTopicState(
            topic_name="orders", topic_id=bytes(15) + b"1", partition_states=[state]
        )
        request = LeaderAndIsrRequest(
            controller_id=cluster.controller.broker_id,
            controller_epoch=node.image.controller_epoch,
            broker_epoch=node.broker_epoch,
            topic_states=[topic],
        )
        assert machine.process is not None
        told = machine.process.start(node.roles.lead_or_follow(request))
        await cluster.until(lambda: read)
        node.image.set_controller(node.image.controller_id, epoch=node.image.controller_epoch + 1)
        await cluster.until(told.done)
        refusal = told.exception()
        assert isinstance(refusal, ApiError)
        assert refusal.code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert node.partitions.topic("orders") is None

    in_cluster(main)
