"""What goes wrong, by the seed: one fault after another, some together, until the appointed moment."""

import errno
from asyncio import sleep
from collections.abc import Awaitable, Callable
from typing import Final

from penstock.testing.simulation.cluster import Cluster
from penstock.testing.simulation.machine import Machine
from penstock.testing.simulation.process import Process

LONGEST_CALM_SECONDS: Final = 2.2
LONGEST_PAUSE_SECONDS: Final = 10.0
LONGEST_ABSENCE_SECONDS: Final = 8.0
LONGEST_SPLIT_SECONDS: Final = 10.0
SLOW_LINK_SECONDS: Final = 0.3
CLOCK_JUMP_MS: Final = 600_000
DISK_CHANGES: Final = 60
"""A process that is to die while it writes does so within this many changes of its disk."""
SETTLE_SECONDS: Final = 30.0
RESTART_SECONDS: Final = 1.0


class Faults:
    def __init__(self, director: Process, cluster: Cluster, *, power_loss: bool) -> None:
        self._director = director
        self._cluster = cluster
        self._random = director.schedule.random
        self._power_loss = power_loss
        self.names: list[str] = []

    async def run(self, *, until: float) -> None:
        """Returns when all is healed and every broker is up."""
        loop = self._director.loop
        kinds: list[Callable[[Machine], Awaitable[None]]] = [
            self._kill, self._kill_writing, self._restart, self._pause, self._reset, self._slow, self._clock,
        ]  # fmt: skip
        if len(self._cluster.machines) > 1:
            kinds += [
                self._split,
                self._one_way,
                self._expire,
                self._cut_off,
                self._stop_store,
                self._break_disk,
            ]
        if self._power_loss:
            kinds += [self._power, self._power]
        while loop.time() < until:
            await sleep(self._random.random() * LONGEST_CALM_SECONDS)
            await self._random.choice(kinds)(self._random.choice(self._cluster.machines))
        await self.heal()

    async def heal(self) -> None:
        self._cluster.network.heal()
        self._cluster.store.heal()
        for machine in self._cluster.machines:
            machine.spare()
            machine.resume()
            machine.set_clock(0)
            await self._bring_up(machine)
        self._director.start(self._keep_up())

    async def _keep_up(self) -> None:
        """A broker that ends by itself is started again, as an operator's service manager does."""
        while True:
            await sleep(RESTART_SECONDS)
            for machine in self._cluster.machines:
                await self._bring_up(machine)

    def _note(self, text: str) -> None:
        self.names.append(f"{self._director.loop.time():.3f} {text}")

    async def _bring_up(self, machine: Machine) -> None:
        if not machine.is_up:
            self._note(f"start {machine.name}")
            machine.start()

    def _later(self, seconds: float, act: Callable[[], Awaitable[None]]) -> None:
        async def wait() -> None:
            await sleep(seconds)
            await act()

        self._director.start(wait())

    async def _kill(self, machine: Machine) -> None:
        if machine.is_up:
            self._note(f"kill {machine.name}")
            machine.resume()
            machine.kill()
            self._later(self._random.random() * LONGEST_ABSENCE_SECONDS, lambda: self._bring_up(machine))

    async def _kill_writing(self, machine: Machine) -> None:
        if machine.is_up:
            self._note(f"kill {machine.name} while it writes")
            machine.die_at_disk(self._random.randrange(DISK_CHANGES), power=False)
            self._later(
                1.0 + self._random.random() * LONGEST_ABSENCE_SECONDS, lambda: self._bring_up(machine)
            )

    async def _restart(self, machine: Machine) -> None:
        if machine.is_up:
            self._note(f"stop {machine.name} in order")
            machine.resume()
            stopping = machine.stop()
            for _ in range(20):
                await sleep(0.5)
                if stopping.done() or not machine.is_up:
                    break
            machine.kill()
            await self._bring_up(machine)

    async def _power(self, machine: Machine) -> None:
        """Only when all is well, and nothing else until it is again: what the page caches of the others hold is all there is."""
        if not self._cluster.is_settled:
            return
        writing = self._random.random() < 0.5
        self._note(f"{machine.name} loses its power" + (" while it writes" if writing else ""))
        if writing:
            machine.die_at_disk(self._random.randrange(DISK_CHANGES), power=True)
        else:
            machine.lose_power()
        await sleep(0.5 + self._random.random() * LONGEST_ABSENCE_SECONDS)
        machine.lose_power()
        await self._bring_up(machine)
        await self._settle()

    async def _settle(self) -> None:
        loop = self._director.loop
        deadline = loop.time() + SETTLE_SECONDS
        while not self._cluster.is_settled and loop.time() < deadline:
            await sleep(0.2)

    async def _pause(self, machine: Machine) -> None:
        if machine.is_up:
            seconds = self._random.random() * LONGEST_PAUSE_SECONDS
            self._note(f"hold {machine.name} for {seconds:.3f} s")
            machine.pause()
            self._later(seconds, self._resuming(machine))

    def _resuming(self, machine: Machine) -> Callable[[], Awaitable[None]]:
        process = machine.process

        async def resume() -> None:
            if process is not None:
                process.loop.resume()

        return resume

    async def _reset(self, machine: Machine) -> None:
        self._note(f"reset the connections of {machine.name}")
        self._cluster.network.reset_all(machine.name)

    async def _slow(self, machine: Machine) -> None:
        self._note(f"slow links of {machine.name}")
        for other in self._cluster.network.hosts:
            if self._random.random() < 0.5:
                seconds = self._random.random() * SLOW_LINK_SECONDS
                self._cluster.network.link(machine.name, other).max_delay_seconds = seconds
                self._cluster.network.link(other, machine.name).max_delay_seconds = seconds
        self._heal_later()

    async def _split(self, machine: Machine) -> None:
        """A broker, or two, on one side; clients and the store may be on either."""
        hosts = self._cluster.network.hosts
        one = [
            machine.name,
            *(host for host in hosts if host != machine.name and self._random.random() < 0.3),
        ]
        other = [host for host in hosts if host not in one]
        self._note(f"split {', '.join(one)} from {', '.join(other)}")
        self._cluster.network.split(one, other)
        self._heal_later()

    async def _one_way(self, machine: Machine) -> None:
        other = self._random.choice(self._cluster.machines)
        if other is not machine:
            self._note(f"nothing passes from {machine.name} to {other.name}")
            self._cluster.network.block(machine.name, other.name)
            self._heal_later()

    def _heal_later(self) -> None:
        async def heal() -> None:
            self._note("heal the network")
            self._cluster.network.heal()

        self._later(self._random.random() * LONGEST_SPLIT_SECONDS, heal)

    async def _break_disk(self, machine: Machine) -> None:
        if machine.is_up:
            error = self._random.choice((errno.ENOSPC, errno.EIO))
            self._note(f"the disk of {machine.name} fails with {errno.errorcode[error]}")
            machine.break_disk(error)
            self._later(2.0 + self._random.random() * LONGEST_ABSENCE_SECONDS, self._replacing_disk(machine))

    def _replacing_disk(self, machine: Machine) -> Callable[[], Awaitable[None]]:
        async def replace() -> None:
            """Whether the broker has noticed or not: stopped, repaired, started."""
            machine.kill()
            await self._bring_up(machine)

        return replace

    async def _expire(self, machine: Machine) -> None:
        if machine.process is not None:
            self._note(f"the session of {machine.name} expires")
            self._cluster.store.expire(machine.process)

    async def _cut_off(self, machine: Machine) -> None:
        if machine.process is not None:
            silently = self._random.random() < 0.5
            self._note(f"{machine.name} and the store lose each other" + (" silently" if silently else ""))
            self._cluster.store.cut_off(machine.process, silently=silently)
            self._later(self._random.random() * LONGEST_SPLIT_SECONDS, self._joining(machine.process))

    def _joining(self, process: Process) -> Callable[[], Awaitable[None]]:
        async def join() -> None:
            self._cluster.store.join(process)

        return join

    async def _stop_store(self, machine: Machine) -> None:
        self._note("the store stops")
        self._cluster.store.stop()

        async def start() -> None:
            self._note("the store starts")
            self._cluster.store.start()

        self._later(self._random.random() * LONGEST_SPLIT_SECONDS, start)

    async def _clock(self, machine: Machine) -> None:
        ahead_ms = self._random.randint(-CLOCK_JUMP_MS, CLOCK_JUMP_MS)
        self._note(f"the clock of {machine.name} is set by {ahead_ms} ms")
        machine.set_clock(ahead_ms)
