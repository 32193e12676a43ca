"""Is a slice in memory, or would sending it wait for the disk?

sendfile from a page that is not cached blocks the whole broker. So a slice is probed first: one byte here and there is read with
RWF_NOWAIT, which refuses instead of waiting (about 0.6 µs a probe). A cold slice is read by a thread, and sent after.
"""

import os
from collections.abc import Sequence
from typing import Any, Final

PROBE_EVERY_BYTES: Final = 256 * 1024
WARM_CHUNK_BYTES: Final = 1024 * 1024

_probe_byte = [bytearray(1)]


def is_cold(part: Any) -> bool:
    end = part.position + part.size_bytes
    try:
        fd = part.file.fileno()
        for position in range(part.position, end, PROBE_EVERY_BYTES):
            os.preadv(fd, _probe_byte, position, os.RWF_NOWAIT)
        os.preadv(fd, _probe_byte, end - 1, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system that cannot tell, or a file in memory: send, and wait if need be
    return False


def warm(parts: Sequence[Any]) -> list[OSError | None]:
    """Read the slices into the page cache; runs in a thread. What went wrong with each of them."""
    return [_warm(part) for part in parts]


def _warm(part: Any) -> OSError | None:
    end = part.position + part.size_bytes
    try:
        for position in range(part.position, end, WARM_CHUNK_BYTES):
            part.file.read_at(position, min(WARM_CHUNK_BYTES, end - position))
    except OSError as error:
        return error
    return None
