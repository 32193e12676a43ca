"""Decoys for names that nobody has (`security/decoys`), as this cluster's users are.

Their key is made of what only brokers of the cluster know (`metadata.load.shared_key`).
"""

import hmac
import secrets
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from penstock.metadata.image import USERS, ConfigsChanged
from penstock.security.decoys import KEY_BYTES, Shape, decoy, shape_of
from penstock.security.scram import MECHANISMS, Credential

if TYPE_CHECKING:
    from penstock.broker.facets import WithImage, WithTokens

    class Needs(WithImage, WithTokens, Protocol): ...


class Decoys:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self.key = secrets.token_bytes(KEY_BYTES)
        """Of this broker alone, until it has that of the cluster."""
        self._shapes: dict[str, dict[str, Shape]] | None = None
        """By mechanism and user; None: nobody has asked yet."""
        self._counts: dict[str, Counter[Shape]] = {}

    def learn(self, shared_key: bytes) -> None:
        """At the start, when the image has all users: the first who asks for nobody waits no longer than others."""
        self.key = hmac.digest(shared_key, b"decoys", "sha256")
        self._look()

    def of(self, mechanism: str, name: str, *, is_token: bool) -> Credential:
        if is_token:
            return self._node.tokens.decoy(mechanism, name, self.key)
        if self._shapes is None:
            self._look()
        return decoy(self.key, mechanism, name, self._counts[mechanism])

    def user_changed(self, change: ConfigsChanged) -> None:
        if self._shapes is None:
            return
        texts = self._node.image.overrides(USERS, change.entity_name)
        for mechanism, known in self._shapes.items():
            counts = self._counts[mechanism]
            before = known.pop(change.entity_name, None)
            if before is not None:
                counts[before] -= 1
                if not counts[before]:
                    del counts[before]
            shape = shape_of(texts[mechanism]) if mechanism in texts else None
            if shape is not None:
                known[change.entity_name] = shape
                counts[shape] += 1

    def _look(self) -> None:
        self._shapes = {
            mechanism: {
                name: shape
                for name, texts in self._node.image.configs.get(USERS, {}).items()
                if mechanism in texts and (shape := shape_of(texts[mechanism])) is not None
            }
            for mechanism in MECHANISMS
        }
        self._counts = {mechanism: Counter(known.values()) for mechanism, known in self._shapes.items()}
