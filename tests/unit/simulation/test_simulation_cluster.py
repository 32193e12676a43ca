"""What a simulated cluster knows of itself: when a machine may lose its power, who is a member, why a broker ended."""

import asyncio
import errno

from penstock.broker.cluster.membership import Membership
from penstock.broker.requests import produce_answer
from simulation.memory_zookeeper import MemoryZooKeeper
from simulation.seeds.acks_one import AcksOneProducer
from simulation.seeds.client import Client
from simulation.seeds.loop import Schedule
from simulation.seeds.process import Process
from simulation.seeds.producers import Producer
from simulation.seeds.store import Session
from tests.unit.broker.simulated_cluster import SimulatedCluster


def test_a_machine_may_lose_its_power_when_all_are_in_sync_only():
    async def main(cluster):
        await cluster.create("orders")
        simulated, machine = cluster.cluster, cluster.machines[0]
        await cluster.until(simulated.is_in_sync)
        machine.kill()
        assert not simulated.is_in_sync()
        machine.start()
        await cluster.until(lambda: machine.node is not None)
        await cluster.until(simulated.is_in_sync)
        cluster.machines[1].die_at_disk(1000, power=False)
        assert not simulated.is_in_sync()
        cluster.machines[1].spare()
        assert simulated.is_in_sync()
        simulated.store.part(machine.name)
        assert not simulated.is_in_sync()
        simulated.store.unite(machine.name)
        await cluster.until(simulated.is_in_sync)
        simulated.network.block(machine.name, "broker-2")
        assert not simulated.is_in_sync()

    SimulatedCluster().run(main)


def test_power_that_would_be_lost_while_others_are_not_in_sync_is_a_kill():
    async def main(cluster):
        await cluster.create("orders")
        await cluster.until(cluster.cluster.is_in_sync)
        first, second = cluster.machines[:2]
        lost = []
        first.lose_power = lambda: lost.append(first)
        second.kill()
        first.die_at_disk(0, power=True)
        await cluster.until(lambda: not first.is_up)
        assert lost == []

    SimulatedCluster().run(main)


def test_a_broker_that_ends_without_a_reason_is_noticed():
    async def main(cluster):
        machine = cluster.machines[0]
        machine.given_up("every log directory has failed")
        assert cluster.history.violations == ["broker-1 ended by itself: every log directory has failed"]
        assert machine.has_given_up
        assert not machine.is_up
        cluster.history.violations.clear()

    SimulatedCluster().run(main)


def test_a_broker_without_a_disk_may_end():
    async def main(cluster):
        machine = cluster.machines[0]
        machine.break_disk("append", errno.EIO)
        machine.given_up("every log directory has failed")
        assert cluster.history.counts["endings (disk)"] == 1

    SimulatedCluster().run(main)


def test_a_broker_that_is_parted_from_the_store_is_an_outsider_after_a_while():
    async def main(cluster):
        simulated, machine = cluster.cluster, cluster.machines[0]
        assert simulated.outsider(machine.name) is None
        simulated.store.part(machine.name)
        await cluster.until(lambda: simulated.outsider(machine.name) is machine.process)
        simulated.store.unite(machine.name)
        await cluster.until(lambda: simulated.outsider(machine.name) is None)

    SimulatedCluster().run(main)


async def acknowledged_by_an_outsider(cluster):
    """A leader and the store lose each other for a while, and one who writes with acks=1 does not notice."""
    await cluster.create("orders")
    simulated, leader = cluster.cluster, cluster.leader("orders")
    client = Client(Process(simulated.network, "q1"), simulated.addresses)
    producer = AcksOneProducer(client, cluster.history, simulated.outsider)
    until = client.process.loop.time() + 20.0
    writing = client.process.start(producer.run([("orders", 0)], until=until))
    await asyncio.sleep(1)
    simulated.store.part(leader.name)
    await asyncio.sleep(8)
    simulated.store.unite(leader.name)
    await cluster.until(writing.done)
    await cluster.until(lambda: simulated.is_settled and simulated.is_in_sync())
    return cluster.history.acknowledged.get(("orders", 0), {})


def test_a_leader_that_is_no_member_acknowledges_nothing_alone():
    async def main(cluster):
        assert await acknowledged_by_an_outsider(cluster) == {}

    SimulatedCluster().run(main)


def test_a_leader_that_is_no_member_and_acknowledges_alone_is_found(monkeypatch):
    monkeypatch.setattr(Membership, "is_proven", lambda membership: True)

    async def main(cluster):
        promised = await acknowledged_by_an_outsider(cluster)
        stored = cluster.cluster.copies()["orders", 0][1]
        assert any(value not in stored for value in promised)

    SimulatedCluster().run(main)


async def acknowledged_while_cut_off(cluster):
    """A leader loses the store and all other brokers for a while, and one who writes with acks=all does not notice."""
    await cluster.create("orders")
    simulated, leader = cluster.cluster, cluster.leader("orders")
    await cluster.until(simulated.is_in_sync)
    client = Client(Process(simulated.network, "p1"), simulated.addresses)
    producer = Producer(client, cluster.history, max_in_flight=1)
    writing = client.process.start(producer.run([("orders", 0)], until=client.process.loop.time() + 6.0))
    await asyncio.sleep(1)
    simulated.store.part(leader.name)
    for other in cluster.machines:
        if other is not leader:
            simulated.network.block(leader.name, other.name)
            simulated.network.block(other.name, leader.name)
    await asyncio.sleep(8)
    simulated.store.unite(leader.name)
    simulated.network.heal()
    await cluster.until(writing.done)
    await cluster.until(lambda: simulated.is_settled and simulated.is_in_sync())
    promised = cluster.history.acknowledged["orders", 0]
    stored = simulated.copies()["orders", 0][1]
    assert promised
    return [value for value in promised if value not in stored]


def test_a_leader_that_is_cut_off_promises_nothing_that_is_not_kept():
    async def main(cluster):
        assert await acknowledged_while_cut_off(cluster) == []

    SimulatedCluster().run(main)


def test_a_leader_that_acknowledges_before_its_followers_have_it_is_found(monkeypatch):
    class NoWait:
        def __init__(self, loop, uncommitted, finish, *, timeout_ms):
            finish({})

        def cancel(self):
            pass

    monkeypatch.setattr(produce_answer, "CommitWait", NoWait)

    async def main(cluster):
        assert await acknowledged_while_cut_off(cluster)

    SimulatedCluster().run(main)


def test_a_broker_cannot_know_of_a_session_that_was_taken_from_it():
    async def main(cluster):
        simulated, machine = cluster.cluster, cluster.machines[0]
        simulated.store.part(machine.name)
        simulated.store.expire(machine.process)
        assert simulated.store.broker_epoch(machine.broker_id) is None
        assert simulated.outsider(machine.name) is None

    SimulatedCluster().run(main)


def test_what_the_store_says_during_a_pause_may_come_late_but_in_order():
    schedule = Schedule(1)
    loop = schedule.new_loop("broker")
    heard = []

    async def main():
        session = Session(MemoryZooKeeper(schedule.new_loop("zookeeper")), loop=loop)
        session.receive(lambda: heard.append(1))
        session.hold()
        for number in (2, 3):
            session.receive(lambda number=number: heard.append(number))
        await asyncio.sleep(1)
        assert heard == [1]
        session.release()
        session.receive(lambda: heard.append(4))
        await asyncio.sleep(1)
        assert heard == [1, 2, 3, 4]

    schedule.run(main(), loop)
