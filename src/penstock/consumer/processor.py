"""The processor: it gets records, calls the handler, writes the results and commits the offsets."""

from __future__ import annotations

import logging
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.client.librdkafka_settings import librdkafka_settings
from penstock.client.patience import Backoff
from penstock.consumer.counters import Counters
from penstock.consumer.failures import HandlerFailed, Stopped
from penstock.consumer.guarantees import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    EXACTLY_ONCE,
    Guarantee,
    check_isolation,
    check_names,
    checked_retries,
)
from penstock.consumer.handling import Deserializer, Handling, Unit
from penstock.consumer.membership import MEMBER_SETTINGS, Membership
from penstock.consumer.record import Place, Record
from penstock.consumer.signals import stopped_by_signals
from penstock.consumer.topics import ensure_dead_letter_topic, ignored_topics
from penstock.consumer.undoing import without_lost
from penstock.consumer.writing import Aborted, PlainWriter, TransactionalWriter

log = logging.getLogger("penstock.consumer")

DEFAULT_DEAD_LETTER_TOPIC = "{topic}.dlq"
IDLE_WAIT_S = 0.1
KEEP_ALIVE_S = 2.0  # a handler that is slow but comes back: the group hears from us this often
SETTLE_EVERY_S = 1.0  # while a batch is being handled
PROGRESS_EVERY_S = 1.0
BATCH_MAX_BYTES = 16 * 1024 * 1024
ABORTED_TRANSACTIONS_MAX = 10  # one after the other, for the same records
ABORT_BACKOFF = Backoff(0.1, factor=2.0, max_s=5.0)


