"""The requests that the store makes of ZooKeeper, and what it answers to them. `zookeeper_wire` has the form of their parts.

No request sets a watch of its own: those tell once and of one node only. `AddWatch` tells of all changes below a node.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from penstock.stores.zookeeper_wire import INT, Acl, Malformed, Reader, Refused, Stat, buffer, string

EPHEMERAL: Final = 1
SEQUENCE: Final = 2
PERSISTENT_RECURSIVE: Final = 1
ANY_VERSION: Final = -1
ERROR_RESULT: Final = -1
"""The type of an op of a multi that failed, or was not done because another failed."""

_OP = struct.Struct(">i?i")
_NO_WATCH = b"\0"


def _acls(acl: Sequence[Acl]) -> bytes:
    entries = (INT.pack(each.permissions) + string(each.scheme) + string(each.identity) for each in acl)
    return INT.pack(len(acl)) + b"".join(entries)


@dataclass(frozen=True, slots=True)
class Create:
    TYPE: ClassVar[int] = 1
    path: str
    data: bytes
    acl: Sequence[Acl]
    flags: int

    def body(self) -> bytes:
        return string(self.path) + buffer(self.data) + _acls(self.acl) + INT.pack(self.flags)

    def answer(self, reader: Reader) -> str:
        """The path that was made."""
        return reader.string()


@dataclass(frozen=True, slots=True)
class Delete:
    TYPE: ClassVar[int] = 2
    path: str
    version: int

    def body(self) -> bytes:
        return string(self.path) + INT.pack(self.version)

    def answer(self, reader: Reader) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Check:
    """Of a multi: fails it when the node is missing or at another version."""

    TYPE: ClassVar[int] = 13
    path: str
    version: int

    def body(self) -> bytes:
        return string(self.path) + INT.pack(self.version)

    def answer(self, reader: Reader) -> None:
        return None


@dataclass(frozen=True, slots=True)
class SetData:
    TYPE: ClassVar[int] = 5
    path: str
    data: bytes
    version: int

    def body(self) -> bytes:
        return string(self.path) + buffer(self.data) + INT.pack(self.version)

    def answer(self, reader: Reader) -> int:
        """The new version."""
        return reader.stat().version


@dataclass(frozen=True, slots=True)
class SetAcl:
    """In place of the one that the node had, whichever version that was."""

    TYPE: ClassVar[int] = 7
    path: str
    acl: Sequence[Acl]

    def body(self) -> bytes:
        return string(self.path) + _acls(self.acl) + INT.pack(ANY_VERSION)

    def answer(self, reader: Reader) -> None:
        reader.stat()


@dataclass(frozen=True, slots=True)
class Exists:
    TYPE: ClassVar[int] = 3
    path: str

    def body(self) -> bytes:
        return string(self.path) + _NO_WATCH

    def answer(self, reader: Reader) -> Stat:
        return reader.stat()


@dataclass(frozen=True, slots=True)
class GetData:
    TYPE: ClassVar[int] = 4
    path: str

    def body(self) -> bytes:
        return string(self.path) + _NO_WATCH

    def answer(self, reader: Reader) -> tuple[bytes, Stat]:
        return reader.buffer() or b"", reader.stat()


@dataclass(frozen=True, slots=True)
class GetChildren:
    TYPE: ClassVar[int] = 8
    path: str

    def body(self) -> bytes:
        return string(self.path) + _NO_WATCH

    def answer(self, reader: Reader) -> list[str]:
        return reader.strings()


@dataclass(frozen=True, slots=True)
class AddWatch:
    """Tell of every change at or below the path until the connection ends; since ZooKeeper 3.6."""

    TYPE: ClassVar[int] = 106
    path: str

    def body(self) -> bytes:
        return string(self.path) + INT.pack(PERSISTENT_RECURSIVE)

    def answer(self, reader: Reader) -> None:
        return None


Change = Create | Delete | Check | SetData
Read = GetData | GetChildren


@dataclass(frozen=True, slots=True)
class Multi:
    """All of these changes, or none."""

    TYPE: ClassVar[int] = 14
    changes: Sequence[Change]

    def body(self) -> bytes:
        return _ops(self.changes)

    def answer(self, reader: Reader) -> list[Any]:
        """What each answers, or Refused."""
        return _results(reader, self.changes)


class Found(NamedTuple):
    data: bytes
    stat: Stat
    children: list[str]


@dataclass(frozen=True, slots=True)
class ReadMany:
    """Data and children of many nodes in one request; since ZooKeeper 3.6."""

    TYPE: ClassVar[int] = 22
    paths: Sequence[str]

    def body(self) -> bytes:
        return _ops(self._reads())

    def answer(self, reader: Reader) -> list[Found | Refused]:
        """Each node as it is, or why it cannot be read."""
        results = _results(reader, self._reads())
        found: list[Found | Refused] = []
        for node, children in zip(results[::2], results[1::2], strict=True):
            if isinstance(node, Refused) or isinstance(children, Refused):
                found.append(node if isinstance(node, Refused) else children)
            else:
                data, stat = node
                found.append(Found(data, stat, children))
        return found

    def _reads(self) -> list[Read]:
        return [read for path in self.paths for read in (GetData(path), GetChildren(path))]


def _ops(ops: Sequence[Change | Read]) -> bytes:
    parts = [part for op in ops for part in (_OP.pack(op.TYPE, False, -1), op.body())]
    return b"".join((*parts, _OP.pack(-1, True, -1)))


def _results(reader: Reader, ops: Sequence[Change | Read]) -> list[Any]:
    results: list[Any] = []
    while True:
        kind, is_done, _ = reader.unpack(_OP)
        if is_done:
            break
        if len(results) == len(ops):
            raise Malformed("an answer has more results than its request has ops")
        results.append(
            Refused(reader.integer()) if kind == ERROR_RESULT else ops[len(results)].answer(reader)
        )
    if len(results) < len(ops):
        raise Malformed("an answer has fewer results than its request has ops")
    return results
