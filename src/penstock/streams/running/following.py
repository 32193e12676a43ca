"""A store's rows in the memory of whoever asks, in any process: a view that follows the topic where the store is kept.

A changelog has the state as it was at the last commit of its task. A table that is a topic of its own has no changelog: its view
reads the topic as the task does. Nothing is written, and no group is joined.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.client.errors import Refused, Unreachable
from penstock.client.librdkafka_calls import RETRIABLE_CODES
from penstock.streams.kernel.building import Building
from penstock.streams.kernel.memory_stores import SortedKeys
from penstock.streams.kernel.needs import Needs
from penstock.streams.kernel.operators.reading import read
from penstock.streams.kernel.records import InputRecord
from penstock.streams.kernel.state_values import unpack
from penstock.streams.kernel.topology import cut
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import Plan
from penstock.streams.running import topics
from penstock.streams.running.layout import CannotRun, Layout, arrange, read_topics
from penstock.streams.running.options import RunOptions
from penstock.streams.running.restoring import NotRestored, as_input, bounds_of
from penstock.streams.running.settings import CONSUMER_SETTINGS

log = logging.getLogger("penstock.streams")

AT_ONCE: Final = 5000
WAIT_S: Final = 0.1
FIRST_S: Final = 60.0  # what the first reading may take without anything new
END_S: Final = 5.0

Take = Callable[[InputRecord], None]


class NoView(RuntimeError):
    """Why a store cannot be followed."""


class Behind(NamedTuple):
    """`records` of the topic are not in the view yet. What it has is at least as new as the topic was `ms` ago."""

    records: int
    ms: int


class ViewStore:
    """One partition. One thread writes, any thread asks."""

    def __init__(self) -> None:
        self._values: dict[bytes, Any] = {}
        self._keys: SortedKeys | None = None
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Any:
        return _plain(self._values.get(key))

    def put(self, key: bytes, value: Any) -> None:
        with self._lock:
            if self._keys is not None and (key in self._values) != (value is not None):
                (self._keys.add if value is not None else self._keys.remove)(key)
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value

    def clear(self) -> None:
        with self._lock:
            self._values, self._keys = {}, None

    def range(self, first: bytes, last: bytes | None = None) -> Iterator[tuple[bytes, Any]]:
        with self._lock:
            ordered = self._ordered()
            keys = ordered.all() if last is None else ordered.between(first, last)
            found = [(key, self._values[key]) for key in keys if key >= first]
        return ((key, _plain(value)) for key, value in found)

    def all(self) -> Iterator[tuple[bytes, Any]]:
        return self.range(b"")

    def ends(self) -> tuple[bytes, bytes] | None:
        """The first key that is a row's, and the last."""
        with self._lock:
            keys = self._ordered()
            first = keys.first_from(b"\x00") if self._values else None
            return None if first is None else (first, keys.last())

    def _ordered(self) -> SortedKeys:
        if self._keys is None:
            self._keys = SortedKeys(sorted(self._values))
        return self._keys


class _Packed(bytes):
    """As the changelog has it; it is unpacked for who asks."""

    __slots__ = ()


def _plain(value: Any) -> Any:
    return unpack(value) if value.__class__ is _Packed else value


class Follower:
    """Of one store: `parts` by partition."""

    def __init__(self, options: RunOptions, topic: str, parts: list[ViewStore], takes: list[Take]) -> None:
        self.parts = parts
        self._options, self._topic, self._takes = options, topic, takes
        self._consumer = Consumer(
            {
                **CONSUMER_SETTINGS,
                **options.for_consumer(),
                "group.id": f"{options.application_id}-view",
                "auto.offset.reset": "earliest",
            },
            logger=log.getChild("client"),
        )
        self._positions = [0] * len(parts)
        self._ends = [0] * len(parts)
        self._at_end_s = time.monotonic()
        self._read_s = self._at_end_s
        self._ready, self._ended = threading.Event(), threading.Event()
        self._failure: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"penstock-view-{topic}", daemon=True)
        self._thread.start()

    def wait_ready(self) -> None:
        """Until it has what was there when it began. NoView."""
        while not self._ready.wait(WAIT_S):
            if time.monotonic() - self._read_s > FIRST_S:
                self.close()
                raise NoView(f"the cluster gives nothing of {self._topic}")
        if self._failure is not None:
            raise NoView(self._failure)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._ended.is_set()

    def behind(self) -> Behind:
        """The cluster is asked where the topic ends now."""
        at_end_s = self._at_end_s
        with topics.cluster_of(self._options) as cluster:
            ends = cluster.offsets.ends(self._topic, committed=True)
        records = sum(
            max(0, ends[place] - at) for place, at in zip(sorted(ends), self._positions, strict=False)
        )
        return Behind(records, 0 if not records else round((time.monotonic() - at_end_s) * 1000))

    def close(self) -> None:
        self._ended.set()
        self._thread.join(END_S)

    def _run(self) -> None:
        try:
            for partition in range(len(self.parts)):
                first, self._ends[partition] = bounds_of(self._consumer, (self._topic, partition))
                self._positions[partition] = first
            self._consumer.assign(
                [TopicPartition(self._topic, partition, at) for partition, at in enumerate(self._positions)]
            )
            while not self._ended.is_set():
                for message in self._consumer.consume(AT_ONCE, WAIT_S):
                    self._take(message)
                if all(at >= end for at, end in zip(self._positions, self._ends, strict=True)):
                    self._at_end_s = time.monotonic()
                    self._ready.set()
        except (KafkaException, NotRestored, ValueError) as error:
            self._failure = f"{self._topic} cannot be followed: {error}"
            log.warning("%s", self._failure)
        finally:
            self._ended.set()
            self._ready.set()
            self._consumer.close()

    def _take(self, message: Any) -> None:
        partition, error = message.partition(), message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._positions[partition] = message.offset()
                self._ends[partition] = message.offset()
            elif error.fatal() or error.code() not in RETRIABLE_CODES:
                raise KafkaException(error)
            return
        self._read_s = time.monotonic()
        if message.offset() < self._positions[partition]:  # a topic that was made anew
            self.parts[partition].clear()
            self._ends[partition] = 0
        self._positions[partition] = message.offset() + 1
        self._ends[partition] = max(self._ends[partition], message.offset() + 1)
        self._takes[partition](as_input(message))


