"""The cluster that a lying broker pretends to be: several nodes, of which one holds each post at a time.

A post is the leadership of a partition or the coordination of a group or transactional id. Who holds it may change. Then for a
moment nobody serves it, nodes that have not heard of the change go on telling the old holder, and the new leader of a partition
does not know yet how far its log is committed: all of it as in a real cluster.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

HOST: Final = "127.0.0.1"


class Leadership(NamedTuple):
    topic: str
    partition: int


class Coordination(NamedTuple):
    kind: str  # "group" or "transaction"
    key: str


Post = Leadership | Coordination


class Holder(NamedTuple):
    node_id: int
    epoch: int
    since_s: float
    serves_from_s: float
    """Before that the node does not know of its post."""
    is_sure_from_s: float
    """Before that a leader does not know its high watermark."""


class Stage:
    def __init__(self, ports: Sequence[int], clock: Callable[[], float] = time.monotonic) -> None:
        self.ports: Final = dict(enumerate(ports, start=1))
        self.topic_names: Final[dict[bytes, str]] = {}
        """By topic id, as far as somebody has asked for metadata."""
        self._clock = clock
        self._holders: dict[Post, list[Holder]] = {}
        self._frozen: dict[int, tuple[float, float]] = {}  # node → (what it knows is of then, until)
        self._forgotten: dict[str, tuple[float, frozenset[int]]] = {}  # topic → (until, by these nodes)
        self._down: dict[int, float] = {}  # node → until

    def name(self, topic: str | bytes) -> str:
        return topic if isinstance(topic, str) else self.topic_names.get(topic, topic.hex())

    def holder(self, post: Post) -> Holder:
        return self._history(post)[-1]

    def told_by(self, node_id: int, post: Post) -> Holder:
        """Whom this node names, which may be an earlier one."""
        history = self._history(post)
        known_s, until_s = self._frozen.get(node_id, (0.0, 0.0))
        if self._clock() >= until_s:
            return history[-1]
        return next((each for each in reversed(history) if each.since_s <= known_s), history[0])

    def serves(self, node_id: int, post: Post) -> bool:
        holder = self.holder(post)
        return holder.node_id == node_id and self._clock() >= holder.serves_from_s

    def is_sure(self, post: Post) -> bool:
        return self._clock() >= self.holder(post).is_sure_from_s

    def forgets(self, node_id: int, topic: str) -> bool:
        until_s, nodes = self._forgotten.get(topic, (0.0, frozenset()))
        return node_id in nodes and self._clock() < until_s

    def is_down(self, node_id: int) -> bool:
        return self._clock() < self._down.get(node_id, 0.0)

    def move(self, post: Post, *, steps: int, vacant_s: float, unsure_s: float) -> None:
        """To the node that comes so many after the holder."""
        now_s = self._clock()
        before = self.holder(post)
        node_id = (before.node_id - 1 + steps) % len(self.ports) + 1
        serves_from_s = now_s + vacant_s
        self._holders[post].append(
            Holder(node_id, before.epoch + 1, now_s, serves_from_s, serves_from_s + unsure_s)
        )

    def freeze(self, node_id: int, duration_s: float) -> None:
        """The node hears of no change for so long."""
        now_s = self._clock()
        self._frozen[node_id] = (now_s, now_s + duration_s)

    def forget(self, topic: str, nodes: frozenset[int], duration_s: float) -> bool:
        """False where the topic was forgotten a moment ago: nobody can wait for one that hardly ever is there."""
        now_s = self._clock()
        until_s, _ = self._forgotten.get(topic, (0.0, frozenset()))
        if now_s < until_s + 2 * duration_s:
            return False
        self._forgotten[topic] = (now_s + duration_s, nodes)
        return True

    def take_down(self, node_id: int, duration_s: float) -> None:
        self._down[node_id] = self._clock() + duration_s

    def settle(self) -> None:
        """From now on everybody knows everything."""
        for posts in self._holders.values():
            posts[-1] = posts[-1]._replace(serves_from_s=0.0, is_sure_from_s=0.0)
        self._frozen.clear()
        self._forgotten.clear()
        self._down.clear()

    def _history(self, post: Post) -> list[Holder]:
        if post not in self._holders:
            # Not hash(), which differs from process to process.
            node_id = zlib.crc32("/".join(map(str, post)).encode()) % len(self.ports) + 1
            self._holders[post] = [Holder(node_id, 0, 0.0, 0.0, 0.0)]
        return self._holders[post]
