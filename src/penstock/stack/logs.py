"""The logs of members: their ends, and what is added to them.

A log is read as bytes and given as whole lines; a line that is not complete yet waits for its end. A log that was cut or
taken away is read from its beginning when it is there again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.client.errors import UserError, reason
from penstock.stack.stack import Member, Stack

CHUNK_BYTES = 65_536
MAX_TAIL_BYTES = 16 * 1024 * 1024
"""More than this is not read back for the last lines, however long they are, nor at one time."""
POLL_PAUSE_S = 0.2


class LogLine(NamedTuple):
    member: Member
    text: str


def last_lines(path: Path, count: int) -> list[str]:
    """Of a log; none where there is no log yet."""
    return LogReader(path, last=count).lines(at_end=True)


class LogReader:
    """Reads a log from its last lines on, again and again."""

    def __init__(self, path: Path, *, last: int) -> None:
        self._path = path
        self._inode: int | None = None
        self._rest = b""
        self._position = self._start_of_last(last)

    def lines(self, *, at_end: bool = False) -> list[str]:
        """Those that were added since the last call. `at_end`: also one without an end."""
        try:
            with self._path.open("rb") as log:
                status = os.fstat(log.fileno())
                if status.st_ino != self._inode or status.st_size < self._position:
                    if self._inode is not None:
                        self._position, self._rest = 0, b""
                    self._inode = status.st_ino
                log.seek(self._position)
                added = log.read(MAX_TAIL_BYTES)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UserError(f"cannot read {self._path}: {reason(error)}") from None
        self._position += len(added)
        *whole, self._rest = (self._rest + added).split(b"\n")
        if at_end and self._rest:
            whole.append(self._rest)
            self._rest = b""
        return [line.decode(errors="replace") for line in whole]

    def _start_of_last(self, count: int) -> int:
        """Where the last lines begin, looked for from the end."""
        try:
            with self._path.open("rb") as log:
                at = size = log.seek(0, os.SEEK_END)
                if count == 0:
                    return size
                found = -1  # the newline at the very end begins no line
                while at > 0 and size - at < MAX_TAIL_BYTES:
                    step = min(CHUNK_BYTES, at)
                    at -= step
                    log.seek(at)
                    chunk = log.read(step)
                    if at + step == size and not chunk.endswith(b"\n"):
                        found += 1
                    for offset in _newlines_backwards(chunk):
                        found += 1
                        if found == count:
                            return at + offset + 1
                return at
        except OSError:
            return 0


def _newlines_backwards(chunk: bytes) -> Iterator[int]:
    at = chunk.rfind(b"\n")
    while at >= 0:
        yield at
        at = chunk.rfind(b"\n", 0, at)


def read_logs(stack: Stack, members: Iterable[Member], *, last: int, follow: bool) -> Iterator[LogLine]:
    """The last lines of each, one member after the other; then, to `follow`, what comes, until the caller has enough."""
    readers = [(member, LogReader(stack.log_of(member), last=last)) for member in members]
    for member, reader in readers:
        for text in reader.lines(at_end=not follow):
            yield LogLine(member, text)
    if follow:
        yield from followed(readers)


def followed(readers: list[tuple[Member, LogReader]]) -> Iterator[LogLine]:
    """What comes, until the caller has enough."""
    while True:
        lines = [LogLine(member, text) for member, reader in readers for text in reader.lines()]
        yield from lines
        if not lines:
            time.sleep(POLL_PAUSE_S)
