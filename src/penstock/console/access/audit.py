"""The audit log: who changed, or tried to change, what. JSON lines in the process's log, and in a topic where one is given.

Telling never blocks and never fails an action: an entry is logged and put into a bounded queue, from which one thread writes it
to the topic. The topic is made where it is missing. What cannot be written is in the process's log all the same, and how many
there were is told there.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

import orjson

from penstock.admin import Cluster
from penstock.client.clients import Connection
from penstock.client.errors import Refused, Unreachable, UserError, one_line

log = logging.getLogger("penstock.console.audit")

MAX_WAITING: Final = 1000
RETRY_PAUSE_S: Final = 5.0
SEND_TIMEOUT_S: Final = 10.0
CLOSING_TIMEOUT_S: Final = 5.0
TOPIC_CONFIGS: Final = {"cleanup.policy": "delete", "retention.ms": "-1"}
"""Nothing of it is deleted but by who administers the cluster."""
MAX_TEXT: Final = 2000
_END: Final = None

Entry = dict[str, Any]


class Audit:
    """Without a topic it only logs. `start` begins the writing, `close` writes what waits, for a few seconds."""

    def __init__(self, topic: str = "", connection: Connection | None = None) -> None:
        self.topic = topic
        self.connection = connection
        self._waiting: queue.Queue[Entry | None] = queue.Queue(MAX_WAITING)
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self.connection is not None:
            writer = _Writer(self.topic, self.connection, self._waiting, self._ends)
            self._thread = threading.Thread(target=writer.run, name="console-audit", daemon=True)
            self._thread.start()

    def tell(
        self,
        *,
        cluster: str,
        visitor: str,
        action: str,
        resource: str,
        what: str,
        outcome: str,
        error: str = "",
    ) -> None:
        """`outcome` is done, failed, refused or cancelled. Never a secret and never a record's value."""
        entry: Entry = {
            "time_ms": int(time.time() * 1000), "visitor": visitor, "cluster": cluster, "action": action,
            "resource": resource[:MAX_TEXT], "what": one_line(what), "outcome": outcome,
        }  # fmt: skip
        if error:
            entry["error"] = one_line(error)
        log.info("%s", _line(entry).decode())
        if self._thread is not None:
            try:
                self._waiting.put_nowait(entry)
            except queue.Full:
                log.error(
                    "an entry is not in the topic %s: %d others wait to be written", self.topic, MAX_WAITING
                )

    def close(self) -> None:
        """Blocks."""
        if self._thread is not None:
            self._ends.set()
            try:
                self._waiting.put_nowait(_END)
            except queue.Full:
                pass
            self._thread.join(CLOSING_TIMEOUT_S)
            if self._waiting.qsize():
                log.error("%d more entries are not in the topic %s", self._waiting.qsize(), self.topic)


class _Writer:
    """One at a time: an audit log has few entries, and its order counts."""

    def __init__(
        self, topic: str, connection: Connection, waiting: queue.Queue[Entry | None], ends: threading.Event
    ) -> None:
        self._topic = topic
        self._connection = connection
        self._waiting = waiting
        self._ends = ends
        self._producer: Any = None
        self._is_topic_there = False

    def run(self) -> None:
        while True:
            entry = self._waiting.get()
            if entry is None:
                return
            while not self._written(entry):
                if self._ends.wait(RETRY_PAUSE_S):
                    log.error("an entry is not in the topic %s", self._topic)
                    return  # so would be the others

    def _written(self, entry: Entry) -> bool:
        try:
            self._make_topic()
            self._send(_line(entry), entry["visitor"])
            return True
        except (Refused, Unreachable, UserError) as error:
            log.warning(
                "the audit log cannot be written to the topic %s; tried again soon: %s", self._topic, error
            )
        except Exception:
            log.exception("writing the audit log to the topic %s", self._topic)
        self._producer = None
        return False

    def _make_topic(self) -> None:
        if not self._is_topic_there:
            with Cluster.over(self._connection, timeout_s=SEND_TIMEOUT_S) as cluster:
                cluster.topics.create(self._topic, partitions=1, configs=TOPIC_CONFIGS, exist_ok=True)
            self._is_topic_there = True

    def _send(self, line: bytes, key: str) -> None:
        if self._producer is None:
            self._producer = self._connection.producer(
                {
                    "enable.idempotence": "true", "acks": "all", "linger.ms": "0",
                    "message.timeout.ms": str(int(SEND_TIMEOUT_S * 1000)),
                }
            )  # fmt: skip
        failures: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(str(error))

        self._producer.produce(self._topic, value=line, key=key.encode(), on_delivery=delivered)
        if self._producer.flush(SEND_TIMEOUT_S + 1.0) or failures:
            self._is_topic_there = False  # somebody may have deleted it
            raise Unreachable(failures[0] if failures else "no answer in time")


def _line(entry: Mapping[str, Any]) -> bytes:
    """Lone surrogates, which a name may have, are shown as what they are not."""
    try:
        return orjson.dumps(entry)
    except orjson.JSONEncodeError:
        return orjson.dumps(
            {
                name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
                for name, value in entry.items()
            }
        )
