"""Any plan, any input, any moment of a crash or stop: what runs in tasks gives what the kernel gives in one process.

The plans and the kind of inputs are those of the kernel's own test. All input is there before a query begins, so what a task
does is known: it takes the records of its topics in the order of their times. Each trial prints its seed; STREAMS_SEED=2
tries others.

Exactly once: the same rows in the same order for each key. Where several tasks write into one internal topic, their order
there is chance: then the same rows in the end. At least once: the same with stops; with crashes nothing is lost.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from penstock.admin import Cluster
from penstock.client.patience import Backoff
from penstock.spark.tasks import ProcessLauncher, ThreadLauncher
from penstock.spark.tasks.job import LongJob
from penstock.streams.kernel.driver import Driver
from penstock.streams.kernel.partitioner import partition_of
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import Node
from penstock.streams.running import query as running_query
from penstock.streams.running import worker as running_worker
from penstock.streams.running.options import AT_LEAST_ONCE, EXACTLY_ONCE, STATE_STORES
from penstock.streams.running.query import RunningQuery
from penstock.streams.running.worker import Worker
from penstock.testing.penstock_broker import PenstockBroker
from tests.spark.conftest import SMALL_JVM
from tests.streams.topics import until
from tests.unit.streams.kernel.plans import _key, write
from tests.unit.streams.kernel.test_same_results import KEYS, TIMED, TIMELESS, _named

BASE_MS = 1_700_000_000_000 // 30 * 30  # windows of 5, 6, 3 and 2 ms begin there
DEADLINE_S = 30
SEED = int(os.environ.get("STREAMS_SEED", "1"))
RESTARTS_MAX = 2
AT_ONCE = 3  # records between two commits
PLANS = {**TIMELESS, **TIMED}
# What a crash repeats is not seen in their results, even at least once.
STATELESS = ("filter",)
_numbers = itertools.count()

Found = list[tuple[Any, Any, int]]


class Crash(Exception):
    """Of a task."""


class Trial(NamedTuple):
    plan: str
    records: list[Any]
    partitions: int
    guarantee: str
    crashes: bool
    store: str = "memory"


def trial_of(plan: str, seed: int) -> Trial:
    chance = random.Random(f"{plan} {seed}")
    return Trial(
        plan,
        [
            (
                chance.choice(("one", "two")),
                chance.choice((*KEYS, *KEYS, None)),
                None
                if chance.random() < 0.15
                else (chance.choice((*KEYS, *KEYS, None)), chance.randint(0, 8)),
                chance.randint(0, 40),
                chance.random() < 0.2,
            )
            for _ in range(chance.randint(10, 40))
        ],
        chance.choice((1, 3)),
        chance.choice((AT_LEAST_ONCE, EXACTLY_ONCE, EXACTLY_ONCE)),
        chance.random() < 0.6,
        chance.choice(STATE_STORES),
    )


class Case:
    """A plan over topics of its own."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.name = f"trial-{next(_numbers)}"
        made = PLANS[trial.plan]()
        self.plan = write(_renamed(made, self.name, {}), f"{self.name}-out")
        all_nodes = tuple(self.plan.nodes())
        self.topics = sorted({each.source.topic for each in all_nodes if isinstance(each, nodes.Read)})
        self.is_ordered = not any(isinstance(each, nodes.ForeignKeyJoin) for each in all_nodes) and (
            trial.partitions == 1 or not any(isinstance(each, nodes.Repartition) for each in all_nodes)
        )
        names = {topic.removeprefix(f"{self.name}-") for topic in self.topics}
        self.input = [
            (
                f"{self.name}-{topic}",
                key,
                None if value is None else _named(made, topic, value),
                BASE_MS + time,
            )
            for of, key, value, time, _ in trial.records
            for topic in [of if of in names else "one"]
        ]
        restarts = [at for at, (*_, restart) in enumerate(trial.records) if restart]
        self.restarts = restarts[len(restarts) // 3 :][:RESTARTS_MAX]

    @property
    def sink(self) -> str:
        return f"{self.name}-out"

    def partition(self, key: Any) -> int:
        return 0 if key is None else partition_of(json.dumps(key).encode(), self.trial.partitions)

    def expected(self) -> Found:
        """What the kernel gives when it takes the records as tasks do."""
        driver = Driver(self.plan, partitions=self.trial.partitions)
        for partition in range(self.trial.partitions):
            waiting = {
                topic: [(time, at, key, value) for at, (of, key, value, time) in enumerate(self.input)
                        if of == topic and self.partition(key) == partition]
                for topic in self.topics
            }  # fmt: skip
            offsets = dict.fromkeys(waiting, 0)
            while any(waiting.values()):
                topic = min(
                    (each for each in waiting if waiting[each]),
                    key=lambda each: (waiting[each][0][0], offsets[each]),
                )
                time, _, key, value = waiting[topic].pop(0)
                offsets[topic] += 1
                driver.pipe(topic, key=_json(key), value=_json(value), timestamp=time, partition=partition)
        return [_read(each.key, each.value, each.timestamp) for each in driver.outputs(self.sink)]

    def is_met(self, found: Found, expected: Found) -> bool:
        if self.trial.guarantee == AT_LEAST_ONCE and self.trial.crashes and self.restarts:
            if self.trial.plan in STATELESS:
                return {_hashed(each) for each in found} == {_hashed(each) for each in expected}
            return _newest(expected).keys() <= _newest(found).keys()
        if self.is_ordered:
            return _by_key(found) == _by_key(expected)
        return _newest(found) == _newest(expected)


def is_read(query: RunningQuery, case: Case) -> bool:
    return not any(behind for place, behind in query.lag().items() if place.topic in case.topics)


def _renamed(node: Node, prefix: str, done: dict[int, Any]) -> Any:
    """The same plan over topics of other names."""
    if id(node) not in done:
        changed: dict[str, Any] = {}
        for each in fields(node):
            value = getattr(node, each.name)
            if isinstance(value, Node):
                changed[each.name] = _renamed(value, prefix, done)
        if isinstance(node, nodes.Read):
            changed["source"] = replace(node.source, topic=f"{prefix}-{node.source.topic}")
        done[id(node)] = replace(node, **changed)
    return done[id(node)]


def _json(value: Any) -> bytes | None:
    return None if value is None else json.dumps(value).encode()


def _read(key: bytes | None, value: bytes | None, time: int) -> tuple[Any, Any, int]:
    return _key(key), None if value is None else json.loads(value), time


def _by_key(found: Found) -> dict[Any, list[Any]]:
    by_key = defaultdict(list)
    for key, value, time in found:
        by_key[key].append((value, time))
    if None in by_key:  # they lie in any partition
        by_key[None].sort(key=str)
    return by_key


def _newest(found: Found) -> dict[Any, Any]:
    """Lists without their order: who comes first is chance where several tasks write."""
    newest: dict[Any, Any] = {}
    for key, value, _ in found:
        newest[key] = value
    return {
        key: {
            name: sorted(map(str, each)) if isinstance(each, list) else each for name, each in value.items()
        }
        for key, value in newest.items()
        if value is not None
    }


def _hashed(each: tuple[Any, Any, int]) -> tuple[Any, str, int]:
    return each[0], json.dumps(each[1]), each[2]


class Restarts:
    """Takes the place of a worker's `_process`: after so many records of all tasks it fails, or has the query stopped."""

    def __init__(self, at: list[int], *, crashes: bool) -> None:
        self._at, self._crashes = list(at), crashes
        self._seen = 0
        self._lock = threading.Lock()
        self.stop = threading.Event()

    def process(
        self, original: Callable[[Worker, list[Any]], None], worker: Worker, messages: list[Any]
    ) -> None:
        for message in messages:
            original(worker, [message])
            if message.error() is None and self._is_due():
                if self._crashes:
                    raise Crash
                self.stop.set()

    def _is_due(self) -> bool:
        with self._lock:
            self._seen += 1
            if self._at and self._seen > self._at[0]:
                del self._at[0]
                return True
        return False


class Sink:
    """What is in a topic so far, as committed readers see it."""

    def __init__(self, bootstrap: str, case: Case) -> None:
        from tests.streams.topics import Reader

        self._reader = Reader(bootstrap, case.sink, case.trial.partitions)
        self._found: Found = []
        self._consumer = self._reader._consumer

    def look(self) -> Found:
        for message in self._consumer.consume(10_000, 0.05):
            assert message.error() is None, message.error()
            self._found.append(_read(message.key(), message.value(), message.timestamp()[1]))
        return self._found

    def close(self) -> None:
        self._reader.close()


@contextmanager
def prepared(broker: PenstockBroker, case: Case) -> Iterator[Sink]:
    """Topics with the whole input."""
    with Cluster(broker.bootstrap) as cluster:
        for topic in (*case.topics, case.sink):
            configs = {"retention.ms": "-1"}
            cluster.topics.create(topic, partitions=case.trial.partitions, configs=configs)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1})
        for topic, key, value, time in case.input:
            producer.produce(topic, _json(value), _json(key), case.partition(key), timestamp=time)
        assert producer.flush(DEADLINE_S) == 0
        sink = Sink(broker.bootstrap, case)
        try:
            yield sink
        finally:
            sink.close()
            for topic in (*case.topics, case.sink):
                cluster.topics.delete(topic)


