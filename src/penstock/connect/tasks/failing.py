"""What happens to a record that cannot be converted, transformed or written: tried again, logged, kept as a dead letter, left
out, or the end of the task. As Kafka Connect's `errors.…` say it, for sinks and for sources.

A dead letter is written only for a record that is left out: with `errors.tolerance=none` the record comes again when the task
does.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from penstock.client.patience import Backoff
from penstock.connect.errors import ConnectError, InvalidConfig, RetriableError
from penstock.connect.settings import Kind
from penstock.connect.tasks.counters import Counters
from penstock.connect.tasks.settings import value_of

log = logging.getLogger("penstock.connect")
T = TypeVar("T")

RETRY_FIRST_S: Final = 0.3
TOLERANCE: Final = "errors.tolerance"


class Stage(StrEnum):
    """By Kafka Connect's names."""

    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"
    TASK_PUT = "TASK_PUT"
    TASK_POLL = "TASK_POLL"


class LeftOut(Exception):
    """The record has been dealt with, and the task goes on without it."""


class ToleranceExceeded(ConnectError):
    """The task fails."""


class Origin(Protocol):
    """The record that is in trouble, as it came."""

    def __str__(self) -> str:
        """Where it is from, with what is in it: only for those who ask for messages in the log."""


class Failure(NamedTuple):
    stage: Stage
    by: str
    """The class that failed."""
    error: BaseException
    origin: Origin


class Policy(NamedTuple):
    retry_timeout_s: float
    """-1: without end."""
    retry_max_s: float
    is_tolerant: bool
    logs: bool
    logs_messages: bool

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Policy:
        """InvalidConfig."""
        tolerance = str(value_of(config, TOLERANCE, Kind.STRING, "none"))
        if tolerance.lower() not in ("none", "all"):
            raise InvalidConfig(
                f"Invalid value {tolerance} for configuration {TOLERANCE}: String must be one of (case insensitive): ALL, NONE"
            )
        timeout_ms = value_of(config, "errors.retry.timeout", Kind.LONG, 0)
        return cls(
            timeout_ms / 1000 if timeout_ms >= 0 else -1.0,
            value_of(config, "errors.retry.delay.max.ms", Kind.LONG, 60_000) / 1000,
            tolerance.lower() == "all",
            value_of(config, "errors.log.enable", Kind.BOOLEAN, False),
            value_of(config, "errors.log.include.messages", Kind.BOOLEAN, False),
        )


class Failing:
    """`keep` writes a dead letter. `pause` waits that long while the task stays what it is in its group, and returns False when
    the task is to stop."""

    def __init__(
        self,
        policy: Policy,
        counters: Counters,
        name: str,
        pause: Callable[[float], bool],
        keep: Callable[[Failure], None] | None = None,
    ) -> None:
        self.policy = policy
        self._counters, self._name = counters, name
        self._pause, self._keep = pause, keep

    def run(self, stage: Stage, by: Any, call: Callable[[], T], origin: Origin) -> T:
        """What the call gives. LeftOut where the record is left out, ToleranceExceeded where it is not."""
        deadline_s = time.monotonic() + self.policy.retry_timeout_s
        backoff = Backoff(RETRY_FIRST_S, factor=2, max_s=self.policy.retry_max_s, jitter=0.2)
        attempt = 0
        while True:
            try:
                return call()
            except RetriableError as error:
                attempt += 1
                delay_s = backoff.delay_s(attempt, random.random)
                if not self._may_retry(deadline_s - delay_s) or not self._pause(delay_s):
                    self.take(Failure(stage, class_name(by), error, origin))
                self._counters.add("total-retries")
            except Exception as error:
                self.take(Failure(stage, class_name(by), error, origin))

    def take(self, failure: Failure) -> None:
        """Raises LeftOut or ToleranceExceeded."""
        self.report(failure)
        self._counters.add("total-records-skipped")
        raise LeftOut

    def report(self, failure: Failure) -> None:
        """Returns where the record may be left out; ToleranceExceeded otherwise."""
        counters = self._counters
        counters.add("total-record-errors")
        counters.set("last-error-timestamp", int(time.time() * 1000))
        if self.policy.logs:
            counters.add("total-errors-logged")
            log.error("%s", self._text(failure), exc_info=failure.error)
        if not self.policy.is_tolerant:
            counters.add("total-record-failures")
            raise ToleranceExceeded(
                f"Tolerance exceeded in error handler: {failure.stage} with {failure.by}: "
                f"{type(failure.error).__name__}: {failure.error}"
            ) from failure.error
        if self._keep is not None:
            self._keep(failure)

    def _may_retry(self, latest_s: float) -> bool:
        return self.policy.retry_timeout_s < 0 or time.monotonic() < latest_s

    def _text(self, failure: Failure) -> str:
        text = f"Error encountered in task {self._name}. Executing stage '{failure.stage}' with class '{failure.by}'"
        return f"{text}, where {failure.origin}." if self.policy.logs_messages else f"{text}."


def class_name(by: Any) -> str:
    """As a user of Kafka Connect knows it, where it has a name there."""
    kind = by if isinstance(by, type) else type(by)
    names = getattr(kind, "java_names", ())
    return str(names[0]) if names else f"{kind.__module__}.{kind.__qualname__}"
