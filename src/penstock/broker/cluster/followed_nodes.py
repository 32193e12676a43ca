"""Nodes in the metadata store that every broker of a cluster reads for itself when they change."""

import logging
from asyncio import CancelledError, Event, sleep
from collections.abc import Callable, Iterable
from typing import Final

from penstock.metadata import znodes
from penstock.metadata.tree import (
    EventKind,
    MetadataTree,
    SessionLost,
    StoreUnavailable,
    TreeError,
    TreeEvent,
)

log = logging.getLogger("penstock.broker")

RETRY_SECONDS: Final = 0.5


class FollowedNodes:
    """`roots` are watched. The path of a root itself says that anything below it may have changed."""

    def __init__(self, store: MetadataTree, roots: Iterable[str]) -> None:
        self._store = store
        self._roots = tuple(roots)
        self._changed: dict[str, None] = {}  # in order, for whoever simulates it
        self._wake = Event()

    def watch(self) -> Iterable[Callable[[], None]]:
        """How to stop watching is told for each root."""
        return [self._store.watch(root, self._on_change) for root in self._roots]

    def _on_change(self, event: TreeEvent) -> None:
        if event.kind is not EventKind.LOST:
            self._changed[event.path] = None
            self._wake.set()

    def look_at_all(self) -> None:
        self._changed.update(dict.fromkeys(self._roots))
        self._wake.set()

    async def follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._changed:
                path, _ = self._changed.popitem()
                try:
                    await self._read(path)
                except (StoreUnavailable, SessionLost):
                    self._changed[path] = None
                    await sleep(RETRY_SECONDS)
                except (TreeError, znodes.BadNode) as error:
                    log.warning("cannot read %s: %s", path, error)
                except CancelledError:
                    raise
                except Exception:
                    log.exception("%s cannot be applied", path)

    async def _read(self, path: str) -> None:
        """Read the node again, and act on what is different."""
        raise NotImplementedError
