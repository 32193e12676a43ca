"""Asks an HTTP service the same requests over and over, on connections that stay open and have one request under way each.

`requests` is a file with a list of them in JSON. The connections share them in turns: number 3 of 16 sends the fourth, the
twentieth and so on. Only answers in the last `seconds`, after `warm_up_s`, are counted. Each must be 200 and have its length.
"""

import json
import re
import select
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from bench.clients.options import print_result, read_options
from bench.measure import percentile

TIMEOUT_S = 60.0
RECEIVE_BYTES = 1 << 18
END_OF_HEAD = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
OK = b"HTTP/1.1 200"


def request_bytes(method: str, path: str, content_type: str | None = None, body: str | None = None) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
    data = (body or "").encode()
    if content_type is not None:
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(data)}\r\n"
    return head.encode() + b"\r\n" + data


def end_of_answer(received: bytes | bytearray) -> int | None:
    """Where the first answer ends; None where it has not come whole. SystemExit for one that is not 200 or has no length."""
    head_end = received.find(END_OF_HEAD)
    if head_end < 0:
        return None
    head = bytes(received[:head_end])
    length = LENGTH.search(head)
    if not head.startswith(OK) or length is None:
        raise SystemExit(f"an answer is not 200 with its length: {bytes(received[:600])!r}")
    end = head_end + len(END_OF_HEAD) + int(length[1])
    return end if len(received) >= end else None


class Connection:
    def __init__(self, port: int, requests: Sequence[bytes], first: int, step: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._requests, self._at, self._step = requests, first, step
        self._received = bytearray()
        self.sent_at = 0.0

    def send(self) -> None:
        self._received.clear()
        self.sent_at = time.perf_counter()
        self.socket.sendall(self._requests[self._at % len(self._requests)])
        self._at += self._step

    def receive(self) -> bool:
        """Whether the answer is whole now."""
        chunk = self.socket.recv(RECEIVE_BYTES)
        if not chunk:
            raise SystemExit(f"the service closed a connection: {bytes(self._received[:600])!r}")
        self._received += chunk
        return end_of_answer(self._received) is not None


def main() -> None:
    options = read_options()
    requests = [request_bytes(**each) for each in json.loads(Path(options["requests"]).read_text())]
    count = options["connections"]
    connections = [Connection(options["port"], requests, first, count) for first in range(count)]
    by_descriptor = {each.socket.fileno(): each for each in connections}
    poll = select.epoll()
    for descriptor in by_descriptor:
        poll.register(descriptor, select.EPOLLIN)
    took: list[float] = []
    answered = 0
    began = time.perf_counter() + options["warm_up_s"]
    end = began + options["seconds"]
    for each in connections:
        each.send()
    under_way = count
    while under_way:
        ready = poll.poll(TIMEOUT_S)
        if not ready:
            raise SystemExit(f"no answer for {TIMEOUT_S:g} s")
        for descriptor, _ in ready:
            each = by_descriptor[descriptor]
            if not each.receive():
                continue
            now = time.perf_counter()
            answered += 1
            if began <= now < end:
                took.append((now - each.sent_at) * 1000)
            if now < end:
                each.send()
            else:
                under_way -= 1
    took.sort()
    print_result(
        per_second=len(took) / options["seconds"],
        p50_ms=percentile(took, 0.5),
        p99_ms=percentile(took, 0.99),
        answered=answered,
    )


if __name__ == "__main__":
    main()
