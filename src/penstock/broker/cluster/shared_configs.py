"""Configs in the metadata store, which every broker of a cluster reads for itself when they change."""

import logging
from asyncio import CancelledError, Event, gather, sleep, timeout
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from penstock.metadata import znodes
from penstock.metadata.image import TOPICS, ConfigsChanged
from penstock.metadata.load import LOADED_CONFIGS
from penstock.metadata.tree import (
    Check,
    EventKind,
    MetadataTree,
    NoNode,
    SessionLost,
    StoreUnavailable,
    TreeError,
    TreeEvent,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithEffects, WithImage

    class Needs(WithEffects, WithImage, Protocol): ...


log = logging.getLogger("penstock.broker")

RETRY_SECONDS: Final = 0.5
CONFIG_SECONDS: Final = 2.0
"""For so long a new partition waits for its topic's configuration, when the store does not answer."""


class SharedConfigs:
    def __init__(self, node: "Needs", store: MetadataTree) -> None:
        self._node = node
        self._store = store
        self._changed: set[str] = set()
        self._wake = Event()

    def watch(self) -> Iterable[Callable[[], None]]:
        """How to stop watching is told for each kind."""
        return [self._store.watch(f"{znodes.CONFIG}/{kind}", self._on_config) for kind in LOADED_CONFIGS]

    def _on_config(self, event: TreeEvent) -> None:
        if event.kind is not EventKind.LOST:
            self._changed.add(event.path)
            self._wake.set()

    def look_at_all(self) -> None:
        self._changed.update(f"{znodes.CONFIG}/{kind}" for kind in LOADED_CONFIGS)
        self._wake.set()

    async def follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._changed:
                path = self._changed.pop()
                try:
                    await self._read(path)
                except (StoreUnavailable, SessionLost):
                    self._changed.add(path)
                    await sleep(RETRY_SECONDS)
                except (TreeError, znodes.BadNode) as error:
                    log.warning("cannot read %s: %s", path, error)
                except CancelledError:
                    raise
                except Exception:
                    log.exception("%s cannot be applied", path)

    async def learn(self, topics: Iterable[str]) -> None:
        """Of topics that are new here, before anything of them is opened: what the watch tells may come later."""
        paths = [znodes.config_path(TOPICS, name) for name in topics]
        if not paths:
            return
        try:
            async with timeout(CONFIG_SECONDS):
                await self._store.multi([Check(znodes.CONFIG)])  # what is read after a write is not older
                found = await gather(*map(self._read, paths), return_exceptions=True)
            refusal = next((each for each in found if each is not None), None)
        except (TimeoutError, TreeError) as error:
            refusal = error
        if refusal is not None:
            log.warning("new partitions begin without their topics' options: %r", refusal)

    async def _read(self, path: str) -> None:
        kind, _, name = path.removeprefix(f"{znodes.CONFIG}/").partition("/")
        if not name:
            for child in await self._store.children(path):
                self._changed.add(f"{path}/{child}")
            return
        try:
            overrides = znodes.decode_config(path, (await self._store.get(path)).data)
        except NoNode:
            overrides = None
        node = self._node
        entity = znodes.desanitize(name)
        known = dict(node.image.overrides(kind, entity)) if node.image.has_config_node(kind, entity) else None
        if known != overrides:
            node.effects.apply(ConfigsChanged(kind, entity, overrides))
