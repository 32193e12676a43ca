"""A disk in memory that forgets what was not synced, fails when told to, and can lose its power at any operation.

    disk = MemoryDisk()
    log = Log.open(disk, "/data/orders-0", LogOptions(), clock)
    ...
    after = disk.crash()                      # power failure: only what was synced
    after = disk.crash(keep=Random(7))        # some of the rest as well, torn; a failed test prints its seed
    after = disk.kill()                       # the process died, the machine did not: everything is there

    disk.stop_after(12)                       # PowerCut at the 13th change from here; try every number
    disk.fail("append", errno.ENOSPC, path="*/orders-0/*.log", skip=2, times=1)

The model, which is as harsh as POSIX allows: the bytes of a file last from its `sync` on, page by page before that in
any order; its name lasts from the `sync_directory` of its directory on, and so does a directory's name in its parent.
What a file was truncated to, or overwritten with, may come undone until it is synced. With `ordered`, changes of names
are kept in the order in which they were made, as every journaling file system does.

Promised: the same calls and the same seed give the same disk. Not promised: speed with large files, `fileno`.
"""

import errno
import os
from collections.abc import Callable
from fnmatch import fnmatch
from random import Random
from threading import RLock
from typing import Literal, NamedTuple

from penstock.runtime.files import Bytes
from penstock.runtime.page_cache import memory_only
from penstock.testing.disk_file import MemoryFile
from penstock.testing.disk_state import (
    Contents,
    Directory,
    NameChange,
    Node,
    apply,
    copy_tree,
    torn_bytes,
)
from penstock.testing.loop_law import waits

PAGE_BYTES = 4096

Keep = Literal["nothing", "everything"] | Random


class PowerCut(BaseException):
    """The machine has no power: the operation did not happen (or half of it, for a write), and none will any more."""


class Operation(NamedTuple):
    """One call that reached the disk, for `MemoryDisk.trace`."""

    kind: str
    path: str
    size_bytes: int = 0


class _Fault:
    __slots__ = ("error", "kind", "path", "skip", "times", "written_bytes")

    def __init__(
        self, kind: str, error: int, *, path: str, skip: int, times: int | None, written_bytes: int
    ) -> None:
        self.kind = kind
        self.error = error
        self.path = path
        self.skip = skip
        self.times = times
        self.written_bytes = written_bytes


