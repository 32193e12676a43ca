"""ZooKeeper's wire format, as far as the store speaks it: values to bytes and back, and the frames around messages.

    a connection opens with   length i32 | protocol i32 | last zxid i64 | timeout i32 | session i64 | password | read only u8
    and is answered with      length i32 | protocol i32 | timeout i32 | session i64 | password | read only u8
    a request                 length i32 | xid i32 | type i32 | body
    an answer                 length i32 | xid i32 | zxid i64 | error i32 | body, when there is no error
    a watch's event           as an answer with xid -1: event i32 | state i32 | path

Strings and buffers are a length (i32, -1 for none) and their bytes; a vector is a count (i32) and its members. Answers come in
the order of their requests, events between them at the moment of the change: whoever reads after an event sees what it told of.

Types of requests and codes of errors are ZooKeeper's (`zookeeper.jute`, `ZooDefs.OpCode`, `KeeperException.Code`).
"""

import struct
from enum import IntEnum
from typing import Any, ClassVar, Final, NamedTuple, Protocol

WATCH_XID: Final = -1
PING_XID: Final = -2
AUTH_XID: Final = -4
PING_TYPE: Final = 11
AUTH_TYPE: Final = 100
CLOSE_TYPE: Final = -11
PASSWORD_BYTES: Final = 16

INT = struct.Struct(">i")
_HEADER = struct.Struct(">iii")
_ANSWER = struct.Struct(">iqi")
_CONNECT = struct.Struct(">iqiq")
_CONNECTED = struct.Struct(">iiq")
_STAT = struct.Struct(">qqqqiiiqiiq")
_FALSE = b"\0"


class Code(IntEnum):
    """Why ZooKeeper refuses; others are told by their numbers."""

    ROLLED_BACK = 0  # of an op of a multi in which another failed
    RUNTIME_INCONSISTENCY = -2  # the same, of one behind it
    UNIMPLEMENTED = -6
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114
    AUTH_FAILED = -115
    SESSION_MOVED = -118


_NAMES: Final[dict[int, str]] = {code.value: code.name for code in Code}


class Malformed(Exception):
    """These bytes are not of a ZooKeeper server."""


class Refused(Exception):
    """The server's answer to a request is an error."""

    def __init__(self, code: int) -> None:
        super().__init__(_NAMES.get(code, f"error {code}"))
        self.code = code


class Stat(NamedTuple):
    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_bytes: int
    children: int
    pzxid: int


class Acl(NamedTuple):
    permissions: int
    scheme: str
    identity: str


EVERYTHING: Final = 31
READ: Final = 1
ANYONE_MAY_ALL: Final = Acl(EVERYTHING, "world", "anyone")
ANYONE_MAY_READ: Final = Acl(READ, "world", "anyone")
CREATOR_MAY_ALL: Final = Acl(EVERYTHING, "auth", "")


class Reader:
    """Takes values from an answer, one behind the other; Malformed when they are not there."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        try:
            values = form.unpack_from(self._data, self._at)
        except struct.error:
            raise Malformed("an answer ends too early") from None
        self._at += form.size
        return values

    def integer(self) -> int:
        value: int = self.unpack(INT)[0]
        return value

    def buffer(self) -> bytes | None:
        size = self.integer()
        if size < 0:
            return None
        end = self._at + size
        if end > len(self._data):
            raise Malformed("an answer ends too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def string(self) -> str:
        try:
            return (self.buffer() or b"").decode()
        except UnicodeDecodeError:
            raise Malformed("a string is not UTF-8") from None

    def strings(self) -> list[str]:
        return [self.string() for _ in range(max(self.integer(), 0))]

    def stat(self) -> Stat:
        return Stat._make(self.unpack(_STAT))


def buffer(data: bytes | None) -> bytes:
    return INT.pack(-1) if data is None else INT.pack(len(data)) + data


def string(text: str) -> bytes:
    return buffer(text.encode())


class Request(Protocol):
    TYPE: ClassVar[int]

    def body(self) -> bytes: ...
    def answer(self, reader: Reader) -> Any:
        """What the server says to it."""


# Frames: without their lengths where they are read, with them where they are written.


class Connected(NamedTuple):
    timeout_ms: int
    session_id: int
    """0: the session that was asked for has expired."""
    password: bytes


class Answer(NamedTuple):
    xid: int
    zxid: int
    code: int


class Event(NamedTuple):
    kind: int
    path: str


def connect_frame(*, last_zxid: int, timeout_ms: int, session_id: int, password: bytes) -> bytes:
    body = _CONNECT.pack(0, last_zxid, timeout_ms, session_id) + buffer(password) + _FALSE
    return buffer(body)


def read_connected(frame: bytes) -> Connected:
    """A server before 3.4 does not say whether it is read only; we do not ask."""
    reader = Reader(frame)
    _, timeout_ms, session_id = reader.unpack(_CONNECTED)
    password = reader.buffer() or b""
    return Connected(timeout_ms, session_id if timeout_ms > 0 else 0, password)


def request_frame(xid: int, request: Request) -> bytes:
    return frame(xid, request.TYPE, request.body())


def auth_frame(scheme: str, credentials: bytes) -> bytes:
    return frame(AUTH_XID, AUTH_TYPE, INT.pack(0) + string(scheme) + buffer(credentials))


def frame(xid: int, kind: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(8 + len(body), xid, kind) + body


def read_answer(reader: Reader) -> Answer:
    return Answer._make(reader.unpack(_ANSWER))


def read_event(reader: Reader) -> Event:
    kind, _ = reader.integer(), reader.integer()
    return Event(kind, reader.string())
