"""What waits to be sent on one socket: bytes, and slices of files that go out with sendfile.

sendfile takes records from the page cache to the socket: nothing is copied, and nothing counts in the broker's memory.
"""

import os
import socket
from collections import deque
from collections.abc import Iterable
from io import UnsupportedOperation
from typing import Any, Final, Protocol

SMALL_SLICE_BYTES: Final = 16 * 1024
"""Up to this size a slice is read and sent together with its header: one system call less."""
JOINED_BYTES: Final = 8 * 1024
TURN_BYTES: Final = 256 * 1024
"""Of slices, before others get their turn: a reader that takes them as fast as they come would hold up everybody. A socket
on the same machine takes them at about 1 GB/s, in this thread, so this is a quarter of a millisecond; 4 MiB doubled the p99 of
a producer beside such a reader, and gave the reader nothing."""
MAX_GATHER: Final = 512
FILE_ENDS: Final = "the file ends before the slice that was promised from it"


class Slice(Protocol):
    """A part of a file that is to be sent as it is."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def file(self) -> Any: ...


Part = Any
"""Bytes-like, or a Slice."""


class Output:
    __slots__ = ("_parts", "_socket", "_turn_bytes")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._parts: deque[Part] = deque()
        self._turn_bytes = TURN_BYTES  # that may still be sent

    def extend(self, parts: Iterable[Part]) -> None:
        self._parts.extend(parts)

    def clear(self) -> None:
        self._parts.clear()

    def send(self) -> bool:
        """Send until the output is empty (True), or the socket is full or others are to have their turn (False or
        BlockingIOError).
        """
        out = self._parts
        self._turn_bytes = TURN_BYTES
        if len(out) == 2 and self._send_small(out):
            return True
        while out:
            gathered: list[Any] = []
            size = 0
            slice_: Any = None
            while out and len(gathered) < MAX_GATHER:
                part = out[0]
                if isinstance(part, (bytes, bytearray, memoryview)):
                    gathered.append(part)
                    size += len(part)
                elif part.size_bytes <= SMALL_SLICE_BYTES:
                    data = read_slice(part)
                    gathered.append(data)
                    size += len(data)
                else:
                    slice_ = part
                    break
                out.popleft()
            if gathered:
                flags = socket.MSG_MORE if slice_ is not None else 0
                # Below this size one copy and send() are cheaper than what Python spends on a gathering sendmsg().
                if size <= JOINED_BYTES:
                    gathered = [b"".join(gathered)]
                try:
                    if len(gathered) == 1:
                        sent = self._socket.send(gathered[0], flags)
                    else:
                        sent = self._socket.sendmsg(gathered, (), flags)
                except BlockingIOError:
                    sent = 0
                if sent < size:
                    self._keep_unsent(gathered, sent)
                    return False
            if slice_ is not None and not self._send_slice(slice_):
                return False
        return True

    def _send_small(self, out: deque[Part]) -> bool:
        """A header and a small body, as nearly all replies are: in one piece, if they are bytes and the socket takes them."""
        head, body = out
        if type(head) is not bytes or (type(body) is not bytearray and type(body) is not bytes):
            return False
        size = len(head) + len(body)
        if size > JOINED_BYTES:
            return False
        whole = head + body
        sent = self._socket.send(whole)
        out.clear()
        if sent < size:
            out.append(memoryview(whole)[sent:])
            return False
        return True

    def _send_slice(self, part: Any) -> bool:
        """sendfile what the socket takes; a slice that is not through goes back to the head of the output, shortened."""
        position, remaining = part.position, part.size_bytes
        self._parts.popleft()
        try:
            source = part.file.fileno()
        except UnsupportedOperation:  # a file in memory: send what it holds
            self._parts.appendleft(read_slice(part))
            return True
        while remaining:
            try:
                if self._turn_bytes <= 0:
                    raise BlockingIOError
                sent = os.sendfile(self._socket.fileno(), source, position, min(remaining, self._turn_bytes))
            except BlockingIOError:
                self._parts.appendleft(part._replace(position=position, size_bytes=remaining))
                return False
            if sent == 0:
                raise OSError(FILE_ENDS)
            position += sent
            remaining -= sent
            self._turn_bytes -= sent
        return True

    def _keep_unsent(self, gathered: list[Any], sent: int) -> None:
        for index, part in enumerate(gathered):
            if sent < len(part):
                self._parts.extendleft(reversed([memoryview(part)[sent:], *gathered[index + 1 :]]))
                return
            sent -= len(part)


def output_of(sock: Any) -> Output:
    """Sockets that cannot take slices of files by sendfile bring a kind of their own."""
    kind: type[Output] = getattr(sock, "output", Output)
    return kind(sock)


def read_slice(part: Any) -> bytes:
    data: bytes = part.file.read_at(part.position, part.size_bytes)
    if len(data) != part.size_bytes:
        raise OSError(FILE_ENDS)
    return data
