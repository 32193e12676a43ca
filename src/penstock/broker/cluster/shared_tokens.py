"""Delegation tokens in the metadata store, which every broker of a cluster reads for itself when they change."""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.cluster.followed_nodes import FollowedNodes
from penstock.metadata import znodes
from penstock.metadata.image import TokenChanged
from penstock.metadata.tree import MetadataTree, NoNode

if TYPE_CHECKING:
    from penstock.broker.facets import WithEffects, WithImage

    class Needs(WithEffects, WithImage, Protocol): ...


class SharedTokens(FollowedNodes):
    def __init__(self, node: "Needs", store: MetadataTree) -> None:
        super().__init__(store, [znodes.TOKENS])
        self._node = node

    async def _read(self, path: str) -> None:
        if path == znodes.TOKENS:
            token_ids = [*await self._store.children(path), *self._node.image.tokens]
            self._changed.update(dict.fromkeys(map(znodes.token_path, token_ids)))
            return
        token_id = path.removeprefix(f"{znodes.TOKENS}/")
        try:
            token = znodes.decode_token(path, (await self._store.get(path)).data)
        except NoNode:
            token = None
        if self._node.image.tokens.get(token_id) != token:
            self._node.effects.apply(TokenChanged(token_id, token))
