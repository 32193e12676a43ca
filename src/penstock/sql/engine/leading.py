"""Which of several servers runs the queries: the member of a group to which the topic of commands is assigned.

The topic has one partition, so one member has it. A member that dies loses it after the session's time; then another has it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from penstock.client.clients import Connection
from penstock.sql.engine.members import client_id, leader_group
from penstock.sql.engine.options import SqlOptions

log = logging.getLogger("penstock.sql")

POLL_S: Final = 0.2
SESSION_MS: Final = 10_000
STOP_S: Final = 30.0


class Leading:
    """`tell(True)` and `tell(False)` are called in a thread of its own."""

    def __init__(self, options: SqlOptions) -> None:
        self._options = options
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, connection: Connection, tell: Callable[[bool], None], *, address: str) -> None:
        """`address` is this server's: the others find it by the group."""
        self._address = address
        self._thread = threading.Thread(
            target=self._run, args=(connection, tell), name="penstock-leading", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Another server may lead at once."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(STOP_S)

    def _run(self, connection: Connection, tell: Callable[[bool], None]) -> None:
        topic = self._options.command_topic

        def assigned(consumer: Any, partitions: list[Any]) -> None:
            if partitions:
                log.info("This server runs the queries")
                tell(True)

        def given_up(consumer: Any, partitions: list[Any]) -> None:
            if partitions and not self._stopped.is_set():
                log.info("Another server runs the queries")
                tell(False)

        while not self._stopped.is_set():
            consumer = None
            try:
                consumer = connection.consumer(
                    {
                        "group.id": leader_group(topic),
                        "client.id": client_id(self._address),
                        "enable.auto.commit": "false",
                        "auto.offset.reset": "latest",
                        "session.timeout.ms": str(SESSION_MS),
                        "heartbeat.interval.ms": "1000",
                        # Who has it keeps it when another server comes.
                        "partition.assignment.strategy": "cooperative-sticky",
                    }
                )
                consumer.subscribe([topic], on_assign=assigned, on_revoke=given_up, on_lost=given_up)
                while not self._stopped.is_set():
                    consumer.poll(POLL_S)
            except Exception as error:
                log.warning("Who runs the queries is not known: %s", error)
                self._stopped.wait(1.0)
            finally:
                if consumer is not None:
                    consumer.close()
