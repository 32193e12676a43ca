"""The disk port: everything the storage asks of a file system, and the real one.

A fake disk (one that fails on demand, or forgets what was not synced) implements the same two protocols.
Every fault is an OSError; what it means is the caller's business.
"""

import errno
import fcntl
import os
from functools import cache
from typing import Protocol

from penstock.runtime.page_cache import NotInMemory, memory_only

Bytes = bytes | bytearray | memoryview


class DiskFile(Protocol):
    """An open file that grows at its end.

    It stays readable after it was renamed or deleted, until the last reference goes.
    """

    size: int

    def append(self, data: Bytes) -> None:
        """All of data at the end, or OSError and the file as it was."""

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file. NotInMemory within `page_cache.memory_only`."""

    def is_cold(self, position: int, size: int) -> bool:
        """Whether some of it would have to come from the device; probed here and there, so not for certain."""

    def load(self, position: int, size: int) -> None:
        """Into memory, without giving it to anybody; waits for the device."""

    def prefetch(self, position: int, size: int) -> None:
        """Have it brought into memory, without waiting for it."""

    def truncate(self, size: int) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...
    def fileno(self) -> int: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> DiskFile: ...
    def read(self, path: str) -> bytes: ...
    def write(self, path: str, data: Bytes, *, sync: bool = False) -> None:
        """The file holds exactly data. Not atomic: write aside and `replace` where that matters."""

    def replace(self, source: str, target: str) -> None: ...
    def delete(self, path: str) -> None:
        """Gone afterwards; no error when it was not there."""

    def delete_tree(self, path: str) -> None: ...
    def make_directory(self, path: str) -> None:
        """With its parents; no error when it is there."""

    def list_files(self, path: str) -> list[tuple[str, int]]:
        """(name, size in bytes) of each plain file in a directory, unordered."""

    def list_directories(self, path: str) -> list[str]: ...
    def exists(self, path: str) -> bool: ...
    def size(self, path: str) -> int: ...
    def sync_file(self, path: str) -> None: ...
    def sync_directory(self, path: str) -> None: ...
    def lock(self, path: str) -> DiskFile:
        """An exclusive lock, held until the file is closed; BlockingIOError when somebody else has it."""


PROBE_EVERY_BYTES = 256 * 1024
_READ_BYTES = 1024 * 1024
_probe_byte = [bytearray(1)]

_write = os.write
_pread = os.pread


@cache
def _nowhere() -> int:
    """A file that swallows everything."""
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


class OsFile:
    __slots__ = ("_fd", "_is_torn", "size")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._is_torn = False  # a part of a failed append could not be taken off again
        self.size = os.fstat(fd).st_size

    def append(self, data: Bytes) -> None:
        length = len(data)
        if self._is_torn:
            self.truncate(self.size)
        try:
            written = _write(self._fd, data)
            if written != length:
                self._append_rest(memoryview(data)[written:])
        except OSError:
            self._is_torn = True
            self.truncate(self.size)
            raise
        self.size += length

    def _append_rest(self, rest: memoryview) -> None:
        while rest:
            rest = rest[_write(self._fd, rest) :]

    def read_at(self, position: int, size: int) -> bytes:
        if memory_only.is_on:
            return self._read_cached(position, size)
        data = _pread(self._fd, size, position)
        while len(data) < size:
            more = _pread(self._fd, size - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def _read_cached(self, position: int, size: int) -> bytes:
        size = max(min(size, self.size - position), 0)
        data = bytearray(size)
        try:
            found = os.preadv(self._fd, [data], position, os.RWF_NOWAIT) if size else 0
        except BlockingIOError:
            found = -1
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            return _pread(self._fd, size, position)
        if found < size:
            raise NotInMemory(self, position, size)
        return bytes(data)

    def is_cold(self, position: int, size: int) -> bool:
        end = position + size
        try:
            for at in range(position, end, PROBE_EVERY_BYTES):
                os.preadv(self._fd, _probe_byte, at, os.RWF_NOWAIT)
            os.preadv(self._fd, _probe_byte, end - 1, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False  # a file system that cannot tell: read, and wait if need be
        return False

    def load(self, position: int, size: int) -> None:
        end = min(position + size, self.size)
        while position < end:  # nothing is copied, and no memory of ours is touched
            sent = os.sendfile(_nowhere(), self._fd, position, end - position)
            if sent == 0:
                return
            position += sent

    def prefetch(self, position: int, size: int) -> None:
        os.posix_fadvise(self._fd, position, size, os.POSIX_FADV_WILLNEED)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        self.size = size
        self._is_torn = False

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        # A fetch may still be sending from a file whose segment is gone: the last reference closes it, nobody
        # else.
        self.close()


class OsDisk:
    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OsFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OsFile(os.open(path, flags, 0o644))

    def read(self, path: str) -> bytes:
        if memory_only.is_on:
            file = self.open(path)
            return file.read_at(0, file.size)
        # By hand: a start reads three small files of every partition, and a file object costs as much again.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            data = os.read(fd, size + 1)
            if len(data) != size:
                while more := os.read(fd, _READ_BYTES):
                    data += more
            return data
        finally:
            os.close(fd)

    def write(self, path: str, data: Bytes, *, sync: bool = False) -> None:
        with open(path, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            if sync:
                os.fsync(file.fileno())

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def delete(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def delete_tree(self, path: str) -> None:
        for root, directories, files in os.walk(path, topdown=False):
            for name in files:
                self.delete(os.path.join(root, name))
            for name in directories:
                os.rmdir(os.path.join(root, name))
        try:
            os.rmdir(path)
        except FileNotFoundError:
            pass

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def list_files(self, path: str) -> list[tuple[str, int]]:
        with os.scandir(path) as entries:
            return [(entry.name, entry.stat().st_size) for entry in entries if entry.is_file()]

    def list_directories(self, path: str) -> list[str]:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def sync_file(self, path: str) -> None:
        self._sync(path, os.O_RDONLY)

    def sync_directory(self, path: str) -> None:
        self._sync(path, os.O_RDONLY | os.O_DIRECTORY)

    def _sync(self, path: str, flags: int) -> None:
        fd = os.open(path, flags | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> OsFile:
        file = self.open(path, create=True)
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Apache Kafka takes a lock of the other kind, which `flock` does not see.
            fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise
        return file


def write_atomically(disk: Disk, path: str, data: Bytes, *, sync: bool = False) -> None:
    """A reader, also one after a crash of the process, sees the old content or the new, never half."""
    aside = path + ".tmp"
    disk.write(aside, data, sync=sync)
    disk.replace(aside, path)
