"""The machine of one broker: its disk outlives the broker's process, in the way that the process ended."""

from asyncio import Task
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Final, Protocol

from penstock.broker.node import Node
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.serving import BrokerServer, Ports, StartError
from penstock.config.layers import BrokerConfig
from penstock.config.loading import load
from penstock.metadata.image import BrokerRegistration
from penstock.metadata.tree import MetadataTree
from penstock.model.endpoints import Endpoint
from penstock.net.buffers import ReceiveBuffers
from penstock.net.listener import Listener, ListenLimits
from penstock.net.peers import Entered
from penstock.storage import names
from penstock.testing.disk import MemoryDisk
from simulation.seeds.history import Place
from simulation.seeds.network import Network
from simulation.seeds.process import Process

PORT: Final = 9092
DATA: Final = "/data"
LISTENER: Final = "PLAINTEXT"
PARTIAL_BYTES_LIMIT: Final = 64 * 1024 * 1024
LIMITS: Final = ListenLimits(
    max_frame_bytes=4 * 1024 * 1024, max_connections=1000, max_connections_per_ip=1000, max_idle_seconds=600.0,
    send_buffer_bytes=-1, receive_buffer_bytes=-1,
)  # fmt: skip


class Store(Protocol):
    """Where brokers keep their metadata, as far as their machines are concerned."""

    def open(self, process: Process) -> Awaitable[MetadataTree]:
        """A session for a process."""

    def process_ended(self, process: Process) -> None: ...
    def process_paused(self, process: Process) -> None: ...
    def process_resumed(self, process: Process) -> None: ...


class Machine:
    def __init__(
        self,
        network: Network,
        broker_id: int,
        store: Store,
        options: dict[str, str],
        *,
        host: str | None = None,
    ) -> None:
        """`host`: when another machine has the name that goes with the id, which is what both advertise."""
        self.broker_id = broker_id
        self.name = host or f"broker-{broker_id}"
        self.address = (self.name, PORT)
        self.process: Process | None = None
        self.node: Node | None = None
        self.starts = 0
        self._boots = 1
        self.has_given_up = False
        self.is_doomed = False
        """It will be killed, or lose its power, when it has written a little more."""
        self.is_disk_broken = False
        self.on_given_up: Callable[[Machine, str], None] = lambda machine, reason: None
        self.may_lose_power: Callable[[Machine], bool] = lambda machine: True
        """Asked at the moment itself, where one was announced; where not, the machine stays and its process is killed."""
        self.on_serving: Callable[[Machine], None] = lambda machine: None
        self._network = network
        self._random = network.schedule.random
        self._store = store
        self._options = {"node.id": str(broker_id), "log.dirs": DATA, **options}
        self._disk = MemoryDisk()
        self._serving: Serving | None = None
        self._dies_silently = False

    @property
    def disk(self) -> MemoryDisk:
        """As it is now: another one after each end of a process."""
        return self._disk

    @property
    def is_up(self) -> bool:
        return self.process is not None

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.loop.is_paused

    def start(self) -> "Task[Any]":
        """A new process on this machine's disk; the task is done when it serves."""
        assert self.process is None
        process = Process(self._network, self.name)
        self.process = process
        self.starts += 1
        self.has_given_up = False
        self._disk.on_power_cut = self._stopped_at_disk
        self._disk.cool()  # also where it need not be: what a broker reads after its start it must be able to wait for
        config, _ = load(self._options, {})
        return process.start(self._begin(process, config))

    async def _begin(self, process: Process, config: BrokerConfig) -> None:
        serving = Serving(
            process,
            f"broker-{self.broker_id}",
            config,
            self._disk,
            self._store,
            self.given_up,
            boot_id=f"boot-{self._boots}",
        )
        try:
            await serving.begin()
        except StartError as error:
            self.given_up(str(error))
            return
        self._serving = serving
        self.node = serving.broker.node
        self.on_serving(self)

    def given_up(self, reason: str) -> None:
        """The broker ends by itself."""
        self.on_given_up(self, reason)
        self.has_given_up = True
        self.kill()

    def stop(self) -> "Task[Any]":
        """As SIGTERM: the task is done when the broker has stopped in order."""
        assert self.process is not None
        return self.process.start(self._stop_in_order())

    async def _stop_in_order(self) -> None:
        if self._serving is not None:
            await self._serving.end()
        self.kill()

    def kill(self) -> None:
        """As kill -9: the kernel, and so the page cache, lives on."""
        if self.process is not None:
            self._end_process(self._disk.kill(), silently=False)

    def lose_power(self) -> None:
        if self.process is not None:
            self._boots += 1
            left = self._disk.crash(keep=Random(self._random.getrandbits(32)))
            self._end_process(left, silently=True)

    def die_at_disk(self, changes: int, *, power: bool) -> None:
        """Be killed, or lose power, in the middle of what it does: at that many changes of the disk from now."""
        self._dies_silently = power
        self.is_doomed = True
        self._disk.stop_after(changes, tear=power and self._random.random() < 0.5)

    def break_disk(self, kind: str, error: int) -> None:
        """From now on operations of this kind on logs fail, until the next process finds a disk in order."""
        self.is_disk_broken = True
        self._disk.fail(kind, error, path="*.log")

    def spare(self) -> None:
        """What `die_at_disk` and `break_disk` announced and has not happened will not."""
        self._disk.stop_after(-1)
        self._disk.heal()
        self.is_doomed = self.is_disk_broken = False

    def _stopped_at_disk(self) -> None:
        if self._dies_silently and self.may_lose_power(self):
            self.lose_power()
        else:
            self.kill()

    def pause(self) -> None:
        if self.process is not None:
            self.process.loop.pause()
            self._store.process_paused(self.process)

    def resume(self) -> None:
        if self.process is not None:
            self.process.loop.resume()
            self._store.process_resumed(self.process)

    def set_clock(self, ahead_ms: int) -> None:
        if self.process is not None:
            self.process.clock.ahead_ms = ahead_ms

    def log_sizes(self) -> dict[Place, int]:
        """How many bytes the disk has of each partition's log, under its name or set aside as a stray."""
        found: Counter[Place] = Counter()
        for name in self._disk.list_directories(DATA):
            place = _place_of(name)
            if place is not None:
                files = self._disk.list_files(f"{DATA}/{name}")
                found[place] += sum(size for file, size in files if file.endswith(".log"))
        return dict(found)

    def _end_process(self, disk: MemoryDisk, *, silently: bool) -> None:
        """First what others find of it, then the process: whatever it still does while it ends is not seen."""
        process, self.process = self.process, None
        assert process is not None
        self.node = None
        self._serving = None
        self._disk.on_power_cut = lambda: None
        self._disk = disk
        self.is_doomed = self.is_disk_broken = False
        self._store.process_ended(process)
        process.kill(silently=silently)


