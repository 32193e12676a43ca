"""The store of a simulated cluster: a session for each broker's process, and what can come between them."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from penstock.metadata import znodes
from penstock.metadata.image import NO_LEADER
from penstock.metadata.tree import MetadataTree
from simulation.memory_store import MemorySession
from simulation.memory_zookeeper import MemoryZooKeeper
from simulation.seeds.history import Place
from simulation.seeds.network import Network
from simulation.seeds.process import Process

SESSION_TIMEOUT_SECONDS: Final = 3.0
STORE_DELAY_SECONDS: Final = 0.003
LATE_CHANCE: Final = 0.5
LATE_SECONDS: Final = 2.0
"""After a process was held back, what the store had to tell it in the meantime may take so long."""


class Session(MemorySession):
    """A broker's. Its process need not look at what the store says first when it goes on after a pause."""

    _held: deque[Callable[[], None]] | None = None

    def hold(self) -> None:
        if self._held is None:
            self._held = deque()

    def release(self) -> None:
        held, self._held = self._held, None
        for call in held or ():
            super().receive(call)

    def receive(self, call: Callable[[], None]) -> None:
        if self._held is None:
            super().receive(call)
        else:
            self._held.append(call)


class SimulatedZooKeeper:
    """The store of all brokers. A single broker's is its own: with its process, its session is over at once."""

    def __init__(
        self, network: Network, *, alone: bool, session_timeout_s: float = SESSION_TIMEOUT_SECONDS
    ) -> None:
        self._schedule = network.schedule
        self._random = network.schedule.random
        self._alone = alone
        self._sessions: dict[Process, Session] = {}
        self._opened_at: dict[Process, float] = {}
        self._parted: dict[str, None] = {}
        self._failed_at: dict[str, float] = {}
        self._taken_away_at: dict[Process, float] = {}
        self.max_delay_seconds = STORE_DELAY_SECONDS
        self.zookeeper = MemoryZooKeeper(
            network.schedule.new_loop("zookeeper"),
            session_timeout_s=session_timeout_s,
            delay_s=lambda: self._random.random() * self.max_delay_seconds,
        )

    async def open(self, process: Process) -> MetadataTree:
        session = Session(self.zookeeper, loop=process.loop)
        self._sessions[process] = session
        self._opened_at[process] = self._schedule.now
        if process.name in self._parted:
            self.zookeeper.disconnect(session, silently=True)
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
        """Held back for longer than its timeout, a session is over; not that of one whose store is its own."""
        session = None if self._alone else self._sessions.get(process)
        last_word_at = None if session is None else self.zookeeper.last_word_at(session)
        if session is None or last_word_at is None:
            return  # a session without a connection is counted out by the store itself
        heard_before: float = last_word_at
        session.hold()
        session_id = session.session_id

        def look() -> None:
            if not process.loop.is_paused or process.loop.is_dead or session.session_id != session_id:
                return
            # What was on its way when the process was held back has come since.
            heard_at = max(heard_before, self.zookeeper.heard_at(session) or 0.0)
            ends_at = heard_at + self.zookeeper.session_timeout_s
            if self._schedule.now >= ends_at:
                self._failed_at[process.name] = self._schedule.now
                self.zookeeper.expire(session)
            else:
                self.zookeeper.loop.call_at(ends_at, look)

        look()

    def process_resumed(self, process: Process) -> None:
        session = self._sessions.get(process)
        if session is None:
            return
        is_late = self._random.random() < LATE_CHANCE
        seconds = self._random.random() * LATE_SECONDS if is_late else 0.0

        def release() -> None:
            if not process.loop.is_paused:
                session.release()

        self.zookeeper.loop.call_later(seconds, release)

    # --- for faults

    def expire(self, process: Process) -> None:
        session = self._sessions.get(process)
        if session is not None:
            self._taken_away_at[process] = self._failed_at[process.name] = self._schedule.now
            self.zookeeper.expire(session)

    def cut_off(self, process: Process, *, silently: bool) -> None:
        session = self._sessions.get(process)
        if session is not None:
            self._failed_at[process.name] = self._schedule.now
            self.zookeeper.disconnect(session, silently=silently)

    def join(self, process: Process) -> None:
        session = self._sessions.get(process)
        if session is not None and process.name not in self._parted:
            self._failed_at[process.name] = self._schedule.now
            self.zookeeper.connect(session)

    def wipe(self) -> None:
        """Its directories are removed under it: it knows nothing of the cluster any more."""
        self._all_failed()
        self.zookeeper.wipe()

    def lag(self, process: Process, max_seconds: float) -> None:
        """The server that this process reads from hears of changes up to so much later."""
        session = self._sessions.get(process)
        if session is not None:
            self.zookeeper.lag(session, lambda: self._random.random() * max_seconds)

    def cut_off_server(self, process: Process) -> None:
        """The server that this process reads from and the others lose each other."""
        session = self._sessions.get(process)
        if session is not None and not self._alone:
            self._failed_at[process.name] = self._schedule.now
            self.zookeeper.cut_off_server(session)

    def catch_up(self, process: Process) -> None:
        session = self._sessions.get(process)
        if session is not None and self.zookeeper.is_behind(session):
            self._failed_at[process.name] = self._schedule.now
            self.zookeeper.catch_up(session)

    def part(self, host: str) -> None:
        """Nothing passes between that host, whatever processes come and go there, and the store."""
        self._parted[host] = None
        for process in self._sessions:
            if process.name == host:
                self.cut_off(process, silently=True)

    def unite(self, host: str) -> None:
        self._parted.pop(host, None)
        self._failed_at[host] = self._schedule.now
        for process in self._sessions:
            if process.name == host:
                self.join(process)

    def stop(self) -> None:
        if self.zookeeper.is_up:
            self.zookeeper.stop()

    def start(self) -> None:
        if not self.zookeeper.is_up:
            self._all_failed()
            self.zookeeper.start()

    def be_slow(self, max_delay_seconds: float) -> None:
        self.max_delay_seconds = max_delay_seconds
        self._all_failed()

    def be_quick(self) -> None:
        if self.max_delay_seconds != STORE_DELAY_SECONDS:
            self._all_failed()
            self.max_delay_seconds = STORE_DELAY_SECONDS

    def heal(self) -> None:
        self.start()
        self.be_quick()
        for host in list(self._parted):
            self.unite(host)
        for process in self._sessions:
            self.catch_up(process)
            if not self.zookeeper.is_connected(self._sessions[process]):
                self.join(process)

    def _all_failed(self) -> None:
        for process in self._sessions:
            self._failed_at[process.name] = self._schedule.now

    # --- looks

    @property
    def is_whole(self) -> bool:
        return (
            self.zookeeper.is_up
            and not self._parted
            and all(
                self.zookeeper.is_connected(session) and not self.zookeeper.is_behind(session)
                for session in self._sessions.values()
            )
        )

    def has_failed(self, process: Process) -> bool:
        """Whether that process had trouble with the store since it was started."""
        is_slow = self.max_delay_seconds > STORE_DELAY_SECONDS  # a short session may not begin in time
        if is_slow or not self.zookeeper.is_up or process.name in self._parted:
            return True
        session = self._sessions.get(process)
        if session is not None and not self.zookeeper.is_connected(session):
            return True
        return self._failed_at.get(process.name, 0.0) >= self._opened_at.get(process, self._schedule.now)

    def broker_epoch(self, broker_id: int) -> int | None:
        """Of the registration that there is."""
        path = znodes.broker_path(broker_id)
        tree = self.zookeeper.tree
        return tree.get(path).created if tree.owner(path) is not None else None

    def is_out(self, process: Process, broker_id: int) -> bool:
        """Whether the broker is no member of its cluster, and could know: of a session that ended before its time,
        by a fault, it cannot.
        """
        taken_away_at = self._taken_away_at.get(process)
        if (
            taken_away_at is not None
            and self._schedule.now < taken_away_at + self.zookeeper.session_timeout_s
        ):
            return False
        return not self._alone and self.broker_epoch(broker_id) is None

    def topic_configs(self) -> dict[str, dict[str, str]]:
        tree = self.zookeeper.tree
        found = {}
        for topic in tree.children(znodes.TOPICS):
            path = znodes.config_path("topics", topic)
            if tree.owner(path) is not None:
                found[topic] = znodes.decode_config(path, tree.get(path).data)
        return found

    def out_of_sync(self) -> list[Place]:
        """The partitions that have no leader, are being moved, or have replicas that are not in sync."""
        return [
            place
            for place, assignment, state in self._partitions()
            if state is None
            or state.leader == NO_LEADER
            or assignment.adding
            or assignment.removing
            or sorted(state.isr) != sorted(assignment.replicas)
        ]

    def fragile(self) -> list[Place]:
        """The partitions that have no leader, or fewer than two replicas that are in sync."""
        return [
            place
            for place, _, state in self._partitions()
            if state is None or state.leader == NO_LEADER or len(state.isr) < 2
        ]

    def _partitions(self) -> Iterator[tuple[Place, znodes.Assignment, znodes.PartitionState | None]]:
        tree = self.zookeeper.tree
        for topic in tree.children(znodes.TOPICS) if tree.owner(znodes.TOPICS) is not None else ():
            _, assignments = znodes.decode_topic(topic, tree.get(znodes.topic_path(topic)).data)
            for index, assignment in enumerate(assignments):
                path = znodes.partition_state_path(topic, index)
                is_there = tree.owner(path) is not None
                state = znodes.decode_partition_state(path, tree.get(path).data) if is_there else None
                yield (topic, index), assignment, state
