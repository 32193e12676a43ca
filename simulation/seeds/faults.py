"""What goes wrong, by the seed: one fault after another, some together, until the appointed moment."""

import errno
from asyncio import sleep, timeout
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from simulation.seeds.admins import Admin
from simulation.seeds.cluster import Cluster
from simulation.seeds.history import Place
from simulation.seeds.machine import Machine
from simulation.seeds.misfortunes import Misfortunes
from simulation.seeds.process import Process
from simulation.seeds.wire import Unanswered

LONGEST_CALM_SECONDS: Final = 2.2
LONGEST_PAUSE_SECONDS: Final = 10.0
LONGEST_ABSENCE_SECONDS: Final = 8.0
LONGEST_SPLIT_SECONDS: Final = 10.0
SLOW_LINK_SECONDS: Final = 0.3
SLOW_STORE_SECONDS: Final = 1.0
STALE_SECONDS: Final = 2.0
CLOCK_JUMP_MS: Final = 600_000
DISK_CHANGES: Final = 60
"""A process that is to die while it writes does so within this many changes of its disk."""
SYNC_SECONDS: Final = 30.0
CALM_BEFORE_POWER_SECONDS: Final = 8.0
LONGEST_MOVE_SECONDS: Final = 2.0
LONGEST_COPY_SECONDS: Final = 0.03
RESTART_SECONDS: Final = 1.0
KINDS_OF_ONE: Final = ("kill", "kill at disk", "restart", "pause", "reset", "slow links", "clock")
KINDS_OF_MANY: Final = (
    "split", "split from store", "one way", "session ends", "cut off", "store stops", "slow store",
    "stale reads", "cut off with server",
    "append fails", "sync fails", "read fails",
)  # fmt: skip
KINDS_OF_POWER: Final = ("power", "power at disk", "power and restarts", "power while moving", "blackout")
"""What `Faults.kinds` counts: where there is one broker, where there are several, and in some runs."""


