"""A line for each request, written together a few times a second: a write for each would cost more than many a request.

    127.0.0.1 User:alice "GET /subjects HTTP/1.1" 200 17 0.4ms 6f1c-12

That is: where from, who, what, the status, the bytes of the body, how long it took, and the request's id. Queries are told;
headers and bodies, where secrets are, never. Where PENSTOCK_LOG_FORMAT is json, a line is an object with the same in its fields.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Final, TextIO

FLUSH_S: Final = 0.25
MAX_LINES: Final = 10_000
MAX_SHOWN_CHARS: Final = 300


class AccessLog:
    def __init__(self, *, is_on: bool, stream: TextIO | None = None) -> None:
        self.is_on = is_on
        self._is_json = os.environ.get("PENSTOCK_LOG_FORMAT", "").lower() == "json"
        self._stream = stream
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def tell(
        self, *, client: str, principal: str, method: str, target: str, status: int, size: int, seconds: float,
        request_id: str,
    ) -> None:  # fmt: skip
        who, what = _shown(principal), _shown(target)
        if self._is_json:
            line = _json_line(client, who, method, what, status, size, seconds, request_id)
        else:
            line = f'{client} {who} "{method} {what} HTTP/1.1" {status} {size} {seconds * 1000:.1f}ms {request_id}'
        self._lines.append(line)
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


def _json_line(
    client: str, principal: str, method: str, target: str, status: int, size: int, seconds: float,
    request_id: str,
) -> str:  # fmt: skip
    now = time.time()
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    return json.dumps(
        {
            "time": f"{moment}.{int(now % 1 * 1000):03d}Z", "level": "INFO", "logger": "penstock.access",
            "message": f"{method} {target} {status}", "client": client, "principal": principal, "method": method,
            "target": target, "status": status, "bytes": size, "seconds": round(seconds, 6), "request_id": request_id,
        },
        ensure_ascii=False,
    )  # fmt: skip


def _shown(text: str) -> str:
    """What a client sends must not make lines of its own, nor long ones."""
    text = text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"
    return text if text.isprintable() else ascii(text)
