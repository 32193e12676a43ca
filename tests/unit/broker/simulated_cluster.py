"""Whole brokers on the simulation's clock, disks, network and store, for tests of a single moment in their lives."""

from asyncio import Task, sleep, timeout
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from penstock.broker.node import Node
from penstock.broker.partitions.partition import Partition
from simulation.seeds.admins import Admin
from simulation.seeds.client import Client
from simulation.seeds.cluster import Cluster
from simulation.seeds.edge import sealed
from simulation.seeds.history import History
from simulation.seeds.loop import Schedule
from simulation.seeds.machine import Machine
from simulation.seeds.network import Network
from simulation.seeds.process import Process

Result = TypeVar("Result")
PATIENCE_SECONDS = 60.0  # of virtual time


class SimulatedCluster:
    def __init__(self, brokers: int = 3, *, seed: int = 1, options: Mapping[str, str] | None = None) -> None:
        self.schedule = Schedule(seed)
        self.history = History()
        network = Network(self.schedule)
        self.director = Process(network, "director")
        common = {"auto.create.topics.enable": "false", "log.cleaner.enable": "false", **(options or {})}
        self.cluster = Cluster(network, self.history, brokers=brokers, options=common)
        self.client = Client(self.director, self.cluster.addresses)

    def run(self, main: "Callable[[SimulatedCluster], Coroutine[Any, Any, None]]") -> None:
        """`main` once all brokers serve; whatever a broker logs with a traceback fails the test."""

        async def whole() -> None:
            for machine in self.cluster.machines:
                machine.start()
            await self.until(lambda: self.cluster.is_whole and self.controllers == 1)
            await main(self)

        with sealed(self.schedule, on_lead=self.history.leads):
            try:
                self.schedule.run(whole(), self.director.loop)
            finally:
                self.schedule.close()
            assert self.schedule.mistakes == []
            assert self.history.violations == []

    async def until(self, condition: Callable[[], object]) -> None:
        async with timeout(PATIENCE_SECONDS):
            while not condition():
                await sleep(0.01)

    async def on(self, machine: Machine, program: Coroutine[Any, Any, Result]) -> Result:
        """Run something in a broker's process."""
        assert machine.process is not None
        task: Task[Result] = machine.process.start(program)
        await self.until(task.done)
        return task.result()

    async def create(self, topic: str, *, replicas: int = 3, partitions: int = 1) -> None:
        await Admin(self.client, self.history, replicas=replicas).create(topic, partitions=partitions)
        await self.until(lambda: self.cluster.is_settled)

    async def delete(self, topic: str) -> None:
        admin = Admin(self.client, self.history, replicas=1)
        admin.expected[topic] = True
        await admin.delete(topic)
        await self.until(lambda: self.cluster.is_settled)

    @property
    def controllers(self) -> int:
        return sum(machine.node is not None and machine.node.is_controller for machine in self.machines)

    @property
    def controller(self) -> Machine:
        return next(each for each in self.machines if each.node is not None and each.node.is_controller)

    @property
    def machines(self) -> list[Machine]:
        return self.cluster.machines

    def leader(self, topic: str) -> Machine:
        return next(each for each in self.machines if each.node and partition_at(each, topic).is_leader)


Main = Callable[[SimulatedCluster], Coroutine[Any, Any, None]]


def in_cluster(main: Main, *, of: int = 3, seed: int = 1, options: Mapping[str, str] | None = None) -> None:
    SimulatedCluster(of, seed=seed, options=options).run(main)


def others(cluster: SimulatedCluster, machine: Machine) -> list[Machine]:
    return [each for each in cluster.machines if each is not machine]


def node_of(machine: Machine) -> Node:
    assert machine.node is not None
    return machine.node


def partition_at(machine: Machine, topic: str, index: int = 0) -> Partition:
    return node_of(machine).partitions.get(topic, index)
