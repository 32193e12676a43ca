"""The cluster under simulation: a store, the machines of its brokers, and looks into them that only a simulation can have."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from penstock.metadata.tree import MetadataTree
from penstock.records.batch import iterate_headers
from penstock.testing.memory_store import MemorySession
from penstock.testing.memory_zookeeper import MemoryZooKeeper
from penstock.testing.simulation.history import History, Place
from penstock.testing.simulation.machine import Machine
from penstock.testing.simulation.network import Address, Network
from penstock.testing.simulation.process import Process

if TYPE_CHECKING:
    from penstock.broker.partition import Partition

READ_BYTES: Final = 1024 * 1024
SESSION_TIMEOUT_SECONDS: Final = 6.0
STORE_DELAY_SECONDS: Final = 0.003


class Cluster:
    def __init__(self, network: Network, history: History, *, brokers: int, options: dict[str, str]) -> None:
        self.network = network
        self.history = history
        self.store = SimulatedZooKeeper(network, alone=brokers == 1)
        if brokers > 1:
            options = {**options, "zookeeper.connect": "memory"}
        self.machines = [Machine(network, number, self.store, options) for number in range(1, brokers + 1)]
        self.addresses: list[Address] = [machine.address for machine in self.machines]

    def partitions(self) -> "Iterator[tuple[Machine, Place, Partition]]":
        """Every partition that a broker has open now."""
        for machine in self.machines:
            if machine.node is not None:
                for partition in machine.node.partitions:
                    yield machine, (partition.topic, partition.index), partition

    @property
    def is_whole(self) -> bool:
        return all(machine.node is not None for machine in self.machines)

    @property
    def is_settled(self) -> bool:
        """Every broker is up; every replica of a partition has all that any of them has, and its leader knows that."""
        if not self.is_whole or any(machine.is_paused for machine in self.machines):
            return False
        ends: dict[Place, set[int]] = {}
        led: set[Place] = set()
        for _, place, partition in self.partitions():
            ends.setdefault(place, set()).add(partition.log.end_offset)
            if partition.high_watermark != partition.log.end_offset:
                return False
            if partition.is_leader and len(partition.isr) == len(partition.replicas):
                led.add(place)
        return len(led) == len(ends) and all(len(of_place) == 1 for of_place in ends.values())

    def unsettled(self) -> list[str]:
        """For who wants to know why it is not settled."""
        found = [f"{machine.name} does not serve" for machine in self.machines if machine.node is None]
        ends: dict[Place, list[str]] = {}
        for machine, place, partition in self.partitions():
            text = (
                f"{machine.broker_id}{'*' if partition.is_leader else ''} epoch {partition.leader_epoch} "
                f"{partition.high_watermark}/{partition.log.end_offset} isr {sorted(partition.isr)}"
            )
            ends.setdefault(place, []).append(text)
        for place, texts in ends.items():
            if len({text.split(" isr")[0][2:] for text in texts}) > 1 or len(texts) < len(self.machines):
                found.append(f"{place[0]}-{place[1]}: " + ", ".join(texts))
        return found

    def copies(self) -> dict[Place, dict[int, bytes]]:
        """The bytes of every replica's log from its first offset up to the high watermark."""
        found: dict[Place, dict[int, bytes]] = {}
        for machine, place, partition in self.partitions():
            data = b""
            offset = partition.log.start_offset
            while offset < partition.high_watermark:
                part = partition.log.read(offset, READ_BYTES, end_offset=partition.high_watermark)
                raw = part.file.read_at(part.position, part.size_bytes)
                for at, header in iterate_headers(raw):
                    data += raw[at : at + header.size_bytes]
                    offset = header.last_offset + 1
            found.setdefault(place, {})[machine.broker_id] = data
        return found


class SimulatedZooKeeper:
    """The store of all brokers. A single broker's is its own: with its process, its session is over at once."""

    def __init__(self, network: Network, *, alone: bool) -> None:
        self._schedule = network.schedule
        self._alone = alone
        self._sessions: dict[Process, MemorySession] = {}
        random = network.schedule.random
        self.zookeeper = MemoryZooKeeper(
            network.schedule.new_loop("zookeeper"),
            session_timeout_s=SESSION_TIMEOUT_SECONDS,
            delay_s=lambda: random.random() * STORE_DELAY_SECONDS,
        )

    async def open(self, process: Process) -> MetadataTree:
        session = MemorySession(self.zookeeper, loop=process.loop)
        self._sessions[process] = session
        await session.reconnect()
        return session

    def process_ended(self, process: Process) -> None:
        """The session lives on until its time is over."""
        session = self._sessions.pop(process, None)
        if session is not None:
            self.zookeeper.disconnect(session)
            if self._alone:
                self.zookeeper.expire(session)

    def process_paused(self, process: Process) -> None:
        """Held back for longer than its timeout, a session is over."""
        session = self._sessions.get(process)
        if session is None:
            return
        session_id = session.session_id
        # Its last heartbeat was up to a third of the timeout ago.
        timeout_s = SESSION_TIMEOUT_SECONDS * (1 - self._schedule.random.random() / 3)

        def look() -> None:
            if process.loop.is_paused and not process.loop.is_dead and session.session_id == session_id:
                self.zookeeper.expire(session)

        self.zookeeper.loop.call_later(timeout_s, look)

    # --- for faults

    def expire(self, process: Process) -> None:
        session = self._sessions.get(process)
        if session is not None:
            self.zookeeper.expire(session)

    def cut_off(self, process: Process, *, silently: bool) -> None:
        session = self._sessions.get(process)
        if session is not None:
            self.zookeeper.disconnect(session, silently=silently)

    def join(self, process: Process) -> None:
        session = self._sessions.get(process)
        if session is not None:
            self.zookeeper.connect(session)

    def stop(self) -> None:
        if self.zookeeper.is_up:
            self.zookeeper.stop()

    def start(self) -> None:
        if not self.zookeeper.is_up:
            self.zookeeper.start()

    def heal(self) -> None:
        self.start()
        for process in self._sessions:
            self.join(process)