def _place_of(directory: str) -> Place | None:
    """`orders-7` and `orders-7.<digits>-stray` are of orders-7; what is to be deleted is of nobody."""
    found = names.partition_of(directory) or names.stray_of(directory)
    return None if found is None else (found[0], found[1])


class Serving:
    """A broker on the simulation's ports, as `broker.process` has it on the machine's."""

    def __init__(
        self,
        process: Process,
        advertised_host: str,
        config: BrokerConfig,
        disk: MemoryDisk,
        store: Store,
        end: Callable[[str], None],
        *,
        boot_id: str,
    ) -> None:
        self._process = process
        self._advertised_host = advertised_host
        self._config = config
        self._end = end
        self._listener: Listener | None = None

        async def open_store(partitions: HeldPartitions) -> MetadataTree:
            return await store.open(process)

        random = Random(process.schedule.random.getrandbits(32))

        async def connect(host: str, port: int) -> Entered:
            sock: Any = await process.connect(host, port)
            return Entered(sock)

        advertised = {LISTENER: Endpoint(LISTENER, advertised_host, PORT)}
        ports = Ports(process.loop, process.clock, disk, random, open_store, connect, boot_id)
        self.broker = BrokerServer(config, ports, advertised)

    async def begin(self) -> None:
        process, broker = self._process, self.broker
        await broker.open(self._end)
        sock: Any = process.listen(PORT)
        buffers = ReceiveBuffers(PARTIAL_BYTES_LIMIT)
        self._listener = Listener(
            LISTENER, sock, process.loop, broker.dispatch.receive, buffers, lambda: LIMITS
        )
        if broker.is_clustered:
            self._listener.start()
        endpoint = Endpoint(LISTENER, self._advertised_host, PORT, "PLAINTEXT")
        rack = self._config.get("broker.rack")
        await broker.join(BrokerRegistration(self._config.node_id, {LISTENER: endpoint}, rack))
        if not broker.is_clustered:
            self._listener.start()
            broker.node.transactions.load_all()
            broker.node.groups.load_all()

    async def end(self) -> None:
        listener = self._listener
        assert listener is not None
        await self.broker.hand_over()
        listener.stop_accepting()
        await self.broker.stop(listener.close)
