"""`penstock.consumer.Processor`: two members of a group, restarts, and the guarantee that was asked for."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any, Final

from penstock.consumer import Backoff, Output, Poison, Processor, Record, Stopped
from penstock.consumer.guarantees import AT_LEAST_ONCE, AT_MOST_ONCE, EXACTLY_ONCE, Guarantee
from simulation.liar.act import PAUSE_S, Act, Over, difference
from simulation.liar.world import numbered

CLIENT_SETTINGS: Final = {
    "socket.timeout.ms": 1000,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "log_level": 0,
}
CONSUMER_SETTINGS: Final = {
    "session.timeout.ms": 2000,
    "heartbeat.interval.ms": 100,
    "max.poll.interval.ms": 10_000,
    "fetch.wait.max.ms": 20,
    "fetch.error.backoff.ms": 10,
    "coordinator.query.interval.ms": 50,
    "topic.metadata.refresh.interval.ms": 500,
}
PRODUCER_SETTINGS: Final = {"message.timeout.ms": 6000, "transaction.timeout.ms": 8000}
JOIN_S: Final = 20.0
GUARANTEES: Final[tuple[Guarantee, ...]] = (AT_LEAST_ONCE, AT_MOST_ONCE, EXACTLY_ONCE, EXACTLY_ONCE)
POISON_EVERY: Final = 13


def process(act: Act) -> None:
    work = _Work(act)
    members = [_Member(work, name) for name in ("a", "b")[: act.chance.randint(1, 2)]]
    act.begin()
    for member in members:
        member.start()
    try:
        for _ in range(act.chance.randint(0, 2)):
            time.sleep(act.chance.uniform(0.05, 0.5))
            act.chance.choice(members).restart()
        if work.stops_at_end:
            act.wait_until(
                lambda: not any(map(_Member.is_alive, members)), "the processors end by themselves"
            )
        else:
            act.wait_until(work.is_done, "all offsets are committed")
    finally:
        for member in members:
            member.end()
        for member in members:
            member.join(JOIN_S)
    if any(member.is_alive() for member in members):
        act.wrong("a processor does not stop")
        raise Over
    work.check()


class _Work:
    def __init__(self, act: Act) -> None:
        chance = act.chance
        self.act = act
        self.guarantee: Guarantee = chance.choice(GUARANTEES)
        self.is_batch = chance.random() < 0.5
        self.has_poison = chance.random() < 0.3
        self.topic, self.target, self.dead_letters = act.name, f"{act.name}-out", f"{act.name}-dead"
        self.group = act.name
        self._partitions = chance.randint(1, 3)
        self._count = chance.randint(20, 120)
        self._lock = threading.Lock()
        self._handled: Counter[tuple[int, int]] = Counter()
        truth = act.world.truth
        truth.create(self.topic, self._partitions)
        truth.create(self.target, self._partitions)
        if self.has_poison and chance.random() < 0.5:
            truth.create(self.dead_letters, 1)
        act.world.fill(self.topic, numbered(self.topic, self._count, self._partitions))
        self._rows = truth.rows(self.topic, range(self._partitions))
        self._ends = Counter(partition for partition, _, _ in self._rows)
        self.stops_at_end = chance.random() < 0.3

    def handle(self, given: Any) -> list[Output]:
        records: list[Record] = given if self.is_batch else [given]
        with self._lock:
            self._handled.update((record.partition, record.offset) for record in records)
        for record in records:
            if self._is_poison(record.raw_value or b""):
                raise Poison("not good", record=record)
        return [Output(self.target, record.raw_value, record.raw_key) for record in records]

    def _is_poison(self, value: bytes) -> bool:
        return self.has_poison and int(value.split()[1].rstrip(b".")) % POISON_EVERY == 0

    def committed(self) -> dict[int, int]:
        return self.act.world.truth.committed(self.group, self.topic, self._partitions)

    def is_done(self) -> bool:
        return self.committed() == dict(self._ends)

    def check(self) -> None:
        act = self.act
        truth = act.world.truth
        values = [value for _, _, value in self._rows]
        expected = Counter(value for value in values if not self._is_poison(value))
        found = Counter(truth.values(self.target, self._partitions))
        dead_expected = Counter(value for value in values if self._is_poison(value))
        dead = Counter(truth.values(self.dead_letters, 1)) if dead_expected else Counter()
        what = f"{self.guarantee}{' in batches' if self.is_batch else ''}"
        if self.guarantee == AT_MOST_ONCE:
            twice = [place for place, count in self._handled.items() if count > 1]
            if twice:
                act.wrong(f"{what}: handled twice: {sorted(twice)[:5]}")
            if (found - expected) or (dead - Counter(values)):
                act.wrong(
                    f"{what}: too many: {sorted(found - expected)[:5]} {sorted(dead - dead_expected)[:5]}"
                )
            return
        if self.guarantee == AT_LEAST_ONCE:
            found, dead = Counter(set(found)), Counter(set(dead))
        for kind, there, wanted in (("outputs", found, expected), ("dead letters", dead, dead_expected)):
            differs = difference(there, wanted)
            if differs is not None:
                act.wrong(f"{what}, {kind}: {differs}")
        if not self.is_done():
            act.wrong(f"{what}: the offsets went to {self.committed()}, not {dict(self._ends)}")


class _Member(threading.Thread):
    """A process of the group and whoever starts it again."""

    def __init__(self, work: _Work, name: str) -> None:
        super().__init__(name=f"processor-{name}", daemon=True)
        self._work = work
        self._instance = name
        self._processor: Processor | None = None
        self._is_over = threading.Event()
        self._is_restarted = threading.Event()

    def run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._processor = self._new()
                self._processor.run()
                if self._work.stops_at_end and not self._is_restarted.is_set():
                    return
                self._is_restarted.clear()
            except Stopped as error:
                self._work.act.met(error)
                time.sleep(PAUSE_S)
            except Exception as error:
                self._work.act.wrong(f"a processor ends with {type(error).__name__}: {error}")
                return

    def _new(self) -> Processor:
        work = self._work
        return Processor(
            work.topic,
            group=work.group,
            handler=work.handle,
            bootstrap=work.act.liar.bootstrap,
            guarantee=work.guarantee,
            batch=work.is_batch,
            batch_size=20,
            backoff=Backoff(0.01),
            dead_letter_topic=work.dead_letters if work.has_poison else None,
            instance=self._instance,
            settings=CLIENT_SETTINGS,
            consumer_settings=CONSUMER_SETTINGS,
            producer_settings=PRODUCER_SETTINGS,
            stop_at_end=work.stops_at_end,
        )

    def restart(self) -> None:
        if self._processor is not None:
            self._is_restarted.set()
            self._processor.stop()

    def end(self) -> None:
        self._is_over.set()
        self.restart()
