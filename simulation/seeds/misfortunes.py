"""What comes over the others while one machine is without power and nobody knows: whatever it is, they lose nothing by it."""

from asyncio import sleep
from collections.abc import Awaitable, Callable
from typing import Final

from simulation.seeds.cluster import Cluster
from simulation.seeds.machine import Machine
from simulation.seeds.process import Process

LONGEST_ABSENCE_SECONDS: Final = 8.0
LONGEST_STOP_SECONDS: Final = 17.0
"""A broker hands over for fifteen; with the absence it is back before others have ceased to wait for it."""
LONGEST_PAUSE_SECONDS: Final = 10.0
LONGEST_CALM_SECONDS: Final = 1.0


class Misfortunes:
    def __init__(
        self,
        director: Process,
        cluster: Cluster,
        note: Callable[[str], None],
        bring_up: Callable[[Machine], Awaitable[None]],
    ) -> None:
        self._director = director
        self._cluster = cluster
        self._random = director.schedule.random
        self._note = note
        self._bring_up = bring_up

    async def befall_all_but(self, spared: Machine) -> None:
        """Soon after one another, in any order; returns when they are back."""
        machines = [machine for machine in self._cluster.machines if machine is not spared]
        self._random.shuffle(machines)
        tasks = []
        for machine in machines:
            befall = self._random.choice((self._kill, self._stop, self._hold, self._expire, self._part))
            tasks.append(self._director.start(befall(machine)))
            await sleep(self._random.random() * LONGEST_CALM_SECONDS)
        for task in tasks:
            await task

    async def _return_of(self, machine: Machine) -> None:
        await sleep(self._random.random() * LONGEST_ABSENCE_SECONDS)
        await self._bring_up(machine)

    async def _kill(self, machine: Machine) -> None:
        self._note(f"kill {machine.name} too")
        machine.kill()
        await self._return_of(machine)

    async def _stop(self, machine: Machine) -> None:
        if machine.is_up:
            self._note(f"stop {machine.name} in order too")
            loop = self._director.loop
            stopping, deadline = machine.stop(), loop.time() + LONGEST_STOP_SECONDS
            while not stopping.done() and machine.is_up and loop.time() < deadline:
                await sleep(0.2)
            machine.kill()
        await self._return_of(machine)

    async def _hold(self, machine: Machine) -> None:
        process, seconds = machine.process, self._random.random() * LONGEST_PAUSE_SECONDS
        self._note(f"hold {machine.name} too, for {seconds:.3f} s")
        machine.pause()
        await sleep(seconds)
        if machine.process is process:
            machine.resume()

    async def _expire(self, machine: Machine) -> None:
        if machine.process is not None:
            self._note(f"the session of {machine.name} expires too")
            self._cluster.store.expire(machine.process)

    async def _part(self, machine: Machine) -> None:
        seconds = self._random.random() * LONGEST_PAUSE_SECONDS
        self._note(f"part {machine.name} from the store too, for {seconds:.3f} s")
        self._cluster.store.part(machine.name)
        await sleep(seconds)
        self._cluster.store.unite(machine.name)
