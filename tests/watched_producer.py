"""A transactional producer that says where its owner stands, so that it can be killed or held up there.

To be killed is a BaseException that no clean-up outlives: the producer does nothing any more, and its transaction stays open,
as that of a process that is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException

BEFORE_INIT = "before the id is taken over"
AFTER_INIT = "after the id is taken over"
AFTER_BEGIN = "after the transaction has begun"
AFTER_ROWS = "after the records"
AFTER_OFFSETS = "after the offsets"
AFTER_COMMIT = "after the commit"
POINTS = (BEFORE_INIT, AFTER_INIT, AFTER_BEGIN, AFTER_ROWS, AFTER_OFFSETS, AFTER_COMMIT)

FLUSH_S = 30.0


class Killed(BaseException):
    """The process ends here."""


class Violation(AssertionError):
    """Something was not as the model says."""


def kill() -> None:
    raise Killed


class WatchedProducer:
    def __init__(self, producer: Any, reached: Callable[[str], None]) -> None:
        self._producer = producer
        self._reached = reached
        self._is_dead = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def __len__(self) -> int:
        return len(self._producer)

    def init_transactions(self, *given: Any) -> None:
        self._at(BEFORE_INIT)
        self._producer.init_transactions(*given)
        self._at(AFTER_INIT)

    def begin_transaction(self) -> None:
        self._producer.begin_transaction()
        self._at(AFTER_BEGIN)

    def send_offsets_to_transaction(self, *given: Any) -> None:
        with suppress(SystemError):  # the binding's, when a report comes of a producer that was shut out
            self._producer.flush(FLUSH_S)
        self._at(AFTER_ROWS)
        self._producer.send_offsets_to_transaction(*given)
        self._at(AFTER_OFFSETS)

    def commit_transaction(self, *given: Any) -> None:
        self._producer.commit_transaction(*given)
        self._at(AFTER_COMMIT)

    def abort_transaction(self, *given: Any) -> None:
        if not self._is_dead:
            self._producer.abort_transaction(*given)

    def purge(self, *given: Any) -> None:
        if not self._is_dead:
            self._producer.purge(*given)

    def flush(self, *given: Any) -> Any:
        return 0 if self._is_dead else self._producer.flush(*given)

    def bury(self) -> None:
        """Ends what a dead one left open, as its transaction timeout would do later."""
        if self._is_dead:
            with suppress(KafkaException):
                self._producer.abort_transaction(FLUSH_S)

    def _at(self, point: str) -> None:
        try:
            self._reached(point)
        except Killed:
            self._is_dead = True
            raise
