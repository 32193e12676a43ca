"""Whether somebody in the group reads each topic.

The leader of a classic group asks a broker which partitions there are to assign, and one that does not know a topic yet says that
there is none. librdkafka then assigns nothing of the topic to anybody and does not look again: its own list of topics has not
changed (as of 2.16). So, some time after each assignment, the group is looked at from outside.

A pattern is not looked at: which topics it means is for the group to say. Nor are groups whose broker assigns.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

log = logging.getLogger("penstock.consumer")

CALL_TIMEOUT_S: Final = 5.0


class Coverage:
    """`wait_s`: how long after an assignment. `settings` are of a client that is no member."""

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
        try:
            read = self._topics_read()
            if read is not None:
                return [topic for topic in self._topics if topic not in read and self._has_partitions(topic)]
        except (KafkaException, TimeoutError):
            pass  # the cluster is busy with something: next time
        self.assigned()
        return []

    def _topics_read(self) -> set[str] | None:
        """By any member; None while the group has not settled."""
        admin = AdminClient({**self._settings}, logger=log.getChild("client"))
        asked = admin.describe_consumer_groups([self._group], request_timeout=CALL_TIMEOUT_S)
        found = asked[self._group].result(2 * CALL_TIMEOUT_S)
        if found.state != ConsumerGroupState.STABLE:
            return None
        return {place.topic for member in found.members for place in member.assignment.topic_partitions}

    def _has_partitions(self, topic: str) -> bool:
        known = self._consumer.list_topics(topic, timeout=CALL_TIMEOUT_S).topics.get(topic)
        return known is not None and known.error is None and bool(known.partitions)
