"""Reading only what is in memory: how the event loop looks into files without ever waiting for a device.

    try:
        with memory_only:
            found = log.read(offset, max_bytes)
    except NotInMemory as cold:
        await pools.reads.run(cold.load)      # in a thread; then look again

Within `memory_only` a read of a page that is not in the page cache raises NotInMemory instead of waiting (RWF_NOWAIT, about
0.6 µs). It holds for the calling thread and for reads alone; whoever runs within it must leave nothing half done when it is
raised. Where a file system cannot tell, a read waits.
"""

import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from penstock.runtime.files import DiskFile

Found = TypeVar("Found")


class NotInMemory(Exception):
    """These bytes of a file would have to come from the device."""

    def __init__(self, file: "DiskFile", position: int, size_bytes: int) -> None:
        super().__init__(file, position, size_bytes)
        self.file = file
        self.position = position
        self.size_bytes = size_bytes

    def load(self) -> None:
        """Into the page cache; waits for the device."""
        self.file.load(self.position, self.size_bytes)

    __call__ = load


class _MemoryOnly(threading.local):
    """Not to be nested."""

    is_on = False

    def __enter__(self) -> None:
        self.is_on = True

    def __exit__(self, *_: object) -> None:
        self.is_on = False


memory_only = _MemoryOnly()


def in_steps(look: Callable[[], Found]) -> Generator[NotInMemory, None, Found]:
    """What `look` finds. Where it stops with what is missing, that is to be called, by a thread; then it looks again."""
    while True:
        try:
            with memory_only:
                return look()
        except NotInMemory as cold:
            missing = cold
        yield missing
