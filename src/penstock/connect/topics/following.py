"""Topics are read to their ends, and then followed, in a thread; what was not committed is left out."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from penstock.connect.errors import ConnectError
from penstock.connect.tasks.clients import at_hand, make_consumer

log = logging.getLogger("penstock.connect")

WAIT_S: Final = 0.5
AT_ONCE: Final = 1000
RETRY_S: Final = 0.5

Place = tuple[str, int]
Apply = Callable[[str, bytes | None, bytes | None], None]
"""Topic, key, value: called in the thread, in the order of each partition."""


class Following:
    def __init__(self, settings: Mapping[str, Any], partitions: Iterable[Place], apply: Apply) -> None:
        self._settings = {
            **settings,
            "group.id": "penstock-connect-following",  # needed by librdkafka, and used by nobody
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            # A few topics with small records: the defaults are for much more.
            "queued.min.messages": 1000,
            "queued.max.messages.kbytes": 4096,
            "fetch.wait.max.ms": 200,
        }
        self._apply = apply
        self._reached: dict[Place, int] = dict.fromkeys(partitions, 0)
        self._at_end: set[Place] = set()
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self.problem: str | None = "the topics have not been read yet"
        self._thread = threading.Thread(target=self._run, name="penstock-connect-following", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def wait_loaded(self, timeout_s: float) -> bool:
        """Until all that was there at the beginning has been applied."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._at_end) == len(self._reached), timeout_s)

    def wait_for(self, place: Place, offset: int, timeout_s: float) -> bool:
        """Until the record at this offset has been applied."""
        with self._changed:
            return self._changed.wait_for(lambda: self._reached[place] > offset, timeout_s)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._follow()
            except ConnectError as error:
                self._say(str(error))
            except Exception as error:
                log.exception("A bug in the thread that reads the topics of the workers")
                self._say(f"{type(error).__name__}: {error}")
            self._stopped.wait(RETRY_S)

    def _say(self, problem: str | None) -> None:
        if problem is not None and problem != self.problem:
            log.warning("Reading the topics of the workers: %s", problem)
        self.problem = problem

    def _follow(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

        consumer = make_consumer(self._settings)
        try:
            consumer.assign([
                TopicPartition(topic, number, reached or OFFSET_BEGINNING)
                for (topic, number), reached in self._reached.items()
            ])  # fmt: skip
            while not self._stopped.is_set():
                messages = at_hand(consumer, AT_ONCE, WAIT_S)
                if not messages and self.problem is not None and len(self._at_end) == len(self._reached):
                    self._ask_again(consumer)
                for message in messages:
                    topic, number, offset = message.topic(), message.partition(), message.offset()
                    error = message.error()
                    if topic is None or number is None or offset is None:
                        if error is not None:
                            self._say(error.str())
                        continue
                    place = (topic, number)
                    if error is None:
                        self._apply(topic, message.key(), message.value())
                        self._move(place, offset + 1)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        self._move(place, offset, is_end=True)
                    else:
                        self._say(f"{topic}-{number}: {error.str()}")
        finally:
            consumer.close()

    def _ask_again(self, consumer: Any) -> None:
        """Topics in which nothing happens do not tell that the cluster is there again."""
        from confluent_kafka import KafkaException, TopicPartition

        place = next(iter(self._reached))
        try:
            consumer.get_watermark_offsets(TopicPartition(*place), timeout=WAIT_S)
        except KafkaException:
            return
        log.info("Reading the topics of the workers goes on")
        self._say(None)

    def _move(self, place: Place, reached: int, *, is_end: bool = False) -> None:
        with self._changed:
            self._reached[place] = max(reached, self._reached[place])
            if is_end:
                self._at_end.add(place)
                if len(self._at_end) == len(self._reached):
                    self._say(None)
            self._changed.notify_all()


def deadline(timeout_s: float) -> Callable[[], float]:
    """How much of it is left."""
    end_s = time.monotonic() + timeout_s
    return lambda: max(0.0, end_s - time.monotonic())
