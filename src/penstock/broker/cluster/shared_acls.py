"""Access rules in the metadata store, which every broker of a cluster reads for itself when they change."""

import logging
from typing import TYPE_CHECKING, Protocol

from penstock.broker.cluster.followed_nodes import FollowedNodes
from penstock.metadata.acl_nodes import WATCHED_ROOTS, acl_path, pattern_of
from penstock.metadata.image import AclsChanged
from penstock.metadata.load import acls_at, acls_of
from penstock.metadata.tree import MetadataTree, NoNode, is_at_or_below

if TYPE_CHECKING:
    from penstock.broker.facets import WithEffects, WithImage

    class Needs(WithEffects, WithImage, Protocol): ...


log = logging.getLogger("penstock.broker")


class SharedAcls(FollowedNodes):
    def __init__(self, node: "Needs", store: MetadataTree) -> None:
        super().__init__(store, WATCHED_ROOTS)
        self._node = node

    async def _read(self, path: str) -> None:
        if path in WATCHED_ROOTS:
            await self._read_all(path)
            return
        try:
            pattern = pattern_of(path)
        except ValueError as error:
            log.warning("%s; it is left as it is", error)
            return
        if pattern is None:
            return
        try:
            self._apply(acls_at(pattern, path, await self._store.get(path)))
        except NoNode:
            self._apply(AclsChanged(pattern, ()))

    async def _read_all(self, root: str) -> None:
        found = await self._store.subtree(root)
        for change in acls_of(found, lambda text: log.warning("%s", text)):
            self._apply(change)
        for pattern in list(self._node.image.acl_versions):
            path = acl_path(pattern)
            if is_at_or_below(path, root=root) and path not in found:
                await self._read(path)  # it may be newer than what was read above

    def _apply(self, change: AclsChanged) -> None:
        if self._node.image.acl_state(change.pattern) != change:
            self._node.effects.apply(change)