def run(
    broker: PenstockBroker, case: Case, where: dict[str, Any], stop: threading.Event | None = None
) -> None:
    expected = case.expected()
    trial = case.trial
    how = f"{trial.partitions} partitions, {trial.guarantee}, {trial.store}, {'crashes' if trial.crashes else 'stops'}"
    print(f"{trial.plan}, STREAMS_SEED={SEED}: {how} behind {case.restarts}, {len(case.input)} records")
    with prepared(broker, case) as sink:

        def start() -> RunningQuery:
            return RunningQuery.start(
                case.plan,
                f"app-{case.name}",
                bootstrap=broker.bootstrap,
                guarantee=case.trial.guarantee,
                parallelism=2,
                properties={"state.store": case.trial.store, "commit.interval.ms": "0"},
                **where,
            )

        query = start()
        try:

            def is_met() -> bool:
                nonlocal query
                if stop is not None and stop.is_set():
                    stop.clear()
                    query.stop()
                    query = start()
                return case.is_met(sink.look(), expected) and is_read(query, case)

            try:
                until(is_met, deadline_s=DEADLINE_S)
            except AssertionError:
                raise AssertionError(f"{sink.look()}\nis not\n{expected}\n{query.errors}") from None
        finally:
            query.stop()
        assert case.is_met(sink.look(), expected), f"{sink.look()}\nis not\n{expected}"
        query.clean_up()


