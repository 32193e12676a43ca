"""Replaying dead letters: each is written to its target and marked as replayed in one transaction.

A replay that is interrupted or killed is taken up by the next one; a second replay of the same topic at the same time
shuts out the first. So every dead letter is replayed once.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from penstock.admin.dead_letters.connect_letters import TRIES_NOT_TOLD
from penstock.admin.dead_letters.marks import ensure_mark_topic, mark_record
from penstock.admin.dead_letters.reading import REPLAY_GROUP, DeadLetterReader, Letter, matches
from penstock.client.clients import Connection, metadata, translated
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.record_sender import send
from penstock.consumer.dead_letters import DeadLetter, replay_headers
from penstock.consumer.hanging_calls import StillRunning, call_within
from penstock.consumer.record import Headers

log = logging.getLogger("penstock.admin")

CHUNK_LETTERS = 200  # in one transaction
CALL_TIMEOUT_S = 30.0
PATIENCE_S = 2 * CALL_TIMEOUT_S  # for another call, while the error says that it may help


class Choice(NamedTuple):
    to: str | None
    cause: str | None
    limit: int | None
    keeps_timestamps: bool


class Summary(NamedTuple):
    replayed: Counter[str]  # by target
    left: int  # not of the wanted cause
    foreign: int  # not dead letters
    is_limited: bool  # the rest was not looked at


class Replay:
    def __init__(self, connection: Connection, topic: str, choice: Choice, *, dry_run: bool) -> None:
        self._choice = choice
        self._topic = topic
        self._producer = None if dry_run else self._transactional_producer(connection)
        # The offsets are read after the producer has shut out whoever might still be moving them.
        self.reader = DeadLetterReader(connection, topic, has_marks=not dry_run)
        self._replayed = self.reader.replayed()
        self._partition_counts: dict[str, int] = {}
        self._chunk: list[Letter] = []
        self._counts: Counter[str] = Counter()
        self._left: dict[int, int] = {}  # partition → first offset that stays
        self._left_count = self._foreign_count = 0

    def _transactional_producer(self, connection: Connection) -> Any:
        from confluent_kafka import KafkaException

        settings = {
            "transactional.id": f"{REPLAY_GROUP}-{self._topic}", "transaction.timeout.ms": "60000",
            "partitioner": "murmur2_random", "message.max.bytes": "1000000000", "compression.type": "lz4",
            "client.id": "penstock-dlq",
        }  # fmt: skip
        ensure_mark_topic(connection)
        producer = connection.producer(settings)
        try:
            _patiently(lambda: producer.init_transactions(CALL_TIMEOUT_S))
        except KafkaException as error:
            raise translated(error) from None
        return producer

    def run(self, advance: Callable[[int], None]) -> Summary:
        """`advance` hears of every letter that has been looked at."""
        starts = {number: one.start_offset for number, one in self._replayed.items()}
        for letter in self.reader.letters(starts):
            self._consider(letter)
            advance(1)
            if len(self._chunk) >= CHUNK_LETTERS:
                self._write_chunk()
            if self._is_full():
                break
        self._write_chunk()
        return Summary(self._counts, self._left_count, self._foreign_count, is_limited=self._is_full())

    def close(self) -> None:
        self.reader.close()

    def _consider(self, letter: Letter) -> None:
        number, offset = letter.place
        if offset in self._replayed[number]:
            return
        if not letter.came_from_a_topic and self._choice.to is None:
            self._foreign_count += 1
        elif not matches(letter, self._choice.cause):
            self._left_count += 1
        else:
            self._chunk.append(letter)
            return
        self._left.setdefault(number, offset)

    def _is_full(self) -> bool:
        limit = self._choice.limit
        return limit is not None and self._counts.total() + len(self._chunk) >= limit

    def _write_chunk(self) -> None:
        chunk, self._chunk = self._chunk, []
        targets = Counter(self._target(letter) for letter in chunk)
        for target in targets:
            self._partition_count(target)
        if chunk and self._producer is not None:
            self._write(self._producer, chunk)
        self._counts += targets

    def _write(self, producer: Any, chunk: list[Letter]) -> None:
        from confluent_kafka import KafkaException

        positions = self._positions(chunk)
        topic_id = self.reader.topic_id
        group = self.reader.consumer.consumer_group_metadata()
        failures: list[str] = []
        try:
            producer.begin_transaction()
            for letter in chunk:
                self._produce(producer, letter, failures)
            for one in positions:
                place = self._topic, topic_id, one.partition
                producer.produce(**mark_record(*place, one.offset, one.metadata or ""))
            _patiently(
                lambda: call_within(
                    lambda: producer.send_offsets_to_transaction(positions, group, CALL_TIMEOUT_S),
                    2 * CALL_TIMEOUT_S,
                )
            )
            _patiently(lambda: producer.commit_transaction(CALL_TIMEOUT_S))
        except StillRunning:
            # The transaction ends by its timeout, or by the next replay.
            raise Unreachable("the cluster went away in the middle of a transaction; replay again.") from None
        except KafkaException as error:
            self._undo(producer, error.args[0], failures)

    def _undo(self, producer: Any, error: Any, failures: list[str]) -> NoReturn:
        """The letters of this chunk stay where they are."""
        from confluent_kafka import KafkaError, KafkaException

        if error.code() in (
            KafkaError._FENCED,
            KafkaError.PRODUCER_FENCED,
            KafkaError.INVALID_PRODUCER_EPOCH,
        ):
            raise Refused(f"another replay of {self._topic} has begun; this one ends.")
        done = self._counts.total()
        try:
            producer.abort_transaction(CALL_TIMEOUT_S)
        except KafkaException:
            pass  # then the coordinator does it
        reason = failures[0] if failures else error.str().removeprefix("Broker: ").removeprefix("Local: ")
        raise Refused(f"{done} dead letters were replayed, then one could not be written: {reason}")

    def _produce(self, producer: Any, letter: Letter, failures: list[str]) -> None:
        message, target = letter.message, self._target(letter)
        extra: dict[str, Any] = {}
        dead = letter.dead
        if dead is not None and target == dead.topic and 0 <= dead.partition < self._partition_count(target):
            extra["partition"] = dead.partition
        timestamp_ms = message.timestamp()[1] if dead is None else dead.timestamp_ms
        if self._choice.keeps_timestamps and timestamp_ms is not None:
            extra["timestamp"] = timestamp_ms

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(f"{target} refused it: {error.str().removeprefix('Broker: ')}")

        headers = list(message.headers() or ()) if dead is None else _headers_of(dead)
        send(
            producer,
            target,
            key=message.key(),
            value=message.value(),
            headers=headers,
            on_delivery=delivered,
            **extra,
        )

    def _target(self, letter: Letter) -> str:
        if self._choice.to is not None:
            return self._choice.to
        assert letter.dead is not None
        return letter.dead.topic

    def _partition_count(self, topic: str) -> int:
        if topic not in self._partition_counts:
            known = metadata(self.reader.consumer).topics.get(topic)
            if known is None:
                raise UserError(f"there is no topic '{topic}' to replay to.")
            self._partition_counts[topic] = len(known.partitions)
        return self._partition_counts[topic]

    def _positions(self, chunk: list[Letter]) -> list[Any]:
        import confluent_kafka

        for letter in chunk:
            number, offset = letter.place
            self._replayed[number].add(offset)
        positions = []
        for number in sorted({letter.place[0] for letter in chunk}):
            replayed = self._replayed[number]
            last = max(letter.place[1] for letter in chunk if letter.place[0] == number)
            replayed.skip_to(min(self._left.get(number, last + 1), last + 1))
            text = replayed.to_metadata()
            if text is None:
                raise UserError(
                    f"the choice leaves too many gaps in partition {number} of {self._topic} to be remembered: "
                    f"replay what lies before offset {last} first"
                )
            positions.append(
                confluent_kafka.TopicPartition(self._topic, number, replayed.start_offset, metadata=text)
            )
        return positions


def _headers_of(dead: DeadLetter) -> Headers:
    """A record of Connect's comes back as it first came."""
    return list(dead.headers) if dead.failure.attempts == TRIES_NOT_TOLD else replay_headers(dead)


def _patiently(step: Callable[[], object]) -> None:
    from penstock.client.librdkafka_calls import retriable_calls

    retriable_calls(step, "a transaction", timeout_s=PATIENCE_S, log=log)
