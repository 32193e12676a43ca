"""Threads read pages that are not in memory: on the event loop such a read would delay the whole broker.

A lookup (in an index, in the headers of a segment) uses only what is in memory. If that is not enough, a thread reads the
missing pages, and the lookup is repeated. The result is a slice of a file. If it is not in memory, a thread reads it before it
is sent.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from penstock.runtime.page_cache import NotInMemory, memory_only
from penstock.runtime.pools import Pool

if TYPE_CHECKING:
    from penstock.storage.log import Log

MOST_LOADS: Final = 64
"""Of one look-up: of an index, of a page of headers, of an index again … More come only when memory is so short that pages
leave it as fast as they come."""
VERY_MANY: Final = 2**62

Found = TypeVar("Found")


async def look_up(reads: Pool, look: Callable[[], Found]) -> Found:
    """What `look` finds, which is called again for each part that had to be read first. It must change nothing before it has
    read all that it needs.
    """
    for _ in range(MOST_LOADS):
        try:
            with memory_only:
                return look()
        except NotInMemory as cold:
            await reads.run(cold.load)
    return look()


def size_between(log: "Log", from_offset: int, to_offset: int) -> int:
    """Bytes, or VERY_MANY when that cannot be said at once: whoever waits for them then looks."""
    try:
        with memory_only:
            return log.segments.size_between(from_offset=from_offset, to_offset=to_offset)
    except NotInMemory:
        return VERY_MANY


def is_cold(part: Any) -> bool:
    """Whether sending a slice would wait for the disk."""
    return bool(part.file.is_cold(part.position, part.size_bytes))


def warm(parts: Sequence[Any]) -> list[OSError | None]:
    """Read slices (or what was not in memory) into the page cache; runs in a thread. What went wrong with each of them."""
    return [_warm(part) for part in parts]


def _warm(part: Any) -> OSError | None:
    try:
        part.file.load(part.position, part.size_bytes)
    except OSError as error:
        return error
    return None
