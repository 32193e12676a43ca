"""Configs in the metadata store, which every broker of a cluster reads for itself when they change."""

import logging
from asyncio import gather, timeout
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.cluster.followed_nodes import FollowedNodes
from penstock.metadata import znodes
from penstock.metadata.image import BROKERS, TOPICS, USER_CLIENTS, USERS, ConfigsChanged
from penstock.metadata.load import LOADED_CONFIGS
from penstock.metadata.tree import Check, MetadataTree, NoNode, TreeError

if TYPE_CHECKING:
    from penstock.broker.facets import WithEffects, WithImage, WithPasswords, WithPools

    class Needs(WithEffects, WithImage, WithPasswords, WithPools, Protocol): ...


log = logging.getLogger("penstock.broker")

CONFIG_SECONDS: Final = 2.0
"""For so long a new partition waits for its topic's configuration, when the store does not answer."""
_ROOTS: Final = frozenset(f"{znodes.CONFIG}/{kind}" for kind in LOADED_CONFIGS)


class SharedConfigs(FollowedNodes):
    def __init__(self, node: "Needs", store: MetadataTree) -> None:
        super().__init__(store, [f"{znodes.CONFIG}/{kind}" for kind in LOADED_CONFIGS])
        self._node = node

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
            log.warning("new partitions start without the configs of their topics: %r", refusal)

    async def _read(self, path: str) -> None:
        if path in _ROOTS:
            found = await self._store.subtree(path)
            # Also what we know and was not found: it may have been removed while nobody told us.
            below = (each for each in (*found, *self._known(path)) if each != path)
            self._changed.update(dict.fromkeys(below))
            return
        named = znodes.config_entity(path)
        if named is None:
            return
        try:
            overrides = znodes.decode_config(path, (await self._store.get(path)).data)
        except NoNode:
            overrides = None
        node = self._node
        kind, entity = named
        known = dict(node.image.overrides(kind, entity)) if node.image.has_config_node(kind, entity) else None
        if known != overrides:
            if kind == BROKERS and overrides and node.passwords.must_open(overrides):
                await node.pools.codecs.run(node.passwords.open, overrides)  # which is remembered
            node.effects.apply(ConfigsChanged(kind, entity, overrides))

    def _known(self, root: str) -> Iterator[str]:
        """The paths below the root whose configs are in the image."""
        kind = root.removeprefix(f"{znodes.CONFIG}/")
        for each in (kind, USER_CLIENTS) if kind == USERS else (kind,):
            for name in self._node.image.configs.get(each, ()):
                yield znodes.config_path(each, name)
