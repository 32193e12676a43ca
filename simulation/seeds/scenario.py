"""One run of the simulation: a cluster, clients at work, faults; then all is healed, all is read, and judged."""

import gc
from asyncio import Task, sleep, timeout
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.seeds.acks_one import AcksOneProducer
from simulation.seeds.admins import Admin
from simulation.seeds.client import Client
from simulation.seeds.cluster import Cluster
from simulation.seeds.consumers import Consumer, batches_of, take
from simulation.seeds.edge import sealed
from simulation.seeds.faults import Faults
from simulation.seeds.history import History, Place
from simulation.seeds.invariants import FinalLog, broken, offsets_kept, replicas_equal
from simulation.seeds.loop import FIRST_MOMENT, Schedule, Stuck
from simulation.seeds.members import Member, committed_offset
from simulation.seeds.network import Network
from simulation.seeds.process import Process
from simulation.seeds.producers import Producer
from simulation.seeds.store import SESSION_TIMEOUT_SECONDS
from simulation.seeds.transactions import TransactionalProducer

PLAIN: Final = "plain"
LEDGER: Final = "ledger"
GROUP: Final = "readers"
PARTITIONS: Final = 2
SEGMENT_BYTES: Final = (6_500, 16_000, 1_048_576)
"""So small that logs have many segments, and cutting a log cuts across them."""
SESSION_TIMEOUTS: Final = (1.0, SESSION_TIMEOUT_SECONDS)
"""So short that sessions run out while clients work, and longer than most faults last."""
WIPED_CHANCE: Final = 0.1
FLUSHES_CHANCE: Final = 0.2
"""That brokers flush each record, and may all lose their power at once."""
AFTER_WIPE: Final = "after-the-wipe"
LONGEST_LIFE_SECONDS: Final = 2.0
"""Of a broker after the store was wiped, before it is killed and started again."""
RECOVERY_SECONDS: Final = 120.0
"""After healing, everything must be acknowledged and readable within this virtual time."""


@dataclass
class Plan:
    """What a seed decides before anything happens."""

    brokers: int
    seconds: float
    power_loss: bool
    in_flight: int
    version_2: bool
    segment_bytes: int
    session_timeout_s: float
    flushes: bool
    """flush.messages is 1 everywhere: then all may lose their power at once."""
    wiped_store: bool
    faults: bool = True


@dataclass
class Report:
    seed: int
    plan: Plan
    digest: int
    violations: list[str]
    faults: list[str]
    kinds: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    virtual_seconds: float = 0.0


def plan_of(schedule: Schedule, *, brokers: int | None) -> Plan:
    random = schedule.random
    chosen = random.choices((1, 3, 4), (10, 80, 10))[0] if brokers is None else brokers
    return Plan(
        brokers=chosen,
        seconds=1.0 + random.random() * 3.5,
        # A lone broker promises nothing about power: what is flushed before it is acknowledged may be read before that.
        power_loss=random.random() < 0.3 and chosen > 1,
        in_flight=random.randint(1, 5),
        version_2=random.random() < 0.5,
        segment_bytes=random.choice(SEGMENT_BYTES),
        session_timeout_s=random.choice(SESSION_TIMEOUTS),
        flushes=random.random() < FLUSHES_CHANCE,
        wiped_store=random.random() < WIPED_CHANCE and chosen > 1,
    )


def simulate(
    seed: int,
    *,
    brokers: int | None = None,
    faults: bool = True,
    power_loss: bool | None = None,
    verbose: bool = False,
) -> Report:
    """One run. `brokers`, `power_loss`: as the seed decides, if not given; `verbose` prints the brokers' log lines."""
    schedule = Schedule(seed)
    plan = plan_of(schedule, brokers=brokers)
    plan.faults = faults
    plan.power_loss = plan.power_loss if power_loss is None else power_loss
    run = Run(schedule, plan)
    with _uncollected(), sealed(schedule, on_lead=run.history.leads, verbose=verbose) as lines:
        try:
            schedule.run(run.main(), run.director.loop)
        except Stuck as error:
            run.history.violated(str(error))
        finally:
            schedule.close()
        for mistake in schedule.mistakes:
            run.history.violated(f"an error in a program: {mistake}")
        return Report(
            seed,
            plan,
            schedule.digest,
            run.history.violations,
            run.faults.names,
            dict(run.faults.kinds),
            dict(run.history.counts),
            lines.lines,
            schedule.now - FIRST_MOMENT,
        )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Garbage waits for the end of a run: so it goes at the same moment in every one, and in half the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        if was_enabled:
            gc.enable()


