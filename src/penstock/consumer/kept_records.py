"""The records of some keys in a compacted topic, which keeps the last of each: what one process leaves there for the next.

Somebody else's open transaction must not keep a reader waiting for whom there is nothing. So it looks first whether there is a
record at all, committed or not; and then waits only until those up to the last one are decided.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from penstock.client.librdkafka_calls import RETRIABLE_CODES, retriable_calls

log = logging.getLogger("penstock.consumer")

CALL_TIMEOUT_S: Final = 5.0  # one call; it is made again while the broker says that it may help
POLL_S: Final = 0.1
# Behind the last record is the end of its transaction, which only an answer without records tells.
FETCH_WAIT_MS: Final = 10


class NotDecided(Exception):
    """The topic cannot be read to where the last record is, or not in time."""


def read_kept(
    open_consumer: Callable[[dict[str, Any]], Consumer],
    place: TopicPartition,
    is_own: Callable[[bytes], bool],
    *,
    patience_s: float,
) -> list[Message]:
    """Those whose key `is_own`, the oldest first; the topic must be there. `open_consumer` adds its settings to these."""

    def read(isolation_level: str, end: int | None = None) -> list[Message]:
        settings = {"isolation.level": isolation_level, "fetch.wait.max.ms": FETCH_WAIT_MS}

        def attempt() -> list[Message]:
            # Each time another client: one that has been told nonsense about its cluster may stay with that for long.
            consumer = open_consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
            try:
                records = _records(consumer, place, end, patience_s)
                return [record for record in records if is_own(record.key() or b"")]
            finally:
                consumer.close()

        what = f"what is kept in {place.topic}"
        return retriable_calls(attempt, what, timeout_s=patience_s, log=log, codes=RETRIABLE_CODES)

    undecided = read("read_uncommitted")
    return read("read_committed", (undecided[-1].offset() or 0) + 1) if undecided else []


def _records(
    consumer: Consumer, place: TopicPartition, end: int | None, patience_s: float
) -> Iterator[Message]:
    """Up to `end`, or to where the partition ends now."""
    deadline_s = time.monotonic() + patience_s
    # Asked also where it is not needed: the client has learnt of the leader then, and does not wait to look again.
    present_end = _end(consumer, place)
    reached, end = 0, present_end if end is None else end
    consumer.assign([TopicPartition(place.topic, place.partition, OFFSET_BEGINNING)])
    while reached < end:
        message = consumer.poll(POLL_S)
        if time.monotonic() > deadline_s:
            raise NotDecided(f"{place.topic} cannot be read to {end}: a transaction is open since {reached}")
        if message is None:
            continue
        error = message.error()
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            reached = (message.offset() or 0) + (error is None)
        elif error.code() not in RETRIABLE_CODES:
            raise KafkaException(error)
        if error is None:
            yield message


def _end(consumer: Consumer, place: TopicPartition) -> int:
    told = consumer.get_watermark_offsets(
        TopicPartition(place.topic, place.partition), timeout=CALL_TIMEOUT_S
    )
    if told is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    return int(told[1])
