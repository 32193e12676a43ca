"""The tokens of a header's text: the signs `,:[]{}"` by themselves, and what is between them. A backslash takes a sign's
meaning."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(r'[,:\[\]{}"]|(?:\\.|[^,:\[\]{}"\\])++(?:\\$)?|\\', re.DOTALL)
_SPACES: Final = "".join(map(chr, range(33)))


def trimmed(text: str) -> str:
    """As Java's `trim`."""
    return text.strip(_SPACES)


class Tokens:
    """One token may be looked at before it is taken."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._at = 0
        self._seen: str | None = None

    def mark(self) -> int:
        return self._at - len(self._seen or "")

    def back_to(self, place: int) -> None:
        self._at = place
        self._seen = None

    def has_next(self) -> bool:
        return self._seen is not None or self._at < len(self.text)

    def next(self) -> str:
        token = self._seen
        self._seen = None
        return token if token is not None else self._read()

    def next_few(self, count: int) -> str | None:
        """So many tokens as one text; None, and nothing is taken, where there are fewer."""
        start = self.mark()
        for _ in range(count):
            if not self.has_next():
                self.back_to(start)
                return None
            self.next()
        return self.text[start : self._at]

    def take(self, wanted: str, *, skips_spaces: bool = True) -> bool:
        if self._seen is None:
            if not self.has_next():
                return False
            self._seen = self._read()
        if skips_spaces:
            while not trimmed(self._seen) and self._at < len(self.text):
                self._seen = self._read()
        if (trimmed(self._seen) if skips_spaces else self._seen) == wanted:
            self._seen = None
            return True
        return False

    def _read(self) -> str:
        found = _TOKEN.match(self.text, self._at)
        assert found is not None
        self._at = found.end()
        return found[0]
