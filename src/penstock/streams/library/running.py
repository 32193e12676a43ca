"""A program at work: started on Spark, watched on a terminal, its stores asked."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TextIO

from penstock.admin import Cluster
from penstock.client.errors import NoSuchTopic, Refused, Unreachable
from penstock.consumer.signals import stopped_by_signals
from penstock.spark.tasks.states import FINAL, JobState
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import Plan
from penstock.streams.running.following import Behind, Followers, NoView
from penstock.streams.running.query import SCAN_LIMIT, RunningQuery

log = logging.getLogger("penstock.streams")

LOOK_S: Final = 1.0
LAG_EACH: Final = 2  # looks: the lag is asked of the cluster


class RunFailed(Exception):
    """The program cannot go on."""


def make_sinks(bootstrap: str, security: dict[str, Any], plan: Plan) -> None:
    """Topics that are written and not there get as many partitions as the largest that is read."""
    with Cluster(bootstrap, security) as cluster:
        written = [node.topic for node in plan.nodes() if isinstance(node, nodes.Write)]
        missing = [topic for topic in dict.fromkeys(written) if _partitions(cluster, topic) is None]
        if not missing:
            return
        read = {node.source.topic for node in plan.nodes() if isinstance(node, nodes.Read)} - set(missing)
        most = max((_partitions(cluster, topic) or 1 for topic in read), default=1)
        for topic in missing:
            cluster.topics.create(topic, partitions=most, exist_ok=True)
            log.info("made the topic %s with %d partitions", topic, most)


def _partitions(cluster: Cluster, topic: str) -> int | None:
    try:
        return len(cluster.topics.partitions(topic))
    except NoSuchTopic:
        return None


def watch(
    query: RunningQuery, *, terminal: TextIO | None = None, stop: threading.Event | None = None
) -> None:
    """Until Ctrl-C, SIGTERM or `stop`; then it is stopped. RunFailed when it cannot go on."""
    asked = stop if stop is not None else threading.Event()
    line = _Line(query, sys.stderr if terminal is None else terminal)
    with stopped_by_signals(asked.set):
        try:
            while not asked.wait(LOOK_S) and query.state not in FINAL:
                line.show()
        finally:
            line.end()
            query.stop()
    if query.state is JobState.FAILED:
        raise RunFailed(query.reason or "it failed")


class _Line:
    """One line on a terminal, which is written over by the next; elsewhere nothing."""

    def __init__(self, query: RunningQuery, terminal: TextIO) -> None:
        self._query, self._terminal = query, terminal
        self._is_shown = terminal.isatty()
        self._looks, self._behind, self._width = 0, "", 0

    def show(self) -> None:
        if not self._is_shown:
            return
        if self._looks % LAG_EACH == 0:
            self._behind = self._lag()
        self._looks += 1
        counters = self._query.counters
        troubles = sum(counters["troubles"].values())
        text = (
            f"{self._query.application_id}: {self._query.state.lower()}, {counters.get('read', 0):,} read, "
            f"{counters.get('written', 0):,} written{self._behind}"
        )
        text += f", {troubles:,} left out" if troubles else ""
        self._terminal.write(f"\r{text:<{self._width}}")
        self._terminal.flush()
        self._width = len(text)

    def _lag(self) -> str:
        try:
            return f", {sum(self._query.lag().values()):,} behind"
        except (Refused, Unreachable, OSError):
            return ""

    def end(self) -> None:
        if self._is_shown and self._width:
            self._terminal.write("\n")
            self._terminal.flush()


class QueryStores:
    """`StoredState` of a running program."""

    def __init__(self, query: Callable[[], RunningQuery]) -> None:
        self._query = query

    def partitions(self, store: str) -> int:
        return self._query().partitions_of_store(store)

    def get(self, store: str, partition: int, key: bytes) -> Any:
        return self._query().get(store, key, partition)

    def scan(
        self, store: str, partition: int, first: bytes, last: bytes | None
    ) -> Iterator[tuple[bytes, Any]]:
        """Page by page."""
        while True:
            page = self._query().scan(store, partition, first, last)
            yield from page
            if len(page) < SCAN_LIMIT:
                return
            first = page[-1][0] + b"\x00"


class ViewsOrTasks:
    """`StoredState`: a view in this process; where there is none, the tasks of a program that runs here."""

    def __init__(self, views: Followers, tasks: QueryStores, runs_here: Callable[[], bool]) -> None:
        self._views, self._tasks, self._runs_here = views, tasks, runs_here

    def partitions(self, store: str) -> int:
        return self._of(store).partitions(store)

    def get(self, store: str, partition: int, key: bytes) -> Any:
        return self._of(store).get(store, partition, key)

    def scan(
        self, store: str, partition: int, first: bytes, last: bytes | None
    ) -> Iterator[tuple[bytes, Any]]:
        return self._of(store).scan(store, partition, first, last)

    def ends(self, store: str, partition: int) -> tuple[bytes, bytes] | None:
        state = self._of(store)
        return state.ends(store, partition) if isinstance(state, Followers) else None

    def behind(self, store: str) -> Behind:
        """What tasks have is now."""
        state = self._of(store)
        return state.behind(store) if isinstance(state, Followers) else Behind(0, 0)

    def _of(self, store: str) -> Followers | QueryStores:
        try:
            self._views.follow(store)
        except NoView as error:
            if not self._runs_here():
                raise
            log.info("%s; its tasks are asked", error)
            return self._tasks
        return self._views
