"""Reading a dead letter topic from its beginning to its end as of now, and what has been replayed of it before.

What was replayed is kept with the offsets of the group `penstock-dlq-replay`: the committed offset is the first dead
letter that is still to be replayed, and its metadata holds one bit for each letter behind it, so that a choice by cause
can leave some for later. With 4,096 characters of metadata that reaches at least 24,000 letters beyond the first one
left out, and usually much further. Where the cluster has forgotten the offsets, `dlq_marks.py` has the same.
"""

from __future__ import annotations

import base64
import binascii
import time
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from penstock.admin.dead_letters.connect_letters import NOWHERE, parse_connect
from penstock.admin.dead_letters.marks import is_mark_topic_there, read_marks, topic_id_of
from penstock.client.clients import Connection, metadata, translated
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.consumer.dead_letters import DeadLetter, parse

REPLAY_GROUP = "penstock-dlq-replay"
METADATA_PREFIX = "replayed:"
METADATA_MAX_CHARACTERS = 4096  # offset.metadata.max.bytes of a broker, unless it was changed
TIMEOUT_S = 30.0
POLL_S = 0.2


class Letter(NamedTuple):
    """A record of a dead letter topic; `dead` is None where the record is not a dead letter of ours or of Connect's."""

    message: Any
    dead: DeadLetter | None

    @property
    def place(self) -> tuple[int, int]:
        return self.message.partition(), self.message.offset()

    @property
    def came_from_a_topic(self) -> bool:
        """It can go back there. One of a source of Connect's never was in a topic."""
        return self.dead is not None and self.dead.partition != NOWHERE


class Replayed:
    """Which offsets of one partition have been replayed."""

    def __init__(self, start_offset: int = 0, bits: int = 0) -> None:
        self.start_offset = start_offset  # everything before it has
        self.bits = bits  # bit n: start_offset + n

    def __contains__(self, offset: int) -> bool:
        return offset < self.start_offset or bool(self.bits >> (offset - self.start_offset) & 1)

    def add(self, offset: int) -> None:
        if offset not in self:
            self.bits |= 1 << (offset - self.start_offset)

    def skip_to(self, offset: int) -> None:
        """Nothing that is to be replayed lies before `offset`."""
        if offset > self.start_offset:
            self.bits >>= offset - self.start_offset
            self.start_offset = offset
        self._settle()

    def _settle(self) -> None:
        while self.bits & 1:
            self.bits >>= 1
            self.start_offset += 1

    def to_metadata(self) -> str | None:
        """None when it does not fit."""
        if not self.bits:
            return ""
        data = self.bits.to_bytes((self.bits.bit_length() + 7) // 8, "little")
        text = METADATA_PREFIX + base64.b64encode(zlib.compress(data, 9)).decode()
        return text if len(text) <= METADATA_MAX_CHARACTERS else None

    @classmethod
    def of_metadata(cls, start_offset: int, text: str | None) -> Replayed:
        if not text or not text.startswith(METADATA_PREFIX):
            return cls(start_offset)
        try:
            data = zlib.decompress(base64.b64decode(text.removeprefix(METADATA_PREFIX), validate=True))
        except (binascii.Error, zlib.error):
            raise UserError(
                f"the offsets of the group {REPLAY_GROUP} are not by this command: {text[:50]}"
            ) from None
        return cls(start_offset, int.from_bytes(data, "little"))


class DeadLetterReader:
    """Reads each partition up to where it ended when reading began; what comes later is for the next time.

    `has_marks`: somebody has made the topic of the marks. Else it is looked for, and none is a topic that is not there.
    """

    def __init__(self, connection: Connection, topic: str, *, has_marks: bool = False) -> None:
        settings = {
            "group.id": REPLAY_GROUP, "enable.auto.commit": "false", "auto.offset.reset": "earliest",
            "isolation.level": "read_committed", "enable.partition.eof": "true", "client.id": "penstock-dlq",
        }  # fmt: skip
        self.topic = topic
        self._connection = connection
        self._has_marks = has_marks
        self.consumer = connection.consumer(settings)
        known = metadata(self.consumer).topics.get(topic)
        if known is None:
            raise UserError(f"there is no topic '{topic}'.")
        self.partitions = sorted(known.partitions)
        self.ends = {number: self._span(number)[1] for number in self.partitions}

    @cached_property
    def topic_id(self) -> str:
        return topic_id_of(self._connection, self.topic)

    def replayed(self) -> dict[int, Replayed]:
        import confluent_kafka

        asked = [confluent_kafka.TopicPartition(self.topic, number) for number in self.partitions]
        try:
            found = self.consumer.committed(asked, timeout=TIMEOUT_S)
        except confluent_kafka.KafkaException as error:
            raise translated(error) from None
        for one in found:
            if one.error is not None:
                raise translated(confluent_kafka.KafkaException(one.error))
        kept = {one.partition: (one.offset, one.metadata) for one in found if one.offset >= 0}
        if len(kept) < len(asked) and (self._has_marks or is_mark_topic_there(self._connection)):
            kept = {**read_marks(self._connection, self.topic, self.topic_id), **kept}
        return {
            number: Replayed.of_metadata(*kept[number]) if number in kept else Replayed()
            for number in self.partitions
        }

    def letters(self, starts: dict[int, int] | None = None) -> Iterator[Letter]:
        """From `starts` or from the beginning; oldest first within each partition."""
        import confluent_kafka

        begin = {
            number: max((starts or {}).get(number, 0), self._span(number)[0]) for number in self.partitions
        }
        unfinished = {number for number in self.partitions if begin[number] < self.ends[number]}
        self.consumer.assign(
            [
                confluent_kafka.TopicPartition(self.topic, number, begin[number])
                for number in sorted(unfinished)
            ]
        )
        heard_s = time.monotonic()
        while unfinished:
            message: Any = self.consumer.poll(POLL_S)
            if message is None:
                if time.monotonic() - heard_s > TIMEOUT_S:
                    raise Unreachable(f"nothing comes from {self.topic} any more; try again.")
                continue
            number, error = message.partition(), message.error()
            if error is None or error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                heard_s = time.monotonic()
                # A leader that was just elected may say too early that there is no more.
                if message.offset() >= self.ends[number]:
                    unfinished.discard(number)
                elif error is None:
                    headers = list(message.headers() or ())
                    yield Letter(message, parse(headers) or parse_connect(headers, message.timestamp()[1]))
            elif not error.retriable():
                raise Refused(error.str(), code=error.code())

    def close(self) -> None:
        self.consumer.close()

    def _span(self, number: int) -> tuple[int, int]:
        import confluent_kafka

        try:
            found: tuple[int, int] = self.consumer.get_watermark_offsets(
                confluent_kafka.TopicPartition(self.topic, number), timeout=TIMEOUT_S
            )
        except confluent_kafka.KafkaException as error:
            raise translated(error) from None
        return found


def matches(letter: Letter, cause: str | None) -> bool:
    """`cause` is a class name, with or without its module, or a part of the message; letter case does not count."""
    if cause is None:
        return True
    if letter.dead is None:
        return False
    wanted, failure = cause.lower(), letter.dead.failure
    name = failure.cause.lower()
    return wanted in (name, name.rpartition(".")[2]) or wanted in failure.message.lower()
