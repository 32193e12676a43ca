"""Messages between the driver and its tasks: four bytes of length, then JSON. Nothing that comes in is ever unpickled.

The driver begins with a nonce. The task answers with its HMAC under the job's secret, so the secret never crosses the network.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
import struct
import threading
from typing import Any, Final

LENGTH: Final = struct.Struct(">I")
MAX_BYTES: Final = 64 * 1024 * 1024
RECEIVE_BYTES: Final = 64 * 1024
SEND_TIMEOUT_S: Final = 10.0

Message = dict[str, Any]


def new_secret() -> str:
    return secrets.token_hex(32)


def proof(secret: str, nonce: str, *, job: str, task: int) -> str:
    return hmac.new(secret.encode(), f"{nonce} {job} {task}".encode(), hashlib.sha256).hexdigest()


def is_proof(given: object, secret: str, nonce: str, *, job: str, task: int) -> bool:
    return isinstance(given, str) and hmac.compare_digest(given, proof(secret, nonce, job=job, task=task))


def packed(message: Message) -> bytes:
    """ValueError for one that is too long or no JSON."""
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    if len(body) > MAX_BYTES:
        raise ValueError(f"a message of {len(body)} bytes is longer than {MAX_BYTES}")
    return LENGTH.pack(len(body)) + body


class Inbox:
    """Bytes as they come, messages as they are complete. ValueError for what is none."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._waiting = bytearray()

    def take(self, data: bytes) -> list[Message]:
        self._waiting += data
        found: list[Message] = []
        while len(self._waiting) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._waiting)
            if size > self.max_bytes:
                raise ValueError(f"a message of {size} bytes is longer than {self.max_bytes}")
            if len(self._waiting) < LENGTH.size + size:
                break
            try:
                message = json.loads(bytes(self._waiting[LENGTH.size : LENGTH.size + size]))
            except RecursionError:
                raise ValueError("a message is nested too deeply") from None
            if not isinstance(message, dict):
                raise ValueError("a message is an object")
            found.append(message)
            del self._waiting[: LENGTH.size + size]
        return found


class Line:
    """A connected socket. `send` may be called by several threads, `receive` by one."""

    def __init__(self, connected: socket.socket, max_bytes: int = MAX_BYTES) -> None:
        connected.settimeout(SEND_TIMEOUT_S)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connected
        self._inbox = Inbox(max_bytes)
        self._sending = threading.Lock()

    def send(self, message: Message) -> None:
        """OSError where the other side is gone."""
        data = packed(message)
        with self._sending:
            self.socket.sendall(data)

    def receive(self) -> list[Message]:
        """What one read brings, perhaps nothing. EOFError when the other side is gone; OSError, ValueError as they come."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise EOFError
        return self._inbox.take(data)

    def allow(self, max_bytes: int) -> None:
        """Once it is known who speaks, messages may be longer."""
        self._inbox.max_bytes = max_bytes

    def hang_up(self) -> None:
        """Whoever reads, on both sides, comes to the end. It is still to be closed."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        self.hang_up()
        self.socket.close()
