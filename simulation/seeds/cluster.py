"""The cluster under simulation: a store, the machines of its brokers, and looks into them that only a simulation can have."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from penstock.records.batch import iterate_headers
from simulation.seeds.history import History, Place
from simulation.seeds.machine import Machine
from simulation.seeds.network import Network
from simulation.seeds.process import Process
from simulation.seeds.sockets import Address
from simulation.seeds.store import SESSION_TIMEOUT_SECONDS, SimulatedZooKeeper

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition

READ_BYTES: Final = 1024 * 1024
DISK_ENDINGS: Final = ("every log directory has failed", "cannot use the data directory")
STORE_ENDINGS: Final = ("does not answer", "the session with the metadata store has ended")
"""Why a broker may end by itself: its disk is broken, or it cannot begin without the store."""


class Cluster:
    def __init__(
        self,
        network: Network,
        history: History,
        *,
        brokers: int,
        options: dict[str, str],
        session_timeout_s: float = SESSION_TIMEOUT_SECONDS,
    ) -> None:
        self.network = network
        self.history = history
        self.store = SimulatedZooKeeper(network, alone=brokers == 1, session_timeout_s=session_timeout_s)
        if brokers > 1:
            options = {**options, "zookeeper.connect": "memory"}
        self.machines = [Machine(network, number, self.store, options) for number in range(1, brokers + 1)]
        for machine in self.machines:
            machine.on_given_up = self._judge_ending
            machine.may_lose_power = self.is_in_sync
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

    def is_in_sync(self, besides: Machine | None = None) -> bool:
        """Whether one machine may lose its power and nothing else: every broker is up and a member, nothing is between
        them and the store, and every replica of every partition is in sync, as the store has it. Then the others have all
        that was acknowledged, and one of them will lead. `besides`: the machine whose time has come.
        """
        return self._is_undisturbed(besides) and not self.store.out_of_sync()

    def has_two_in_sync(self, *, besides: Place) -> bool:
        """As `is_in_sync`, but for one partition that is being moved, and where two replicas are in sync: one will do."""
        return self._is_undisturbed() and all(place == besides for place in self.store.fragile())

    def _is_undisturbed(self, besides: Machine | None = None) -> bool:
        return (
            self.network.is_whole
            and self.store.is_whole
            and all(machine is besides or self._is_well(machine) for machine in self.machines)
        )

    def _is_well(self, machine: Machine) -> bool:
        node = machine.node
        if node is None or machine.is_paused or machine.is_doomed or machine.is_disk_broken:
            return False
        return self.store.broker_epoch(machine.broker_id) == node.broker_epoch

    def unlike_store(self) -> list[str]:
        """The brokers that have not heard of a topic's configuration."""
        return [
            f"{machine.name} has another configuration of {topic} than the store"
            for topic, overrides in self.store.topic_configs().items()
            for machine in self.machines
            if machine.node is not None and dict(machine.node.image.topic_overrides(topic)) != overrides
        ]

    def outsider(self, host: str) -> Process | None:
        """The broker's process on that host when it is not a member of the cluster, as the store has it."""
        for machine in self.machines:
            if machine.name == host and machine.process is not None:
                is_out = self.store.is_out(machine.process, machine.broker_id)
                return machine.process if is_out else None
        return None

    def _judge_ending(self, machine: Machine, reason: str) -> None:
        """A broker ended although nobody asked it to."""
        assert machine.process is not None
        if any(text in reason for text in DISK_ENDINGS):
            kind, is_right = "disk", machine.is_disk_broken
        elif any(text in reason for text in STORE_ENDINGS):
            kind, is_right = "store", self.store.has_failed(machine.process)
        else:
            kind, is_right = "other", False
        self.history.counts[f"endings ({kind})"] += 1
        if not is_right:
            self.history.violated(f"{machine.name} ended by itself: {reason}")

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
            if partition.is_leader and len(partition.replica.isr) == len(partition.replica.replicas):
                led.add(place)
        return len(led) == len(ends) and all(len(of_place) == 1 for of_place in ends.values())

    def unsettled(self) -> list[str]:
        """For who wants to know why it is not settled."""
        found = [f"{machine.name} does not serve" for machine in self.machines if machine.node is None]
        ends: dict[Place, list[str]] = {}
        for machine, place, partition in self.partitions():
            text = (
                f"{machine.broker_id}{'*' if partition.is_leader else ''} epoch {partition.leader_epoch} "
                f"{partition.high_watermark}/{partition.log.end_offset} isr {sorted(partition.replica.isr)}"
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
