"""An open file of a disk in memory. See `disk`."""

import io
from typing import TYPE_CHECKING

from penstock.runtime.files import Bytes
from penstock.runtime.page_cache import NotInMemory, memory_only
from penstock.testing.disk_state import Contents, resize

if TYPE_CHECKING:
    from penstock.testing.disk import MemoryDisk


class MemoryFile:
    __slots__ = ("_contents", "_disk", "_holds_lock", "_path", "size")

    def __init__(
        self, disk: "MemoryDisk", path: str, contents: Contents, *, holds_lock: bool = False
    ) -> None:
        self._disk = disk
        self._path = path
        self._contents = contents
        self._holds_lock = holds_lock
        self.size = len(contents.data)

    def append(self, data: Bytes) -> None:
        with self._disk.mutex:
            self._disk.change("append", self._path, data, self._contents)
            self._contents.data += data
        self.size += len(data)

    def read_at(self, position: int, size: int) -> bytes:
        if position < self._contents.cold_bytes:
            if memory_only.is_on:
                raise NotInMemory(self, position, size)
            self._disk.load("cold read", self._path, self._contents)
        data = bytes(memoryview(self._contents.data)[position : position + size])
        self._disk.look("read", self._path, len(data))
        return data

    def is_cold(self, position: int, size: int) -> bool:
        return position < self._contents.cold_bytes

    def load(self, position: int, size: int) -> None:
        self.read_at(position, size)

    def prefetch(self, position: int, size: int) -> None:
        self._contents.cold_bytes = 0

    def truncate(self, size: int) -> None:
        with self._disk.mutex:
            self._disk.change("truncate", self._path)
            resize(self._contents.data, size)
        self.size = size

    def sync(self) -> None:
        with self._disk.mutex:
            self._disk.change("sync", self._path)
            self._contents.synced = bytes(self._contents.data)

    def close(self) -> None:
        if self._holds_lock:
            self._holds_lock = self._contents.is_locked = False

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a file in memory has no descriptor")

    def __del__(self) -> None:
        self.close()
