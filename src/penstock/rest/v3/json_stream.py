"""JSON objects one after the other in a stream of bytes, cut apart without being read.

    {"a":1} {"b":"}"}\\n{"c":    →   {"a":1}   {"b":"}"}   and the rest waits for more

Between objects there may be white space and commas. A stream of anything else is at its end: nobody can say where the next
object begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_OUTSIDE: Final = re.compile(rb'[{}"]')
_IN_STRING: Final = re.compile(rb'["\\]')
_BETWEEN: Final = re.compile(rb"[\s,]*")
_OPEN, _CLOSE, _QUOTE, _ESCAPE = b"{", b"}", b'"', b"\\"


class NotObjects(ValueError):
    """What stands between objects belongs to none."""


class TooLarge(ValueError):
    """One object is larger than it may be."""


class ObjectSplitter:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._data = bytearray()
        self._start = 0
        self._at = 0
        self._depth = 0
        self._is_in_string = False

    @property
    def is_between(self) -> bool:
        """Whether the last object is complete."""
        return self._depth == 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The objects that are complete with it."""
        del self._data[: self._start]
        self._at -= self._start
        self._start = 0
        self._data += chunk
        while True:
            if self._depth == 0 and not self._skip():
                return
            if not self._find_end():
                if len(self._data) - self._start > self._max_bytes:
                    raise TooLarge
                return
            if self._at - self._start > self._max_bytes:
                raise TooLarge
            found = bytes(self._data[self._start : self._at])
            self._start = self._at
            yield found

    def _skip(self) -> bool:
        """To the next object; False where there is none yet."""
        match = _BETWEEN.match(self._data, self._at)
        assert match is not None
        self._start = self._at = match.end()
        if self._at == len(self._data):
            return False
        if self._data[self._at : self._at + 1] != _OPEN:
            raise NotObjects
        self._depth, self._at = 1, self._at + 1
        return True

    def _find_end(self) -> bool:
        while self._depth:
            match = (_IN_STRING if self._is_in_string else _OUTSIDE).search(self._data, self._at)
            if match is None:
                self._at = len(self._data)
                return False
            mark = match.group()
            if mark == _ESCAPE:
                if match.end() == len(self._data):
                    self._at = match.start()  # what is escaped has not come yet
                    return False
                self._at = match.end() + 1
                continue
            self._at = match.end()
            if mark == _QUOTE:
                self._is_in_string = not self._is_in_string
            else:
                self._depth += 1 if mark == _OPEN else -1
        return True
