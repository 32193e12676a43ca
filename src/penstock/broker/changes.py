"""The one way in which metadata changes: decide, write, remember, act; one change at a time.

A decision is made from the image as it is under the lock, written to the tree as one `multi`, applied to the image,
and then acted upon (logs opened or removed, options replaced). A failed write changes nothing.
"""

from asyncio import Lock
from collections.abc import Callable
from typing import TypeVar

from penstock.controller.decision import Decision
from penstock.metadata.image import Change, ClusterImage
from penstock.metadata.tree import MetadataTree

Result = TypeVar("Result")


class Changes:
    def __init__(self, image: ClusterImage, tree: MetadataTree, act: Callable[[Change], None]) -> None:
        self._image = image
        self._tree = tree
        self._act = act
        self._lock = Lock()

    async def make(self, decide: Callable[[], Decision[Result]]) -> list[Result]:
        """What the decision answers, once it is in the tree and in force."""
        async with self._lock:
            decision = decide()
            if decision.ops:
                await self._tree.multi(decision.ops)
            for change in decision.changes:
                self._image.apply(change)
                self._act(change)
            return decision.results
