"""Whether we have been told of everything that happened before the group's present generation.

librdkafka joins the next generation by itself, and with cooperative members it may do so while the application has not yet been
told that its partitions are lost: a topic that vanishes from the metadata and comes back is enough. Another member has them then,
and the group's coordinator takes our offsets all the same, since both our id and our generation are the present ones. So a
generation counts from the moment on at which nothing that was told before it is still on its way to us.

The metadata of a group is bytes that librdkafka does not explain. They are the same as long as member and generation are.
"""

from __future__ import annotations

import struct
from typing import Final

_FORM: Final = b"CGMDv2:"
_GENERATION: Final = struct.Struct("=i")


class Generations:
    def __init__(self) -> None:
        self._reached: bytes | None = None
        self._seen: bytes | None = None

    def begin(self, metadata: bytes) -> None:
        """We get partitions and had none: what may still wait for us comes before the first of their records."""
        self._reached = metadata

    def is_reached(self, metadata: bytes, *, is_revoking: bool) -> bool:
        """Where it is not, it is once everything that waits has been told after this.

        `is_revoking`: we are being told that partitions are revoked, which are ours until we have answered. That belongs to the
        generation behind the one that we had reached. In a later one they may be another member's already.
        """
        self._seen = metadata
        return metadata == self._reached or (is_revoking and self._is_next(metadata))

    def all_is_told(self) -> None:
        """Nothing waits for us at this moment."""
        if self._seen is not None:
            self._reached = self._seen

    def _is_next(self, metadata: bytes) -> bool:
        reached = None if self._reached is None else generation(self._reached)
        return reached is not None and generation(metadata) == reached + 1


def generation(metadata: bytes) -> int | None:
    """None: librdkafka writes it in another form than the one we know."""
    if not metadata.startswith(_FORM) or len(metadata) < len(_FORM) + _GENERATION.size:
        return None
    number: int = _GENERATION.unpack_from(metadata, len(_FORM))[0]
    return number
