"""A login spoken byte by byte, for what no client would say."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from penstock.testing.processes import free_port

AUTHENTICATION_FAILED = 58


class Answer(NamedTuple):
    code: int
    message: str
    token: bytes
    lifetime_ms: int


def frame(api_key: int, version: int, body: bytes = b"") -> bytes:
    content = struct.pack(">hhih", api_key, version, 1, 1) + b"x" + body
    return struct.pack(">i", len(content)) + content


METADATA = frame(3, 1, b"\xff\xff\xff\xff")


def sized(token: bytes) -> bytes:
    return struct.pack(">i", len(token)) + token


class SaslTalk:
    """Use as a context. It has said its mechanism when it is made."""

    def __init__(self, port: int, mechanism: str, *, version: int = 1) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.shake(mechanism, version=version)

    def shake(self, mechanism: str, *, version: int = 1) -> int:
        name = mechanism.encode()
        self.send(frame(17, version, struct.pack(">h", len(name)) + name))
        code: int = struct.unpack_from(">h", self.receive(), 4)[0]
        return code

    def send(self, text: bytes) -> None:
        self._socket.sendall(text)

    def receive(self) -> bytes:
        """The next frame; nothing where the broker closed the connection."""
        size = self._read(4)
        return self._read(struct.unpack(">i", size)[0]) if size else b""

    def _read(self, size: int) -> bytes:
        text = b""
        while len(text) < size:
            try:
                chunk = self._socket.recv(size - len(text))
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                return b""
            text += chunk
        return text

    def say(self, token: bytes) -> Answer:
        self.send(frame(36, 1, sized(token)))
        return self.answer()

    def answer(self) -> Answer:
        text = self.receive()
        if not text:
            raise ConnectionResetError("the broker closed the connection")
        code, size = struct.unpack_from(">hh", text, 4)
        message = text[8 : 8 + max(size, 0)].decode()
        position = 8 + max(size, 0)
        (length,) = struct.unpack_from(">i", text, position)
        position += 4
        token = text[position : position + max(length, 0)]
        return Answer(code, message, token, struct.unpack(">q", text[-8:])[0])

    def is_served(self) -> bool:
        try:
            self.send(METADATA)
        except OSError:
            return False
        return bool(self.receive())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._socket.close()


def refusal_at_start(directory: Path, properties: Mapping[str, str]) -> str:
    """What a broker with a login on its listener says that does not start."""
    directory.mkdir(parents=True, exist_ok=True)
    given = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{free_port()}",
        "log.dirs": str(directory / "data"),
        **properties,
    }
    file = directory / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "broker", "--config", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]
