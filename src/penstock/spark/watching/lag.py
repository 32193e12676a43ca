"""How far a stream is behind, told to those who watch consumer groups.

A streaming query keeps its offsets in its checkpoint, where no lag tool looks. With `commit.group` they are committed
to a group as well, behind the query's back: the group decides nothing about where the query goes on, and a commit that
fails is logged and made good by the next.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from penstock.spark.kafka_properties import cluster_only, for_librdkafka
from penstock.spark.reading.offsets import Offsets

log = logging.getLogger("penstock.spark")

CLOSING_TIMEOUT_S = 5.0


def lag(read: Offsets, latest: Offsets) -> Offsets:
    """Records that are there and not read, by partition; one that is new to the query counts from its beginning."""
    return {place: max(0, end - read.get(place, 0)) for place, end in latest.items()}


class GroupOffsets:
    """Commits to a group from a thread: a coordinator that is slow never holds up a batch. The newest offsets win."""

    def __init__(self, group: str, properties: Mapping[str, str]) -> None:
        self.group = group
        self._consumer = Consumer(
            {
                **for_librdkafka(cluster_only(properties)),
                "group.id": group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
            },
            logger=log.getChild("client"),
        )
        self._wanted: Offsets | None = None
        self._committed: Offsets = {}
        self._is_committing = False
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="penstock-commit-group", daemon=True)
        self._thread.start()

    def commit(self, offsets: Offsets) -> None:
        """Returns at once."""
        with self._changed:
            self._wanted = dict(offsets)
            self._changed.notify_all()

    def flush(self, timeout_s: float = CLOSING_TIMEOUT_S) -> None:
        """Returns when what was asked for is committed, or could not be, or when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted is None and not self._is_committing, timeout_s)

    def close(self) -> None:
        """After a last commit, if the cluster takes it in time."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(CLOSING_TIMEOUT_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted is not None or self._is_closing)
                offsets, self._wanted = self._wanted, None
                if offsets is None:
                    break
                self._is_committing = True
            if offsets != self._committed and self._commit(offsets):
                self._committed = offsets
            with self._changed:
                self._is_committing = False
                self._changed.notify_all()
        self._consumer.close()

    def _commit(self, offsets: Offsets) -> bool:
        positions = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        try:
            if positions:
                self._consumer.commit(offsets=positions, asynchronous=False)
            return True
        except KafkaException as error:
            log.warning("the offsets of group %s were not committed: %s", self.group, error.args[0].str())
            return False
