"""Whether somebody in the group reads each topic.

The leader of a classic group asks a broker which partitions there are to assign, and one that does not know a topic yet says that
there is none. librdkafka then assigns nothing of the topic to anybody and does not look again: its own list of topics has not
changed (as of 2.16). So, some time after each assignment, the group is looked at from outside.

A pattern is not looked at: which topics it means is for the group to say. Nor are groups whose broker assigns.

It is asked by our own client. librdkafka's `describe_consumer_groups` may end the whole process: where the call has timed out
before the group's coordinator is known, the late answer is counted twice, and an assertion fails (`eonce->refcnt > 0`; its issue
4605, open as of 2.16). So may whatever else its AdminClient asks a coordinator. Where our client cannot log in (Kerberos, a token
from the program's own function), the group is not looked at.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException

from penstock.client.clients import Connection
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.properties import SECURITY_NAMES

log = logging.getLogger("penstock.consumer")

CALL_TIMEOUT_S: Final = 3.0


class Coverage:
    """`wait_s`: how long after an assignment. `settings` are of a client that is not a member."""

    def __init__(
        self,
        consumer: Consumer,
        settings: Mapping[str, Any],
        group: str,
        topics: Sequence[str],
        *,
        wait_s: float,
    ) -> None:
        self._consumer = consumer
        self._settings = settings
        self._group = group
        self._topics = [topic for topic in topics if not topic.startswith("^")]
        self._wait_s = wait_s
        self._due_s: float | None = None

    def assigned(self) -> None:
        self._due_s = time.monotonic() + self._wait_s if self._topics else None

    def neglected(self) -> list[str]:
        """Topics that have partitions of which nobody has one; none while it is not time to look."""
        if self._due_s is None or time.monotonic() < self._due_s:
            return []
        self._due_s = None
        from penstock.client.group_members import topics_read  # not for those that never look

        try:
            read = topics_read(self._connection, self._group, timeout_s=CALL_TIMEOUT_S)
            if read is not None:
                return [topic for topic in self._topics if topic not in read and self._has_partitions(topic)]
        except UserError as error:
            log.info("whether the group reads all its topics is not looked at: %s", error)
            self._topics = []
        except (KafkaException, Unreachable, Refused):
            pass  # the cluster is busy with something: next time
        self.assigned()
        return []

    @cached_property
    def _connection(self) -> Connection:
        security = {name: str(value) for name, value in self._settings.items() if name in SECURITY_NAMES}
        return Connection(self._settings["bootstrap.servers"], security)

    def _has_partitions(self, topic: str) -> bool:
        known = self._consumer.list_topics(topic, timeout=CALL_TIMEOUT_S).topics.get(topic)
        return known is not None and known.error is None and bool(known.partitions)
