"""A task's share of a plan: stores, kernel tasks, and the inputs that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from penstock.streams.kernel.records import InputRecord, OutputRecord, Row
from penstock.streams.kernel.task import OnError, Task
from penstock.streams.kernel.topology import Subtopology
from penstock.streams.plan.nodes import PythonProcessor
from penstock.streams.running.changelogs import KeptStore, LoggedStore, MakeStore
from penstock.streams.running.layout import Layout, Part, owned
from penstock.streams.running.reading import Input, Lane, Place


class Piece(NamedTuple):
    """One subtopology in one partition."""

    part: Part
    subtopology: Subtopology
    partition: int
    lane: Lane
    stores: dict[str, KeptStore]


class Assembly:
    def __init__(
        self,
        layout: Layout,
        subtopologies: Any,
        *,
        task: int,
        tasks: int,
        make_store: MakeStore = LoggedStore,
    ) -> None:
        self._layout = layout
        self.pieces = [
            _piece(layout, part, subtopology, partition, make_store)
            for part, subtopology in zip(layout.parts, subtopologies, strict=True)
            for partition in owned(part.partitions, task, tasks)
        ]
        self.inputs: dict[Place, Input] = {
            each.place: each for piece in self.pieces for each in piece.lane.inputs
        }
        self.waiting = [piece.lane for piece in self.pieces if not piece.lane.is_single]

    def changelogs(self) -> dict[Place, KeptStore]:
        return {
            (topic, piece.partition): piece.stores[store]
            for piece in self.pieces
            for store, topic in piece.part.changelogs
        }

    def make_tasks(
        self,
        output: Callable[[OutputRecord], None],
        on_error: OnError,
        registry: Any,
        times: Mapping[Place, int],
        deliver: Callable[[Row], None] | None,
    ) -> None:
        """Once the logged stores have their state: the kernel looks into them. `times`: where stream time was in each input."""
        for piece in self.pieces:
            piece.lane.use(
                piece.subtopology.make_task(
                    partition=piece.partition,
                    stores=piece.stores,
                    output=output,
                    on_error=on_error,
                    registry=registry,
                    topic_names=self._layout.topic_name,
                    deliver=deliver,
                    stream_time=max((times.get(each.place, -1) for each in piece.lane.inputs), default=-1),
                )
            )

    def timed(self) -> list[Task]:
        """Tasks with programs that may have timers."""
        return [
            piece.lane.task
            for piece in self.pieces
            if piece.lane.task is not None
            and any(isinstance(node, PythonProcessor) for node in piece.subtopology.nodes)
        ]

    def replays(self) -> dict[Place, Callable[[InputRecord], None]]:
        """What takes in the records from which stores without a changelog are made."""
        found: dict[Place, Callable[[InputRecord], None]] = {}
        for piece in self.pieces:
            for _, topic in piece.part.replayed:
                assert piece.lane.task is not None
                if topic not in piece.part.globals:
                    found[topic, piece.partition] = piece.lane.task.restore
        return found

    def globals(self) -> dict[Place, list[Callable[[InputRecord], None]]]:
        """Who takes the records of topics that every task reads whole."""
        counts = dict(self._layout.partitions)
        found: dict[Place, list[Callable[[InputRecord], None]]] = {}
        for piece in self.pieces:
            for topic in piece.part.globals:
                for partition in range(counts[topic]):
                    found.setdefault((topic, partition), []).append(piece.lane.process)
        return found

    def forget_changes(self) -> None:
        """What restoring did to the stores is in the topics already."""
        for piece in self.pieces:
            for store in piece.stores.values():
                store.changed.clear()

    def flush(
        self, change: Callable[[str, int, int], Callable[[bytes, bytes | None], None]], now_ms: int
    ) -> int:
        """Hands every change of state since the last flush to its changelog; how many there are."""
        count = 0
        for piece in self.pieces:
            task = piece.lane.task
            assert task is not None
            task.flush()
            for store, topic in piece.part.changelogs:
                held = piece.stores[store]
                if held.changed:
                    time_ms = task.stream_time()  # which brokers refuse when it is in the future
                    known_ms = min(time_ms, now_ms) if time_ms >= 0 else now_ms
                    count += held.flush(change(topic, piece.partition, known_ms))
            for store, _ in piece.part.replayed:
                piece.stores[store].changed.clear()
        return count

    def store(self, name: str, partition: int) -> KeptStore:
        for piece in self.pieces:
            if piece.partition == partition and name in piece.stores:
                return piece.stores[name]
        raise LookupError(f"there is no store '{name}' of partition {partition} here")

    def close(self) -> None:
        for piece in self.pieces:
            for store in piece.stores.values():
                store.close()

    def entries(self) -> int:
        return sum(len(store) for piece in self.pieces for store in piece.stores.values())


def _piece(
    layout: Layout, part: Part, subtopology: Subtopology, partition: int, make_store: MakeStore
) -> Piece:
    counts: Mapping[str, int] = {
        **dict(layout.partitions),
        **{each.name: each.partitions for each in layout.internal},
    }
    # Topics that are not joined may have fewer partitions than the largest that the subtopology reads.
    places = [(topic, partition) for topic in part.topics if partition < counts[topic]]
    logged = dict(part.changelogs)
    stores = {spec.name: make_store(spec.name, is_logged=spec.name in logged) for spec in subtopology.stores}
    return Piece(part, subtopology, partition, Lane(f"{part.number}_{partition}", places), stores)
