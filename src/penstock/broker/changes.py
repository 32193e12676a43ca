"""The one way in which metadata changes: decide, write, remember, act; one change at a time.

A decision is made from the image as it is under the lock and written to the tree as one `multi`. Then each change is
prepared (logs are opened), applied to the image, and acted upon (logs removed, options replaced). A failed write changes
nothing. After it there is no way back: a disk that fails then fails the request, but the image follows the tree.
"""

from asyncio import Lock
from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.controller.decision import Decision
from penstock.metadata.image import Change, ClusterImage
from penstock.metadata.tree import MetadataTree

Result = TypeVar("Result")


class Changes:
    def __init__(
        self,
        image: ClusterImage,
        tree: MetadataTree,
        prepare: Callable[[Change], Awaitable[None]],
        act: Callable[[Change], None],
    ) -> None:
        self._image = image
        self._tree = tree
        self._prepare = prepare
        self._act = act
        self._lock = Lock()

    async def make(self, decide: Callable[[], Decision[Result]]) -> list[Result]:
        """What the decision answers, once it is in the tree and in force."""
        async with self._lock:
            decision = decide()
            if decision.ops:
                await self._tree.multi(decision.ops)
            failed: OSError | None = None
            for change in decision.changes:
                try:
                    await self._prepare(change)
                except OSError as error:
                    failed = failed or error
                self._image.apply(change)
                self._act(change)
            if failed is not None:
                raise failed
            return decision.results
