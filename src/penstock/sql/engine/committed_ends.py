"""Where the committed records of a topic's partitions end now, for those who want to see what was written before they asked.

Many ask at once, and one question answers them all: who comes while a question is on its way waits for the next one, because the
answer to that one may be from before they came. Who leads is kept for a while.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from penstock.client.clients import Connection
from penstock.client.options import client_options
from penstock.client.patience import Retriable
from penstock.client.properties import SECURITY_NAMES
from penstock.client.topics import LATEST, Client, Topic

TIMEOUT_MS: Final = 15_000
READ_COMMITTED: Final = 1
LEADERS_KEPT_S: Final = 30.0
"""After that it looks for new partitions."""


def topic_client(connection: Connection) -> Client:
    given = {name: value for name, value in connection.properties.items() if name in SECURITY_NAMES}
    return Client(
        client_options(connection.bootstrap, {**given, "default.api.timeout.ms": str(TIMEOUT_MS)}),
        is_known=True,
    )


class CommittedEnds:
    def __init__(self, connection: Connection, topic: str) -> None:
        self._client = topic_client(connection)
        self._topic = Topic(topic, b"", {})
        self._leaders_until_s = 0.0
        self._changed = threading.Condition()
        self._begun = self._ended = 0  # questions
        self._answer: dict[int, int] | Exception = {}

    def now(self) -> dict[int, int]:
        """The next offset of each partition. ReadFailed."""
        with self._changed:
            mine = self._begun + 1
            while self._ended < mine and self._begun > self._ended:
                self._changed.wait()
            if self._ended < mine:
                self._begun = number = self._ended + 1
            else:
                return self._given()
        answer = self._asked()
        with self._changed:
            self._answer, self._ended = answer, number
            self._changed.notify_all()
            return self._given()

    def close(self) -> None:
        self._client.close()

    def _given(self) -> dict[int, int]:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def _asked(self) -> dict[int, int] | Exception:
        try:
            return self._client.patiently(self._ask)
        except Exception as error:  # each of those who wait gets it
            self._forget()
            return error

    def _ask(self) -> dict[int, int]:
        """Retriable."""
        try:
            if time.monotonic() > self._leaders_until_s:
                self._topic = self._client.topic(self._topic.name)
                self._leaders_until_s = time.monotonic() + LEADERS_KEPT_S
            wanted = dict.fromkeys(self._topic.leaders, LATEST)
            ends = self._client.led_offsets(self._topic, wanted, isolation_level=READ_COMMITTED)
        except Retriable:
            self._forget()
            raise
        return {partition: offset or 0 for partition, offset in ends.items()}

    def _forget(self) -> None:
        self._leaders_until_s = 0.0
