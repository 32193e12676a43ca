"""What somebody who is not there has in place of a SCRAM credential, so that nobody learns from a login who exists.

A decoy has a user's iterations and length of salt. Which ones, the name decides, in proportion to how many users have them:
where 30 users have 4,096 iterations and 10 have 8,192, about a quarter of all names that nobody has get 8,192. With a user more
or less nearly all names keep what they have. The key is the same on all brokers of a cluster, and lasts; else two brokers, or
two starts, would give away the names whose salts differ.
"""

from __future__ import annotations

import hmac
import math
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.security.scram import DEFAULT_ITERATIONS, MECHANISMS, Credential

KEY_BYTES: Final = 32
SALT_BYTES: Final = 24
"""Of users that `penstock users` makes."""
_KEPT: Final = re.compile(r"(?:.*,)?salt=([A-Za-z0-9+/]*)=*(?:,.*)?")
_ITERATIONS: Final = re.compile(r"(?:.*,)?iterations=([0-9]{1,9})(?:,.*)?")


class Shape(NamedTuple):
    """What a client sees of a credential."""

    iterations: int
    salt_bytes: int


DEFAULT_SHAPE: Final = Shape(DEFAULT_ITERATIONS, SALT_BYTES)


def shape_of(text: str) -> Shape | None:
    """Of a credential in Kafka's form: all users of a cluster are looked through, so it is not read in full."""
    salt, iterations = _KEPT.fullmatch(text), _ITERATIONS.fullmatch(text)
    if salt is None or iterations is None:
        return None
    return Shape(int(iterations[1]), len(salt[1]) * 3 // 4)


def decoy(key: bytes, mechanism: str, name: str, shapes: Mapping[Shape, int]) -> Credential:
    """The same for a name each time. `shapes`: how many users of the mechanism have each."""
    digest = MECHANISMS[mechanism]
    what = f"{mechanism} {name}".encode()
    shape = min(
        shapes,
        key=lambda each: _draw(key, b"shape %d %d " % each + what) / shapes[each],
        default=DEFAULT_SHAPE,
    )
    salt = b""
    while len(salt) < shape.salt_bytes:
        salt += hmac.digest(key, b"salt %d " % len(salt) + what, "sha512")
    made_up = hmac.digest(key, b"key " + what, digest)
    return Credential(salt[: shape.salt_bytes], made_up, made_up, shape.iterations)


def _draw(key: bytes, what: bytes) -> float:
    """A number from an exponential distribution. Divided by weights, each is the least as often as its weight says."""
    drawn = int.from_bytes(hmac.digest(key, what, "sha256")[:6], "big")
    return -math.log((drawn + 1) / (1 << 48))