@pytest.mark.parametrize("plan", sorted(PLANS))
def test_tasks_that_stop_and_crash_anywhere_give_what_the_kernel_gives(
    broker: PenstockBroker, plan: str
) -> None:
    trial = trial_of(plan, SEED)
    case = Case(trial)
    restarts = Restarts(case.restarts, crashes=trial.crashes)
    original = Worker._process
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Worker, "_process", lambda worker, messages: restarts.process(original, worker, messages)
        )
        patch.setattr(running_query, "LongJob", _quick_job)
        patch.setattr(running_worker, "SLICE", AT_ONCE)
        run(broker, case, {"launcher": ThreadLauncher()}, restarts.stop)


def _quick_job(*words: Any, **named: Any) -> LongJob:
    return LongJob(*words, **named, retries=Backoff(0.02, factor=2, max_s=0.1, jitter=0.2))


FEW = [
    ("one", "a", ("b", 3), 1, False),
    ("two", "b", ("a", 5), 2, False),
    ("one", "b", ("a", 4), 9, False),
    ("one", "a", None, 12, False),
    ("two", "a", ("c", 6), 11, False),
    ("one", "c", ("b", 8), 14, False),
    ("one", "a", ("b", 7), 3, False),
]


@pytest.mark.parametrize("plan", ["count by another key", "foreign key, left"])
def test_processes_give_what_the_kernel_gives(broker: PenstockBroker, plan: str) -> None:
    run(broker, Case(Trial(plan, FEW, 3, EXACTLY_ONCE, False)), {"launcher": ProcessLauncher()})


def test_spark_gives_what_the_kernel_gives(broker: PenstockBroker) -> None:
    import penstock.spark

    spark = penstock.spark.session("penstock-tests", master="local[8]", **SMALL_JVM)
    try:
        for plan, partitions in (("having", 3), ("late rows", 1), ("full with grace", 3)):
            run(broker, Case(Trial(plan, FEW, partitions, EXACTLY_ONCE, False)), {"spark": spark})
    finally:
        spark.stop()
