"""A line for each request, written together a few times a second: a write for each would cost more than many a request.

    127.0.0.1 User:alice "GET /subjects HTTP/1.1" 200 17 0.4ms 6f1c-12

That is: where from, who, what, the status, the bytes of the body, how long it took, and the request's id. Queries are told;
headers and bodies, where secrets are, never.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final, TextIO

FLUSH_S: Final = 0.25
MAX_LINES: Final = 10_000
MAX_SHOWN_CHARS: Final = 300


class AccessLog:
    def __init__(self, *, is_on: bool, stream: TextIO | None = None) -> None:
        self.is_on = is_on
        self._stream = stream
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def tell(
        self, *, client: str, principal: str, method: str, target: str, status: int, size: int, seconds: float,
        request_id: str,
    ) -> None:  # fmt: skip
        who, what = _shown(principal), _shown(target)
        self._lines.append(
            f'{client} {who} "{method} {what} HTTP/1.1" {status} {size} {seconds * 1000:.1f}ms {request_id}'
        )
        if len(self._lines) >= MAX_LINES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        if lines:
            stream = self._stream or sys.stderr
            stream.write("\n".join(lines) + "\n")
            stream.flush()


def _shown(text: str) -> str:
    """What a client sends must not make lines of its own, nor long ones."""
    text = text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"
    return text if text.isprintable() else ascii(text)