class Faults:
    def __init__(
        self,
        director: Process,
        cluster: Cluster,
        admin: Admin,
        *,
        moved: Sequence[Place],
        blackouts: bool = False,
    ) -> None:
        """`admin` moves partitions from the director's process; `moved`: those that move while power is lost, if it is."""
        self._director = director
        self._cluster = cluster
        self._admin = admin
        self._moved = moved
        self._random = director.schedule.random
        self._blackouts = blackouts
        self._misfortunes = Misfortunes(director, cluster, self._note, self._bring_up)
        self._is_healed = False
        self.names: list[str] = []
        self.kinds: Counter[str] = Counter()

    async def run(self, *, until: float) -> None:
        """Returns when all is healed and every broker is up."""
        loop = self._director.loop
        self._director.start(self._keep_up())
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
                self._slow_store,
                self._stale_reads,
                self._cut_off_server,
                self._break_disk,
            ]
        if self._blackouts:
            kinds += [self._blackout] * 4
        if self._moved:
            kinds += [self._power] * 3 + [self._power_and_restarts] * 2 + [self._power_while_moving] * 2
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
        self._is_healed = True

    async def _keep_up(self) -> None:
        """A broker that ends by itself is started again, as an operator's service manager does; in the end every one."""
        while True:
            await sleep(RESTART_SECONDS)
            for machine in self._cluster.machines:
                if machine.has_given_up or self._is_healed:
                    await self._bring_up(machine)

    def _note(self, text: str, kind: str | None = None) -> None:
        self.names.append(f"{self._director.loop.time():.3f} {text}")
        if kind is not None:
            self.kinds[kind] += 1

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
            self._note(f"kill {machine.name}", "kill")
            machine.resume()
            machine.kill()
            self._later(self._random.random() * LONGEST_ABSENCE_SECONDS, lambda: self._bring_up(machine))

    async def _kill_writing(self, machine: Machine) -> None:
        if machine.is_up:
            self._note(f"kill {machine.name} while it writes", "kill at disk")
            machine.die_at_disk(self._random.randrange(DISK_CHANGES), power=False)
            self._later(
                1.0 + self._random.random() * LONGEST_ABSENCE_SECONDS, lambda: self._bring_up(machine)
            )

    async def _restart(self, machine: Machine) -> None:
        if machine.is_up:
            self._note(f"stop {machine.name} in order", "restart")
            machine.resume()
            stopping = machine.stop()
            for _ in range(20):
                await sleep(0.5)
                if stopping.done() or not machine.is_up:
                    break
            machine.kill()
            await self._bring_up(machine)

    async def _power(self, machine: Machine) -> None:
        """Only when all are in sync, and nothing else until they are again: what the page caches of the others hold is all
        there is. That they have what was acknowledged is all that is promised without `flush.messages`.
        """
        if not await self._in_sync(CALM_BEFORE_POWER_SECONDS):
            return
        counts = self._cluster.history.counts
        counts["acknowledged before a loss of power"] += counts["acknowledged"]
        after = f"after {counts['acknowledged']} acknowledgements"
        if self._random.random() < 0.5:
            self._note(f"{machine.name} loses its power while it writes, {after}", "power at disk")
            machine.die_at_disk(self._random.randrange(DISK_CHANGES), power=True)
        else:
            self._note(f"{machine.name} loses its power {after}", "power")
            machine.lose_power()
        await self._return_of(machine)

    async def _return_of(self, machine: Machine) -> None:
        await sleep(0.5 + self._random.random() * LONGEST_ABSENCE_SECONDS)
        machine.spare()
        await self._bring_up(machine)
        await self._in_sync(SYNC_SECONDS)

    async def _power_and_restarts(self, machine: Machine) -> None:
        """One loses its power, and before anybody misses it something comes over each of the others as well. They have lost
        nothing, so one of them has to lead in the end, also when the first is back before them.
        """
        if not await self._in_sync(CALM_BEFORE_POWER_SECONDS):
            return
        counts = self._cluster.history.counts
        counts["acknowledged before a loss of power"] += counts["acknowledged"]
        after = f"after {counts['acknowledged']} acknowledgements"
        self._note(f"{machine.name} loses its power {after}", "power and restarts")
        machine.lose_power()
        self._later(self._random.random() * LONGEST_ABSENCE_SECONDS, lambda: self._bring_up(machine))
        await self._misfortunes.befall_all_but(machine)
        await self._in_sync(SYNC_SECONDS)

    async def _blackout(self, _: Machine) -> None:
        """All at once, at any time: what flush.messages=1 has acknowledged, and shown, is on their devices."""
        counts = self._cluster.history.counts
        counts["acknowledged before a loss of power"] += counts["acknowledged"]
        self._note(f"all lose their power after {counts['acknowledged']} acknowledgements", "blackout")
        for machine in self._cluster.machines:
            machine.lose_power()
            self._later(self._random.random() * LONGEST_ABSENCE_SECONDS, partial(self._bring_up, machine))

    async def _power_while_moving(self, machine: Machine) -> None:
        """While one of a partition's two replicas is replaced. Both were in sync, and a move never leaves one alone: whichever
        machine is lost, another has what was acknowledged."""
        if not await self._in_sync(CALM_BEFORE_POWER_SECONDS):
            return
        place = self._random.choice(self._moved)
        stays, goes, comes = self._random.sample(self._cluster.machines, 3)
        if not await self._move(place, [stays, goes]) or not await self._in_sync(CALM_BEFORE_POWER_SECONDS):
            return
        if await self._move(place, [comes, stays]):
            await sleep(self._random.random() * LONGEST_COPY_SECONDS)
            if self._cluster.has_two_in_sync(besides=place):
                lost = self._random.choice((stays, machine))
                text = f"{lost.name} loses its power while {place[0]}-{place[1]} moves"
                self._note(text, "power while moving")
                lost.lose_power()
                await self._return_of(lost)
        await self._in_sync(SYNC_SECONDS)

    async def _move(self, place: Place, machines: list[Machine]) -> bool:
        try:
            async with timeout(LONGEST_MOVE_SECONDS):
                await self._admin.reassign(place, [machine.broker_id for machine in machines])
        except (Unanswered, TimeoutError):
            return False
        return True

    async def _in_sync(self, seconds: float) -> bool:
        """Whether they were within that time."""
        loop = self._director.loop
        deadline = loop.time() + seconds
        while not self._cluster.is_in_sync() and loop.time() < deadline:
            await sleep(0.2)
        return self._cluster.is_in_sync()

    async def _pause(self, machine: Machine) -> None:
        if machine.is_up:
            seconds = self._random.random() * LONGEST_PAUSE_SECONDS
            self._note(f"hold {machine.name} for {seconds:.3f} s", "pause")
            machine.pause()
            self._later(seconds, self._resuming(machine))

    def _resuming(self, machine: Machine) -> Callable[[], Awaitable[None]]:
        process = machine.process

        async def resume() -> None:
            if machine.process is process:
                machine.resume()

        return resume

    async def _reset(self, machine: Machine) -> None:
        self._note(f"reset the connections of {machine.name}", "reset")
        self._cluster.network.reset_all(machine.name)

    async def _slow(self, machine: Machine) -> None:
        self._note(f"slow links of {machine.name}", "slow links")
        for other in self._cluster.network.hosts:
            if self._random.random() < 0.5:
                seconds = self._random.random() * SLOW_LINK_SECONDS
                self._cluster.network.link(machine.name, other).max_delay_seconds = seconds
                self._cluster.network.link(other, machine.name).max_delay_seconds = seconds
        self._heal_later()

    async def _split(self, machine: Machine) -> None:
        """A broker, or two, on one side; clients may be on either, and the store, or everybody reaches it."""
        hosts = self._cluster.network.hosts
        one = [
            machine.name,
            *(host for host in hosts if host != machine.name and self._random.random() < 0.3),
        ]
        other = [host for host in hosts if host not in one]
        far = self._random.choice(([], one, other))
        parted = [host for host in far if any(host == each.name for each in self._cluster.machines)]
        text = f"split {', '.join(one)} from {', '.join(other)}"
        if parted:
            text += f", and {', '.join(parted)} from the store"
        self._note(text, "split from store" if parted else "split")
        self._cluster.network.split(one, other)
        for host in parted:
            self._cluster.store.part(host)
        self._heal_later(parted)

    async def _one_way(self, machine: Machine) -> None:
        other = self._random.choice(self._cluster.machines)
        if other is not machine:
            self._note(f"nothing passes from {machine.name} to {other.name}", "one way")
            self._cluster.network.block(machine.name, other.name)
            self._heal_later()

    def _heal_later(self, parted: Sequence[str] = ()) -> None:
        async def heal() -> None:
            self._note("heal the network")
            self._cluster.network.heal()
            for host in parted:
                self._cluster.store.unite(host)

        self._later(self._random.random() * LONGEST_SPLIT_SECONDS, heal)

    async def _break_disk(self, machine: Machine) -> None:
        if machine.is_up:
            kind = self._random.choice(("append", "sync", "read"))
            error = self._random.choice((errno.ENOSPC, errno.EIO)) if kind == "append" else errno.EIO
            text = f"the disk of {machine.name} fails at {kind} with {errno.errorcode[error]}"
            self._note(text, f"{kind} fails")
            machine.break_disk(kind, error)
            self._later(2.0 + self._random.random() * LONGEST_ABSENCE_SECONDS, self._replacing_disk(machine))

    def _replacing_disk(self, machine: Machine) -> Callable[[], Awaitable[None]]:
        async def replace() -> None:
            """Where the broker has not noticed: stopped, repaired, started. Where it has, that was done at once."""
            if machine.is_disk_broken:
                machine.kill()
            await self._bring_up(machine)

        return replace

    async def _expire(self, machine: Machine) -> None:
        if machine.process is not None:
            self._note(f"the session of {machine.name} expires", "session ends")
            self._cluster.store.expire(machine.process)

    async def _cut_off(self, machine: Machine) -> None:
        if machine.process is not None:
            silently = self._random.random() < 0.5
            how = " silently" if silently else ""
            self._note(f"{machine.name} and the store lose each other{how}", "cut off")
            self._cluster.store.cut_off(machine.process, silently=silently)
            self._later(self._random.random() * LONGEST_SPLIT_SECONDS, self._joining(machine.process))

    def _joining(self, process: Process) -> Callable[[], Awaitable[None]]:
        async def join() -> None:
            self._cluster.store.join(process)

        return join

    async def _stop_store(self, machine: Machine) -> None:
        self._note("the store stops", "store stops")
        self._cluster.store.stop()

        async def start() -> None:
            self._note("the store starts")
            self._cluster.store.start()

        self._later(self._random.random() * LONGEST_SPLIT_SECONDS, start)

    async def _slow_store(self, machine: Machine) -> None:
        seconds = self._random.random() * SLOW_STORE_SECONDS
        self._note(f"the store takes up to {seconds:.3f} s", "slow store")
        self._cluster.store.be_slow(seconds)

        async def hurry() -> None:
            self._note("the store is quick again")
            self._cluster.store.be_quick()

        self._later(self._random.random() * LONGEST_SPLIT_SECONDS, hurry)

    async def _stale_reads(self, machine: Machine) -> None:
        """What this broker reads of the store may be old, as of a server that lags; what it writes is not decided there."""
        process = machine.process
        if process is not None:
            seconds = self._random.random() * STALE_SECONDS
            self._note(f"the server of {machine.name} lags by up to {seconds:.3f} s", "stale reads")
            self._cluster.store.lag(process, seconds)
            self._later(self._random.random() * LONGEST_SPLIT_SECONDS, self._catching_up(process))

    async def _cut_off_server(self, machine: Machine) -> None:
        """It goes on answering this broker's reads while the broker's session runs out."""
        process = machine.process
        if process is not None:
            self._note(f"the server of {machine.name} and the others lose each other", "cut off with server")
            self._cluster.store.cut_off_server(process)
            self._later(self._random.random() * LONGEST_SPLIT_SECONDS, self._catching_up(process))

    def _catching_up(self, process: Process) -> Callable[[], Awaitable[None]]:
        async def catch_up() -> None:
            self._cluster.store.catch_up(process)

        return catch_up

    async def _clock(self, machine: Machine) -> None:
        ahead_ms = self._random.randint(-CLOCK_JUMP_MS, CLOCK_JUMP_MS)
        self._note(f"the clock of {machine.name} is set by {ahead_ms} ms", "clock")
        machine.set_clock(ahead_ms)