class Run:
    def __init__(self, schedule: Schedule, plan: Plan) -> None:
        self.plan = plan
        self.history = History()
        self.network = Network(schedule)
        self.director = Process(self.network, "director")
        self.cluster = Cluster(
            self.network,
            self.history,
            brokers=plan.brokers,
            options=broker_options(plan),
            session_timeout_s=plan.session_timeout_s,
        )
        self._client_here = Client(self.director, self.cluster.addresses)
        self._admin_here = Admin(self._client_here, self.history, replicas=min(3, plan.brokers))
        moved = [(PLAIN, index) for index in range(PARTITIONS)] if plan.power_loss else []
        self.faults = Faults(
            self.director, self.cluster, self._admin_here, moved=moved, blackouts=plan.flushes
        )
        self._admin = Admin(self._client("admin"), self.history, replicas=min(3, plan.brokers))
        self._consumers: dict[Place, Consumer] = {}
        self._places = [(topic, index) for topic in (PLAIN, LEDGER) for index in range(PARTITIONS)]

    async def main(self) -> None:
        for machine in self.cluster.machines:
            machine.start()
        replicas = min(3, self.plan.brokers)
        for topic in (PLAIN, LEDGER):
            await self._admin_here.create(
                topic,
                partitions=PARTITIONS,
                min_insync_replicas=max(1, replicas - 1),
                segment_bytes=self.plan.segment_bytes,
            )
        until = self.director.loop.time() + self.plan.seconds
        work, readers = self._start_clients(until)
        if self.plan.faults:
            await self.faults.run(until=until)
        await self._in_time(self._finished(work), "not all clients are done", lambda: _waiting(work))
        await self._in_time(self._settle(), "not all is settled", self._unsettled)
        await self._in_time(self._arrived(readers), "not all readers are at the end", self._behind)
        for reader in readers:
            reader.cancel()
        await self._in_time(self._judge(), "not all can be read", self._unsettled)
        if self.plan.wiped_store and self.plan.faults and not self.history.violations:
            await self._in_time(self._survive_wipe(), "not all is settled after a wipe", self._unsettled)
        for transaction in self.history.transactions:
            self.history.counts[f"transactions {transaction.outcome.value}"] += 1

    async def _survive_wipe(self) -> None:
        """The store forgets the cluster, and its brokers are killed and started: metadata lost is not data lost. Then topics
        are made, one of a name that there was, and whatever the brokers think of the logs that they have, they keep them.
        """
        cluster, random = self.cluster, self.director.schedule.random
        self.history.counts["wiped stores"] += 1
        before = [machine.log_sizes() for machine in cluster.machines]
        cluster.store.wipe()
        self.history.leaders.clear()  # epochs begin anew
        await sleep(random.random() * LONGEST_LIFE_SECONDS)
        for machine in cluster.machines:
            machine.kill()
        for topic in random.sample((PLAIN, AFTER_WIPE), 2):
            for machine in cluster.machines:
                if not machine.is_up:
                    machine.start()
            await self._admin_here.create(topic, partitions=PARTITIONS)
            await self._settle()
            machine = random.choice(cluster.machines)
            machine.kill()
        for machine in cluster.machines:
            if not machine.is_up:
                machine.start()
        await self._settle()
        for machine, sizes in zip(cluster.machines, before, strict=True):
            now = machine.log_sizes()
            for (topic, index), size in sizes.items():
                if now.get((topic, index), 0) < size:
                    self.history.violated(
                        f"{machine.name} had {size} bytes of {topic}-{index} when the store was wiped, and has "
                        f"{now.get((topic, index), 0)}"
                    )

    async def _in_time(
        self, program: Coroutine[Any, Any, None], trouble: str, details: Callable[[], list[str]]
    ) -> None:
        try:
            async with timeout(RECOVERY_SECONDS):
                await program
        except TimeoutError:
            text = f"{RECOVERY_SECONDS:.0f} s after all was healed {trouble}"
            self.history.violated(f"{text}: {'; '.join(details())}")

    async def _judge(self) -> None:
        await self._admin.check(self._client_here)
        logs = {place: await self._read(place) for place in self._places}
        offsets = await self._offsets()
        await (
            self._settle()
        )  # again: a broker may just have been started because of a fault that took its time
        for text in (
            *broken(self.history, logs),
            *offsets_kept(self.history, offsets),
            *replicas_equal(self.cluster.copies()),
        ):
            self.history.violated(text)

    # --- clients

    def _client(self, name: str) -> Client:
        return Client(Process(self.network, name), self.cluster.addresses)

    def _start_clients(self, until: float) -> "tuple[list[Task[Any]], list[Task[Any]]]":
        """Those that come to an end, and those that must be told."""
        history, plan = self.history, self.plan
        plain = [place for place in self._places if place[0] == PLAIN]
        ledger = [place for place in self._places if place[0] == LEDGER]
        work: list[Task[Any]] = []
        readers: list[Task[Any]] = []

        def start(client: Client, program: Coroutine[Any, Any, None], *, ends: bool = True) -> None:
            task = client.process.start(program)
            task.set_name(client.name)
            (work if ends else readers).append(task)

        for number in (1, 2):
            client = self._client(f"p{number}")
            start(client, Producer(client, history, max_in_flight=plan.in_flight).run(plain, until=until))
            client = self._client(f"t{number}")
            producer = TransactionalProducer(client, history, version_2=plan.version_2)
            start(client, producer.run(ledger, until=until))
            client = self._client(f"m{number}")
            member = Member(client, history, group=GROUP, topic=PLAIN, partitions=PARTITIONS)
            start(client, member.run(until=until))
        brokers = [machine.broker_id for machine in self.cluster.machines]
        start(self._admin.client, self._admin.run(PLAIN, PARTITIONS, brokers, until=until))
        client = self._client("q1")
        alone = AcksOneProducer(client, history, self.cluster.outsider)
        start(client, alone.run(plain, until=until))
        for place in self._places:
            client = self._client(f"c-{place[0]}-{place[1]}")
            self._consumers[place] = Consumer(client, history, committed=place[0] == LEDGER)
            start(client, self._consumers[place].run(place), ends=False)
        return work, readers

    # --- the end

    async def _finished(self, work: "list[Task[Any]]") -> None:
        """Looked at from here, since they are on loops of their own."""
        while not all(task.done() for task in work):
            await sleep(0.2)
        self._look_for_errors(work)

    def _look_for_errors(self, tasks: "list[Task[Any]]") -> None:
        for task in tasks:
            error = None if task.cancelled() or not task.done() else task.exception()
            if error is not None:
                self.history.violated(f"{task.get_name()} failed: {error!r}")

    async def _settle(self) -> None:
        while not self._is_settled:
            await sleep(0.2)

    @property
    def _is_settled(self) -> bool:
        cluster = self.cluster
        if self.plan.brokers == 1 or not cluster.is_settled:
            return cluster.is_settled
        return cluster.is_in_sync() and not cluster.unlike_store()

    def _unsettled(self) -> list[str]:
        cluster = self.cluster
        out_of_sync = [f"{topic}-{index} is out of sync" for topic, index in cluster.store.out_of_sync()]
        return [*cluster.unsettled(), *out_of_sync, *cluster.unlike_store()]

    async def _arrived(self, readers: "list[Task[Any]]") -> None:
        while self._behind():
            self._look_for_errors(readers)
            await sleep(0.2)
        self._look_for_errors(readers)

    def _behind(self) -> list[str]:
        """The readers that have not come to the end of their partitions."""
        found = []
        for _, place, partition in self.cluster.partitions():
            consumer = self._consumers.get(place)
            if consumer is not None and partition.is_leader:
                position = consumer.positions.get(place, 0)
                if position < partition.log.end_offset:
                    found.append(f"{place[0]}-{place[1]} at {position} of {partition.log.end_offset}")
        return found

    async def _read(self, place: Place) -> FinalLog:
        log = FinalLog()
        for committed in (False, True):
            consumer = Consumer(self._client_here, self.history, committed=committed)
            offset = 0
            while True:
                data = await consumer.fetch(place, offset, max_wait_ms=50)
                if data is None:
                    await self._client_here.pause()
                    continue
                end = data.last_stable_offset if committed else data.high_watermark
                next_offset, records = take(data, offset, committed=committed)
                if committed:
                    log.committed.update(records)
                else:
                    log.records.update(records)
                    log.batches += batches_of(data)
                offset = next_offset
                if offset >= end and (not committed or end == data.high_watermark):
                    break
        return log

    async def _offsets(self) -> dict[tuple[str, str, int], int]:
        return {
            key: await committed_offset(self._client_here, key[0], (key[1], key[2]))
            for key in self.history.commits
        }


def _waiting(work: "list[Task[Any]]") -> list[str]:
    return [task.get_name() for task in work if not task.done()]


def broker_options(plan: Plan) -> dict[str, str]:
    flushes = {"log.flush.interval.messages": "1"} if plan.flushes else {}
    return {
        **flushes,
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "offsets.topic.replication.factor": str(min(3, plan.brokers)),
        "transaction.state.log.replication.factor": str(min(3, plan.brokers)),
        "transaction.state.log.min.isr": str(max(1, min(3, plan.brokers) - 1)),
        "group.initial.rebalance.delay.ms": "100",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        "auto.create.topics.enable": "false",
        "log.cleaner.enable": "false",
        "replica.lag.time.max.ms": "3000",
    }