class MemoryDisk:
    """See the module. `changes` counts what changed or synced something; a list in `trace` gets every operation."""

    def __init__(self, *, page_bytes: int = PAGE_BYTES) -> None:
        self.changes = 0
        self.trace: list[Operation] | None = None
        self.on_power_cut: Callable[[], None] = lambda: None
        """Called when the power goes, before PowerCut is raised."""
        self.mutex = RLock()  # flushes and removals run in threads
        self._page_bytes = page_bytes
        self._root = Directory()
        self._pending: list[NameChange] = []  # changes of names that are not on the device, oldest first
        self._faults: list[_Fault] = []
        self._changes_left = -1  # until the power goes; -1: it stays
        self._tears = False
        self._has_power = True

    # --- what can go wrong

    def stop_after(self, changes: int, *, tear: bool = False) -> None:
        """Let as many changes happen, then raise PowerCut, for good. `tear`: half of a write that is cut arrives."""
        self._changes_left = changes
        self._tears = tear

    def fail(
        self,
        kind: str,
        error: int = errno.EIO,
        *,
        path: str = "*",
        skip: int = 0,
        times: int | None = None,
        written_bytes: int = 0,
    ) -> None:
        """Raise OSError(error) for operations of a kind (one of `Operation.kind`, or a pattern of it) on paths like this.

        The first `skip` of them go well, then `times` fail (None: all). `written_bytes`: how much of a failing
        `write` arrives all the same; a failing `append` leaves the file as it was, as the port promises.
        """
        self._faults.append(
            _Fault(kind, error, path=path, skip=skip, times=times, written_bytes=written_bytes)
        )

    def cool(self) -> None:
        """As after a start of the machine, or when memory was short: nothing of any file is in memory."""
        with self.mutex:
            _cool(self._root)

    def heal(self) -> None:
        """No more faults."""
        self._faults.clear()

    def kill(self) -> "MemoryDisk":
        """The disk as the next process finds it when this one was killed: everything is there, no lock is held."""
        return self._copy(lambda contents: bytes(contents.data), list(self._pending), durable_only=False)

    def crash(self, *, keep: Keep = "nothing", ordered: bool = True) -> "MemoryDisk":
        """The disk after a power failure; this one can go on, to be crashed in another way.

        keep: what the device has of that which was not synced: "nothing", "everything", or with a Random some pages
        and some changes of names. Without `ordered` these may be any, not only the first ones.
        """
        if keep == "everything":
            return self._copy(lambda contents: bytes(contents.data), list(self._pending), durable_only=True)
        if keep == "nothing":
            return self._copy(lambda contents: contents.synced, [], durable_only=True)
        assert isinstance(keep, Random)
        random = keep
        if ordered:
            kept = self._pending[: random.randint(0, len(self._pending))]
        else:
            kept = [change for change in self._pending if random.random() < 0.5]
        return self._copy(
            lambda contents: torn_bytes(contents, random, self._page_bytes), kept, durable_only=True
        )

    # --- the port

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        with self.mutex:
            self.look("open", path)
            node = self._find(path)
            if node is None:
                if not create:
                    raise FileNotFoundError(errno.ENOENT, "No such file", path)
                node = self._create(path)
            return MemoryFile(self, path, _file(node, path))

    def read(self, path: str) -> bytes:
        if memory_only.is_on:
            file = self.open(path)
            return file.read_at(0, file.size)
        contents = self._contents(path)
        self.load("cold read", path, contents)
        data = bytes(contents.data)
        self.look("read", path, len(data))
        return data

    def write(self, path: str, data: Bytes, *, sync: bool = False) -> None:
        with self.mutex:
            node = self._find(path)
            contents = self._create(path) if node is None else _file(node, path)
            contents_before = contents.data
            contents.data = bytearray()
            try:
                self.change("write", path, data, contents)
            except PowerCut:
                if not self._tears:
                    contents.data = contents_before
                raise
            contents.data += data
            if sync:
                self.change("sync", path)
                contents.synced = bytes(contents.data)

    def replace(self, source: str, target: str) -> None:
        with self.mutex:
            self.change("replace", source)
            from_directory, from_name = self._parent(source)
            to_directory, to_name = self._parent(target)
            node = from_directory.entries.get(from_name)
            if node is None:
                raise FileNotFoundError(errno.ENOENT, "No such file", source)
            there = to_directory.entries.get(to_name)
            if isinstance(there, Directory) and there.entries:
                raise OSError(errno.ENOTEMPTY, "Directory not empty", target)
            self._rename(((from_directory, from_name, None), (to_directory, to_name, node)))

    def delete(self, path: str) -> None:
        with self.mutex:
            try:
                directory, name = self._parent(path)
            except FileNotFoundError:
                return
            node = directory.entries.get(name)
            if node is not None:
                _file(node, path)
                self.change("delete", path)
                self._rename(((directory, name, None),))

    def delete_tree(self, path: str) -> None:
        with self.mutex:
            node = self._find(path)
            if not isinstance(node, Directory):
                return
            for name, child in list(node.entries.items()):
                if isinstance(child, Directory):
                    self.delete_tree(f"{path}/{name}")
                else:
                    self.delete(f"{path}/{name}")
            directory, name = self._parent(path)
            self.change("delete", path)
            self._rename(((directory, name, None),))

    def make_directory(self, path: str) -> None:
        with self.mutex:
            directory = self._root
            for name in _names(path):
                node = directory.entries.get(name)
                if node is None:
                    self.change("make_directory", path)
                    node = Directory()
                    self._rename(((directory, name, node),))
                if not isinstance(node, Directory):
                    raise FileExistsError(errno.EEXIST, "File exists", path)
                directory = node

    def list_files(self, path: str) -> list[tuple[str, int]]:
        self.look("list", path)
        entries = list(self._directory(path).entries.items())
        return [(name, len(node.data)) for name, node in entries if isinstance(node, Contents)]

    def list_directories(self, path: str) -> list[str]:
        self.look("list", path)
        entries = list(self._directory(path).entries.items())
        return [name for name, node in entries if isinstance(node, Directory)]

    def exists(self, path: str) -> bool:
        self.look("stat", path)
        return self._find(path) is not None

    def size(self, path: str) -> int:
        self.look("stat", path)
        return len(self._contents(path).data)

    def sync_file(self, path: str) -> None:
        with self.mutex:
            contents = self._contents(path)
            self.change("sync", path)
            contents.synced = bytes(contents.data)

    def sync_directory(self, path: str) -> None:
        with self.mutex:
            directory = self._directory(path)
            self.change("sync_directory", path)
            later = []
            for change in self._pending:
                if any(where is directory for where, _, _ in change.links):
                    apply(change)
                else:
                    later.append(change)
            self._pending = later

    def lock(self, path: str) -> MemoryFile:
        with self.mutex:
            file = self.open(path, create=True)
            contents = self._contents(path)
            if contents.is_locked:
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable", path)
            contents.is_locked = True
            file.close()
            return MemoryFile(self, path, contents, holds_lock=True)

    # --- inside

    def load(self, kind: str, path: str, contents: Contents) -> None:
        if contents.cold_bytes:
            waits(kind, path)
            contents.cold_bytes = 0

    def look(self, kind: str, path: str, size_bytes: int = 0) -> None:
        """Before anything that changes nothing."""
        if not self._has_power:
            raise PowerCut
        if self.trace is not None:
            self.trace.append(Operation(kind, path, size_bytes))
        if self._faults:
            self._raise_fault(kind, path, b"", None)

    def change(self, kind: str, path: str, data: Bytes = b"", contents: Contents | None = None) -> None:
        """Before anything that changes or syncs something. data: what is about to be added to the contents."""
        if not self._has_power:
            raise PowerCut
        if kind.startswith("sync"):
            waits(kind, path)
        if self._changes_left == 0:
            self._has_power = False
            if self._tears and contents is not None:
                contents.data += memoryview(data)[: len(data) // 2]
            self.on_power_cut()
            raise PowerCut
        self._changes_left -= 1
        self.changes += 1
        if self.trace is not None:
            self.trace.append(Operation(kind, path, len(data)))
        if self._faults:
            self._raise_fault(kind, path, data, contents)

    def _raise_fault(self, kind: str, path: str, data: Bytes, contents: Contents | None) -> None:
        for fault in self._faults:
            if fault.times == 0 or not fnmatch(kind, fault.kind) or not fnmatch(path, fault.path):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            if fault.times is not None:
                fault.times -= 1
            if kind == "write" and contents is not None:
                contents.data += memoryview(data)[: fault.written_bytes]
            raise OSError(fault.error, os.strerror(fault.error), path)

    def _create(self, path: str) -> Contents:
        directory, name = self._parent(path)
        self.change("create", path)
        contents = Contents()
        self._rename(((directory, name, contents),))
        return contents

    def _rename(self, links: tuple[tuple[Directory, str, Node | None], ...]) -> None:
        for directory, name, node in links:
            if node is None:
                directory.entries.pop(name, None)
            else:
                directory.entries[name] = node
        self._pending.append(NameChange(links))

    def _find(self, path: str) -> Node | None:
        node: Node | None = self._root
        for name in _names(path):
            if not isinstance(node, Directory):
                return None
            node = node.entries.get(name)
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        *parents, name = _names(path)
        return self._directory("/".join(parents)), name

    def _directory(self, path: str) -> Directory:
        node = self._find(path)
        if not isinstance(node, Directory):
            raise FileNotFoundError(errno.ENOENT, "No such directory", path)
        return node

    def _contents(self, path: str) -> Contents:
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        return _file(node, path)

    def _copy(
        self, bytes_of: Callable[[Contents], bytes], kept: list[NameChange], *, durable_only: bool
    ) -> "MemoryDisk":
        with self.mutex:
            copy = MemoryDisk(page_bytes=self._page_bytes)
            copy._root, copy._pending = copy_tree(self._root, kept, bytes_of, durable_only=durable_only)
            return copy


def _cool(directory: Directory) -> None:
    for node in directory.entries.values():
        if isinstance(node, Directory):
            _cool(node)
        else:
            node.cold_bytes = len(node.data)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _file(node: Node, path: str) -> Contents:
    if isinstance(node, Directory):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
    return node
