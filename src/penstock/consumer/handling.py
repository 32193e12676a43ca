"""A handler's attempts at its records: until it succeeds, or the record is given up and becomes a dead letter.

The result is a *unit*: records that are handled together and what is to be written for them. Nothing is written here,
so a failed attempt leaves nothing behind.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from penstock.client.errors import Refused, Unreachable
from penstock.client.patience import Backoff
from penstock.consumer.dead_letters import Failure, dead_letter, failure_of
from penstock.consumer.failures import HandlerFailed, Poison
from penstock.consumer.record import Output, Record, as_outputs

log = logging.getLogger("penstock.consumer")

Deserializer = Callable[[bytes], Any]


class Unit:
    """`refusal` is set by the writer when one of the outputs can never be written."""

    __slots__ = ("is_dead_letter", "outputs", "records", "refusal")

    def __init__(self, records: list[Record], outputs: list[Output], *, is_dead_letter: bool = False) -> None:
        self.records = records
        self.outputs = outputs
        self.is_dead_letter = is_dead_letter
        self.refusal: Exception | None = None


class Attempts:
    """Counts the failures of one record or batch."""

    def __init__(self) -> None:
        self.count = 0
        self.first_failure_ms = 0
        self.last_failure_ms = 0

    def failed(self, now_ms: int) -> None:
        self.count += 1
        self.first_failure_ms = self.first_failure_ms or now_ms
        self.last_failure_ms = now_ms

    def failure(self, error: BaseException) -> Failure:
        return failure_of(
            error,
            attempts=self.count,
            first_failure_ms=self.first_failure_ms,
            last_failure_ms=self.last_failure_ms,
        )


class Handling:
    """`wait(seconds)` keeps the group alive meanwhile; False means that we are to stop. `owns` may change during it.

    `only_once`: no record is given to the handler a second time, whatever came of the first.
    """

    def __init__(
        self,
        handler: Callable[[Any], object],
        *,
        group: str,
        retries: int,
        only_once: bool = False,
        backoff: Backoff,
        dead_letter_topic: Callable[[str], str] | None,
        deserializers: tuple[Deserializer | None, Deserializer | None],
        wait: Callable[[float], bool],
        owns: Callable[[Record], bool],
        chance: Callable[[], float],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._handler = handler
        self._group = group
        self._retries = retries
        self._only_once = only_once
        self._backoff = backoff
        self._dead_letter_topic = dead_letter_topic
        self._key_deserializer, self._value_deserializer = deserializers
        self._wait = wait
        self._owns = owns
        self._chance = chance
        self._now_ms = now_ms
        self.retried = 0

    def handle_record(self, record: Record) -> Unit | None:
        """None: given back, because we stop or the record's partition was taken away."""
        readable = self._deserialize(record)
        if readable is not True:
            return readable
        attempts = Attempts()
        while True:
            record.attempt = attempts.count + 1
            try:
                return Unit([record], as_outputs(self._handler(record)))
            except Exception as error:
                attempts.failed(self._now_ms())
                if isinstance(error, Poison) or attempts.count > self._retries:
                    return self.give_up(record, error, attempts)
                if not self._try_again(record, error, attempts) or not self._owns(record):
                    return None

    def handle_batch(self, records: Sequence[Record]) -> list[Unit] | None:
        """Units for the records that are still ours at the end; None when we stop."""
        units: list[Unit] = []
        rest: list[Record] = []
        for record in records:
            readable = self._deserialize(record)
            if readable is True:
                rest.append(record)
            elif readable is not None:
                units.append(readable)
            elif self._owns(record):
                return None
        attempts = Attempts()
        while rest:
            for record in rest:
                record.attempt = attempts.count + 1
            try:
                # A list of its own: the handler may empty or sort it, and the records are still to be settled.
                units.append(Unit(rest, as_outputs(self._handler(list(rest)))))
                break
            except Poison as error:
                if self._only_once:
                    return units + self._give_up_all(rest, error)
                poisoned = next((each for each in rest if each is error.record), None)
                if poisoned is None:
                    return units + self._handle_alone(rest, attempts)
                alone = Attempts()
                alone.failed(self._now_ms())
                units.append(self.give_up(poisoned, error, alone))
                rest = [each for each in rest if each is not poisoned]
            except Exception as error:
                if self._only_once:
                    return units + self._give_up_all(rest, error)
                attempts.failed(self._now_ms())
                if attempts.count > self._retries:
                    return units + self._handle_alone(rest, attempts, error)
                if not self._try_again(rest[0], error, attempts):
                    return None
                rest = [each for each in rest if self._owns(each)]
        return units

    def _handle_alone(
        self, records: list[Record], before: Attempts, error: Exception | None = None
    ) -> list[Unit]:
        """Finds the records that are to blame: each is tried once, in a batch of its own."""
        if len(records) == 1 and error is not None:
            return [self.give_up(records[0], error, before)]
        units = []
        for record in records:
            record.attempt = before.count + 1
            try:
                units.append(Unit([record], as_outputs(self._handler([record]))))
            except Exception as own_error:
                attempts = Attempts()
                attempts.count, attempts.first_failure_ms = before.count, before.first_failure_ms
                attempts.failed(self._now_ms())
                units.append(self.give_up(record, own_error, attempts))
        return units

    def _give_up_all(self, records: Sequence[Record], error: Exception) -> list[Unit]:
        """The handler may have done its work for any of them, so none is given to it again."""
        attempts = Attempts()
        attempts.failed(self._now_ms())
        return [self.give_up(record, error, attempts) for record in records]

    def give_up(self, record: Record, error: Exception, attempts: Attempts) -> Unit:
        """A dead letter; HandlerFailed where there is no topic for it."""
        times = "1 attempt" if attempts.count == 1 else f"{attempts.count} attempts"
        if self._dead_letter_topic is None:
            raise HandlerFailed(f"{record} failed after {times}: {error!r}") from error
        topic = self._dead_letter_topic(record.topic)
        log.warning("%r failed after %s and goes to %s: %r", record, times, topic, error)
        letter = dead_letter(record, attempts.failure(error), group=self._group, to_topic=topic)
        return Unit([record], [letter], is_dead_letter=True)

    def refused(self, unit: Unit) -> list[Unit]:
        """Dead letters instead of outputs that can never be written."""
        assert unit.refusal is not None
        return self._give_up_all(unit.records, unit.refusal)

    def _try_again(self, record: Record, error: Exception, attempts: Attempts) -> bool:
        delay_s = self._backoff.delay_s(attempts.count, self._chance)
        log.info("%r failed (attempt %d), again in %.2f s: %r", record, attempts.count, delay_s, error)
        self.retried += 1
        return self._wait(delay_s)

    def _deserialize(self, record: Record) -> Literal[True] | Unit | None:
        """A dead letter when the bytes are not what they should be: another attempt would find the same bytes. Where what the
        deserializer asks does not answer, such as a schema registry, that says nothing about the record: it waits, however long
        that takes. None: given back, as by `handle_record`."""
        attempts = Attempts()
        while True:
            try:
                if self._key_deserializer is not None and record.raw_key is not None:
                    record.key = self._key_deserializer(record.raw_key)
                if self._value_deserializer is not None and record.raw_value is not None:
                    record.value = self._value_deserializer(record.raw_value)
                return True
            except (Unreachable, Refused) as error:
                attempts.failed(self._now_ms())
                log.warning("%r cannot be read now: %s", record, error)
                if not self._try_again(record, error, attempts) or not self._owns(record):
                    return None
            except Exception as error:
                attempts.failed(self._now_ms())
                return self.give_up(record, error, attempts)