class Followers:
    """`StoredState` of a program's stores, each followed from when it is first asked. `registry` makes a registry's client."""

    def __init__(self, plan: Plan, options: RunOptions, registry: Callable[[], Any] | None) -> None:
        self._plan, self._options, self._registry = plan, options, registry
        self._followers: dict[str, Follower] = {}
        self._lock = threading.Lock()

    def follow(self, store: str) -> None:
        """Begins, if it has not. NoView says why it cannot."""
        self._follower(store)

    def partitions(self, store: str) -> int:
        return len(self._follower(store).parts)

    def get(self, store: str, partition: int, key: bytes) -> Any:
        return self._follower(store).parts[partition].get(key)

    def scan(
        self, store: str, partition: int, first: bytes, last: bytes | None
    ) -> Iterator[tuple[bytes, Any]]:
        return self._follower(store).parts[partition].range(first, last)

    def ends(self, store: str, partition: int) -> tuple[bytes, bytes] | None:
        return self._follower(store).parts[partition].ends()

    def behind(self, store: str) -> Behind:
        return self._follower(store).behind()

    def close(self) -> None:
        with self._lock:
            followers, self._followers = self._followers, {}
        for each in followers.values():
            each.close()

    def _follower(self, store: str) -> Follower:
        found = self._followers.get(store)
        if found is None or not found.is_alive:
            with self._lock:
                found = self._followers.get(store)
                if found is None or not found.is_alive:
                    found = self._begin(store)
                    found.wait_ready()
                    self._followers[store] = found
        return found

    def _begin(self, store: str) -> Follower:
        try:
            layout = self._layout()
        except (CannotRun, Refused, Unreachable, OSError) as error:
            raise NoView(f"the store {store} cannot be followed: {error}") from error
        for part in layout.parts:
            parts = [ViewStore() for _ in range(part.partitions)]
            changelog = dict(part.changelogs).get(store)
            if changelog is not None:
                return Follower(self._options, changelog, parts, [_restored(each) for each in parts])
            source = dict(part.replayed).get(store)
            if source is not None:
                parts = parts[: dict(layout.partitions).get(source, part.partitions)]
                takes = [self._reading(store, source, number, each) for number, each in enumerate(parts)]
                return Follower(self._options, source, parts, takes)
        raise NoView(f"there is no store {store}")

    def _layout(self) -> Layout:
        subtopologies = cut(self._plan)
        with topics.cluster_of(self._options) as cluster:
            counts = topics.partitions_of(cluster, read_topics(subtopologies))
            layout = arrange(self._options.application_id, subtopologies, counts)
            names = [topic for part in layout.parts for _, topic in part.changelogs]
            missing = [name for name, count in topics.partitions_of(cluster, names).items() if count is None]
        if missing:
            raise CannotRun(f"the topic {missing[0]} does not exist: the program has not run yet")
        return layout

    def _reading(self, store: str, topic: str, partition: int, part: ViewStore) -> Take:
        """As the task reads a table from its topic."""
        building = Building(
            Needs(self._plan),
            partition=partition,
            store=lambda _: part,
            output=_nothing,
            on_error=_nothing,
            topic_names=str,
            registry=None if self._registry is None else self._registry(),
        )
        (node,) = (each for each in self._plan.nodes() if each.name == store)
        assert isinstance(node, nodes.Read)
        read(node, building, _nothing)
        (take,) = building.restores[topic]
        return take


def _restored(part: ViewStore) -> Take:
    def take(record: InputRecord) -> None:
        if record.key is not None:
            part.put(record.key, None if record.value is None else _Packed(record.value))

    return take


def _nothing(_: Any) -> None:
    pass
