"""A simulated process: an event loop, a wall clock and sockets under a host name of its own."""

from asyncio import Task
from collections.abc import Coroutine
from typing import Any, Final

from simulation.seeds.loop import FIRST_MOMENT, Schedule
from simulation.seeds.network import Network
from simulation.seeds.sockets import FakeListener, FakeSocket

EPOCH_MS: Final = 1_700_000_000_000
"""What the wall clocks show at the first moment."""


class VirtualClock:
    """The clock port. The wall clock of a process may be set, its monotonic clock may not."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return EPOCH_MS + int((self._schedule.now - FIRST_MOMENT) * 1000) + self.ahead_ms

    def monotonic(self) -> float:
        return self._schedule.now

    def since_boot(self) -> float:
        return self._schedule.now


class Process:
    def __init__(self, network: Network, name: str) -> None:
        self.name = name
        self.network = network
        self.schedule = network.schedule
        self.loop = network.schedule.new_loop(name)
        self.clock = VirtualClock(network.schedule)
        self._tasks: set[Task[Any]] = set()

    def listen(self, port: int) -> FakeListener:
        return self.network.listen(self.loop, self.name, port)

    async def connect(self, host: str, port: int) -> FakeSocket:
        return await self.network.connect(self.loop, host, port)

    def start(self, program: Coroutine[Any, Any, Any]) -> Task[Any]:
        """Run a program in this process, from whichever loop this is called."""
        task = self.loop.create_task(program)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def kill(self, *, silently: bool = False) -> None:
        """As kill -9; `silently` as when its machine loses power: nobody is told for a while."""
        self.network.kill(self.name, silently=silently)
        self.loop.kill()