class Processor:
    """Runs `handler` for every record of `topics`, as a member of `group`.

    - `guarantee`: "at-least-once": a record may be handled again after a failure. "at-most-once": a record is never handled
      twice, but may be lost when the process dies. "exactly-once": outputs, dead letters and offsets are one transaction.
    - `handler`: gets a Record, and returns None, an Output or several. With `batch=True` it gets a list of up to `batch_size`
      Records, perhaps of several partitions.
    - `retries`, `backoff`: how often a failing handler is called again, and the waits before that. When a batch still fails, its
      records are tried one by one, so that only the bad ones become dead letters. With "at-most-once" there are no retries: all
      records of a failed batch become dead letters.
    - `dead_letter_topic`: the topic for records that cannot be handled; "{topic}" stands for the record's topic. It is created if
      it does not exist. None: the processor stops with HandlerFailed instead. A pattern among `topics` never matches it.
    - `instance`: a name that stays the same when the process is started again, and that no other processor of the group has. A
      new process aborts at once what its predecessor left open. The default is the host's name.
    - `settings`: properties for all clients (for example security), with the Java clients' names or librdkafka's;
      `consumer_settings` and `producer_settings` for one of them. BadOption names the one that cannot be.
    - `on_progress`: is called about once a second with the counters.
    - `stop_at_end`: the processor ends when it has handled everything that was there at its start.
    """

    def __init__(
        self,
        topics: str | Sequence[str],
        *,
        group: str,
        handler: Callable[[Any], object],
        bootstrap: str = "localhost:9092",
        guarantee: Guarantee = "at-least-once",
        batch: bool = False,
        batch_size: int = 500,
        batch_wait_s: float = 0.0,
        retries: int | None = None,
        backoff: Backoff | None = None,
        dead_letter_topic: str | None = DEFAULT_DEAD_LETTER_TOPIC,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        instance: str | None = None,
        settings: Mapping[str, Any] | None = None,
        consumer_settings: Mapping[str, Any] | None = None,
        producer_settings: Mapping[str, Any] | None = None,
        on_progress: Callable[[Counters], None] | None = None,
        stop_at_end: bool = False,
    ) -> None:
        self.topics = [topics] if isinstance(topics, str) else list(topics)
        self.group = group
        self.guarantee = guarantee
        self.instance = instance or socket.gethostname()
        self.retries = checked_retries(retries, guarantee)
        check_names(self.topics, group=group, guarantee=guarantee)
        if batch_size < 1:
            raise ValueError("batch_size must be at least 1")
        self._backoff = backoff or Backoff()
        self._backoff.check()
        self._batch = batch
        self._batch_size = batch_size
        self._batch_wait_s = batch_wait_s
        self._dead_letter_template = dead_letter_topic
        self._ignored_topics: str | None = None
        if dead_letter_topic is not None and any(topic.startswith("^") for topic in self.topics):
            self._ignored_topics = ignored_topics(self.topics, dead_letter_topic)
        self._on_progress = on_progress
        self._stop_at_end = stop_at_end
        common = {**(settings or {}), "bootstrap.servers": bootstrap}
        self._client_settings = librdkafka_settings(common, role="admin")
        self._consumer_settings = librdkafka_settings(
            {**common, **(consumer_settings or {})}, role="consumer"
        )
        check_isolation(self._consumer_settings, guarantee)
        self._producer_settings = librdkafka_settings(
            {**common, **(producer_settings or {})}, role="producer"
        )
        self._stopping = threading.Event()
        self._todo: deque[Record] = deque()
        self._handled: list[Unit] = []
        self._is_settling = False
        self._settled_s = self._progressed_s = time.monotonic()
        self._dead_letter_topics: set[str] = set()
        self._counts = Counters()
        self._handling = Handling(
            handler,
            group=group,
            retries=self.retries,
            only_once=guarantee == AT_MOST_ONCE,
            backoff=self._backoff,
            dead_letter_topic=None if dead_letter_topic is None else self._dead_letter_topic,
            deserializers=(key_deserializer, value_deserializer),
            wait=self._wait,
            owns=lambda record: self._membership.owns(record),
            chance=random.random,
        )
        self._membership: Membership
        self._plain = PlainWriter(self._producer_settings)
        self._transactional: TransactionalWriter | None = None

    @property
    def counters(self) -> Counters:
        return self._counts._replace(
            retries=self._handling.retried,
            rebalances=self._membership.rebalances if hasattr(self, "_membership") else 0,
        )

    def stop(self) -> None:
        """Ends `run` after the record or batch in hand; from a signal handler, another thread, or the handler itself."""
        self._stopping.set()

    def run(self) -> Counters:
        """Works until stop(), SIGTERM or SIGINT (these only where Python allows it: in the main thread).

        Raises Stopped, or what came out of the handler and is not an Exception.
        """
        with stopped_by_signals(self.stop):
            log.info("%s of group %s begins: %s, %s", self.instance, self.group, self.topics, self.guarantee)
            self._open()
            try:
                while not self._stopping.is_set():
                    self._turn()
                self._finish()
            except HandlerFailed:
                self._finish()
                raise
            finally:
                self._close()
        return self.counters

    def _open(self) -> None:
        for topic in self.topics:
            if not topic.startswith("^") and self._dead_letter_template is not None:
                self._dead_letter_topic(topic)
        if self.guarantee == EXACTLY_ONCE:
            self._transactional = TransactionalWriter(
                self._producer_settings, f"{self.group}-{self.instance}"
            )
            self._transactional.open()
        self._membership = Membership(
            self._member_settings(),
            self.topics,
            client_settings=self._client_settings,
            before_revoke=self._before_revoke,
        )

    def _member_settings(self) -> dict[str, Any]:
        settings = {
            **MEMBER_SETTINGS,
            **self._consumer_settings,
            "group.id": self.group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
        }
        if self._ignored_topics:
            hidden = (settings.get("topic.blacklist"), self._ignored_topics)
            settings["topic.blacklist"] = ",".join(filter(None, hidden))
        if settings.get("group.protocol") == "consumer":
            # There the broker assigns, and librdkafka refuses to be told how.
            del settings["partition.assignment.strategy"]
        return settings

    def _close(self) -> None:
        # Whatever is not settled by now will come again, to us or to another member.
        self._todo.clear()
        self._handled.clear()
        self._membership.close()
        self._plain.close()
        if self._transactional is not None:
            self._transactional.close()
        self._progress(force=True)

    def _turn(self) -> None:
        records = self._membership.take(
            max_records=self._batch_size,
            max_bytes=BATCH_MAX_BYTES,
            wait_s=IDLE_WAIT_S,
            fill_s=self._batch_wait_s,
            is_over=self._is_over,
        )
        self._todo.extend(records)
        if self.guarantee == AT_MOST_ONCE:
            self._commit_ahead()
        while self._todo and not self._stopping.is_set():
            self._handle_some()
            self._keep_alive()
        self._settle()
        self._progress()
        if not records and self._stop_at_end and self._membership.is_at_end():
            self.stop()

    def _is_over(self) -> bool:
        return self._stopping.is_set() or (self._stop_at_end and self._membership.is_at_end())

    def _handle_some(self) -> None:
        if self._batch:
            records = [each for each in self._todo if self._membership.owns(each)]
            self._todo.clear()
            units = self._handling.handle_batch(records) if records else []
            if units is None:
                self._todo.extend(each for each in records if self._membership.owns(each))
            else:
                self._handled.extend(units)
            return
        # Out of the list while it is worked on: should the handler end everything, it was begun all the same.
        record = self._todo.popleft()
        unit = self._handling.handle_record(record) if self._membership.owns(record) else None
        if unit is not None:
            self._handled.append(unit)
        elif self._membership.owns(record):
            self._todo.appendleft(record)

    def _keep_alive(self) -> None:
        now_s = time.monotonic()
        if now_s - self._membership.last_poll_s > KEEP_ALIVE_S:
            self._membership.breathe()
        if now_s - self._settled_s > SETTLE_EVERY_S:
            self._settle()
        self._progress()

    def _wait(self, wait_s: float) -> bool:
        deadline_s = time.monotonic() + wait_s
        while not self._stopping.is_set():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return True
            self._membership.breathe(left_s)
        return False

    def _before_revoke(self, places: set[Place]) -> None:
        if not self._is_settling:
            self._settle(once=True)
            self._give_back(places)

    def _finish(self) -> None:
        self._settle()
        self._give_back({record.place for record in self._todo})

    def _settle(self, *, once: bool = False) -> None:
        """Writes the outputs of what was handled and commits its offsets; `once` where there is no time to try again."""
        self._settled_s = time.monotonic()
        self._is_settling = True
        try:
            if self._transactional is not None:
                self._settle_in_transaction(self._transactional, once=once)
            else:
                self._settle_plainly()
        finally:
            self._is_settling = False

    def _settle_plainly(self) -> None:
        self._plain.write(self._handled)
        refused = [unit for unit in self._handled if unit.refusal is not None]
        if refused:
            letters = [letter for unit in refused for letter in self._handling.refused(unit)]
            self._plain.write(letters)
            self._handled = [unit for unit in self._handled if unit.refusal is None] + letters
        if self.guarantee == AT_LEAST_ONCE:
            self._membership.uncommitted.update(self._offsets(self._handled))
        self._count(self._handled)
        self._handled = []
        if self._membership.uncommitted and self._membership.commit():
            self._counts = self._counts._replace(commits=self._counts.commits + 1)

    def _settle_in_transaction(self, writer: TransactionalWriter, *, once: bool) -> None:
        aborted, unheard_s = 0, 0.0
        while True:
            self._drop_lost()
            if not self._handled:
                return
            metadata = self._membership.group_metadata()
            if metadata is None:
                if once or (unheard_s and self._stopping.is_set()):
                    return
                self._membership.breathe(unheard_s)
                unheard_s = IDLE_WAIT_S
                continue
            try:
                writer.write(self._handled, self._offsets(self._handled), metadata)
            except Aborted as error:
                aborted += 1
                self._counts = self._counts._replace(aborts=self._counts.aborts + 1)
                log.warning("a transaction was aborted: %s", error)
                if self._replace_refused():
                    aborted = 0
                    continue
                if once:
                    return
                if aborted >= ABORTED_TRANSACTIONS_MAX:
                    raise Stopped(f"{aborted} transactions in a row were aborted: {error}") from error
                if not self._wait(ABORT_BACKOFF.delay_s(aborted, random.random)):
                    return
            else:
                self._counts = self._counts._replace(commits=self._counts.commits + 1)
                self._count(self._handled)
                self._handled = []
                return

    def _replace_refused(self) -> bool:
        refused = [unit for unit in self._handled if unit.refusal is not None]
        letters = [letter for unit in refused for letter in self._handling.refused(unit)]
        self._handled = [unit for unit in self._handled if unit.refusal is None] + letters
        return bool(refused)

    def _drop_lost(self) -> None:
        self._handled, again = without_lost(self._handled, self._membership.owns)
        self._todo.extendleft(reversed(again))

    def _offsets(self, units: Sequence[Unit]) -> dict[Place, int]:
        """For each partition the offset behind the last record; partitions that are not ours any more are left out."""
        offsets: dict[Place, int] = {}
        for unit in units:
            for record in unit.records:
                if self._membership.owns(record):
                    offsets[record.place] = max(record.offset + 1, offsets.get(record.place, 0))
        return offsets

    def _commit_ahead(self) -> None:
        """At most once: the records are passed over before anything is done with them."""
        for record in self._todo:
            self._membership.uncommitted[record.place] = record.offset + 1
        while self._membership.uncommitted and not self._membership.commit():
            if not self._wait(IDLE_WAIT_S):
                # Nobody was told, so nothing is handled, and the next member gets these.
                self._membership.uncommitted.clear()
                self._todo.clear()
                return
        self._todo = deque(each for each in self._todo if self._membership.owns(each))

    def _give_back(self, places: set[Place]) -> None:
        """At most once: records that were passed over and not begun are for whoever comes next."""
        if self.guarantee != AT_MOST_ONCE:
            return
        for record in reversed(self._todo):
            if record.place in places and self._membership.owns(record):
                self._membership.uncommitted[record.place] = record.offset
        self._membership.commit()

    def _dead_letter_topic(self, topic: str) -> str:
        assert self._dead_letter_template is not None
        name = self._dead_letter_template.replace("{topic}", topic)
        if name not in self._dead_letter_topics:
            ensure_dead_letter_topic(self._client_settings, name, origin=topic)
            self._dead_letter_topics.add(name)
        return name

    def _count(self, units: Sequence[Unit]) -> None:
        dead = sum(unit.is_dead_letter for unit in units)
        self._counts = self._counts._replace(
            handled=self._counts.handled + sum(len(unit.records) for unit in units),
            outputs=self._counts.outputs + sum(len(unit.outputs) for unit in units) - dead,
            dead_letters=self._counts.dead_letters + dead,
        )

    def _progress(self, *, force: bool = False) -> None:
        now_s = time.monotonic()
        if self._on_progress is not None and (force or now_s - self._progressed_s >= PROGRESS_EVERY_S):
            self._progressed_s = now_s
            self._on_progress(self.counters)
