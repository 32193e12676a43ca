"""Reading ranges of a topic's partitions, ahead of whoever decodes them.

One thread per leader asks for the next bytes as soon as it has seen the headers of the last ones, and receives them while
those are decoded; both leave the interpreter's lock for that. At most `ANSWERS_AHEAD` answers wait, so memory is bounded
by a few times `fetch.max.bytes`, whatever a topic holds.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from penstock.client.connection import TRUSTED_BYTES, BrokerConnection
from penstock.client.error_names import error_name
from penstock.client.errors import AccessRefused, ReadFailed
from penstock.client.leaders import NO_LEADER, READ_AGAIN
from penstock.client.options import ClientOptions
from penstock.client.patience import Patience, Retriable
from penstock.client.topics import Client, Topic
from penstock.model.errors import ErrorCode
from penstock.records.columnar.kernels import next_offset_of
from penstock.wire.errors import Malformed
from penstock.wire.fetch_client import PartitionAnswer, read_response
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.wire.schema import ZERO_UUID

ANSWERS_AHEAD: Final = 2
EMPTY_ANSWER_PAUSE_S: Final = 0.1
GAP_PATIENCE_S: Final = 3.0
"""For so long a broker is asked again that sends nothing of a log which goes on: a read of tiered storage that takes longer than
the broker waits for it is answered so, and so is a range whose last records a compaction has removed.
"""
STOP_CHECK_S: Final = 0.05
_HIGHEST_VERSION: Final = 17
_HIGHEST_BY_NAME: Final = 12
READ_COMMITTED: Final = 1


class Range(NamedTuple):
    """Of one partition; `end_offset` is exclusive."""

    start_offset: int
    end_offset: int


class Piece(NamedTuple):
    """Bytes of one partition. They are good until the next piece is asked for."""

    partition: int
    records: memoryview
    start_offset: int
    end_offset: int
    aborted: list[tuple[int, int]]


class _Answer(NamedTuple):
    pieces: list[Piece]
    buffer: bytearray


class _Lost(NamedTuple):
    """What a thread cannot go on with: partitions with their ranges, and why."""

    ranges: dict[int, Range]
    cause: str
    is_retriable: bool
    may_be_compacted: bool = False
    """Nothing comes, though the log goes on: right where a compaction has removed the rest of the range, and nowhere else."""


def fetch(
    client: Client,
    topic: Topic,
    ranges: Mapping[int, Range],
    *,
    isolation_level: int,
    stopped: threading.Event | None = None,
) -> Iterator[Piece]:
    """Every byte of the ranges, and up to one batch around them. ReadFailed when it cannot go on. When somebody sets `stopped` it
    ends before, also while a broker keeps silent.
    """
    reading = _Reading(client.options, topic, isolation_level)
    failing: dict[int, Patience] = {}  # with each partition, since it fails
    left = {partition: one for partition, one in ranges.items() if one.start_offset < one.end_offset}
    try:
        reading.start(client, left)
        while reading.running:
            if stopped is not None and stopped.is_set():
                return
            try:
                event = reading.events.get(timeout=None if stopped is None else STOP_CHECK_S)
            except queue.Empty:
                continue
            if event is None:
                reading.running -= 1
            elif isinstance(event, _Answer):
                for piece in event.pieces:
                    failing.pop(piece.partition, None)
                    yield piece
                reading.give_back(event)
            elif event.may_be_compacted and client.is_compacted(topic):
                continue  # the rest of the range is not there any more
            else:
                _be_patient(event, topic, failing, client.options)
                client.doubt()
                reading.start(client, event.ranges)
    finally:
        reading.stop()


def _be_patient(lost: _Lost, topic: Topic, failing: dict[int, Patience], options: ClientOptions) -> None:
    for partition in lost.ranges:
        failing.setdefault(partition, options.patience())
    longest = min(lost.ranges, key=lambda partition: failing[partition].deadline_s)
    if not lost.is_retriable or not failing[longest].pause():
        raise ReadFailed(f"{topic.name}-{longest}: {lost.cause}")


class _Reading:
    """The threads of one read, and what they share: the queue of events and buffers to be used again."""

    def __init__(self, options: ClientOptions, topic: Topic, isolation_level: int) -> None:
        self.options = options
        self.topic = topic
        self.isolation_level = isolation_level
        # None: a thread has ended
        self.events: queue.Queue[_Answer | _Lost | None] = queue.Queue(ANSWERS_AHEAD)
        self.stopped = threading.Event()
        self.running = 0
        """Threads whose last event has not been seen yet."""
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._threads: list[_LeaderThread] = []

    def start(self, client: Client, ranges: Mapping[int, Range]) -> None:
        """One more thread for each leader of these partitions, as the cluster is now."""
        if not ranges:
            return
        now = client.topic(self.topic.name)
        if now.topic_id != self.topic.topic_id:
            raise ReadFailed(f"{self.topic.name} was deleted and created anew while it was read")
        by_leader: dict[int, dict[int, Range]] = {}
        for partition, one in ranges.items():
            by_leader.setdefault(now.leaders.get(partition, NO_LEADER).node_id, {})[partition] = one
        for leader, partitions in by_leader.items():
            try:
                connection = client.connect(leader)
            except Retriable as error:
                thread = _LeaderThread(self, None, partitions, now, cause=str(error))
            else:
                thread = _LeaderThread(self, connection, partitions, now)
            self._threads.append(thread)
            self.running += 1
            thread.start()

    def put(self, event: _Answer | _Lost | None) -> None:
        while not self.stopped.is_set():
            try:
                self.events.put(event, timeout=0.5)
                break
            except queue.Full:
                continue

    def take_buffer(self, size_bytes: int) -> bytearray:
        """Used memory is warm: the pages of a new buffer would cost as much as receiving into them."""
        try:
            buffer = self._free.get_nowait()
        except queue.Empty:
            buffer = bytearray()
        return buffer if len(buffer) >= size_bytes else bytearray(size_bytes)

    def give_back(self, answer: _Answer) -> None:
        self._free.put(answer.buffer)

    def stop(self) -> None:
        self.stopped.set()
        while not self.events.empty():  # whoever waits for room in it need not wait any more
            self.events.get_nowait()
        for thread in self._threads:
            thread.interrupt()
        for thread in self._threads:
            thread.join()


class _LeaderThread(threading.Thread):
    def __init__(
        self,
        reading: _Reading,
        connection: BrokerConnection | None,
        ranges: dict[int, Range],
        topic: Topic,
        cause: str = "",
    ) -> None:
        super().__init__(name=f"penstock-fetch-{reading.topic.name}", daemon=True)
        self._reading = reading
        self._connection = connection
        self._ranges = ranges
        self._leaders = topic.leaders
        self._cause = cause
        # partition → since when no answer has brought anything of it, though it should have
        self._stuck: dict[int, float] = {}

    def interrupt(self) -> None:
        if self._connection is not None:
            self._connection.interrupt()

    def run(self) -> None:
        reading = self._reading
        connection = self._connection
        try:
            if connection is None:
                reading.put(_Lost(self._ranges, self._cause, is_retriable=True))
                return
            try:
                self._read(connection)
            except (OSError, Malformed) as error:
                cause = f"the broker at {connection.address} stopped answering: {error}"
                reading.put(_Lost(self._ranges, cause, is_retriable=True))
            except AccessRefused as error:  # when it was time to log in again
                reading.put(_Lost(self._ranges, str(error), is_retriable=False))
            except Exception as error:
                reading.put(_Lost(self._ranges, f"{type(error).__name__}: {error}", is_retriable=False))
            finally:
                connection.close()
        finally:
            reading.put(None)

    def _read(self, connection: BrokerConnection) -> None:
        reading = self._reading
        by_id = reading.topic.topic_id != ZERO_UUID
        highest = _HIGHEST_VERSION if by_id else _HIGHEST_BY_NAME
        version = connection.version(FetchRequest, highest=highest)
        is_flexible = version >= FetchRequest.FLEXIBLE_FROM
        if self._ranges:
            connection.send(self._request(), version)
        while self._ranges and not reading.stopped.is_set():
            size = connection.receive_size()
            buffer = connection.receive(size, reading.take_buffer(min(size, TRUSTED_BYTES)))
            frame = memoryview(buffer)[:size]
            offset = connection.body_offset(frame, is_flexible=is_flexible)
            answer = read_response(frame[offset:], version)
            answers = answer.partitions
            pieces, lost = self._settle(answer.error_code, answers)
            if not pieces:
                # No answer to what was asked. A broker that holds us to a quota says that it is patient; one that is
                # broken, or has nothing for us yet, should not keep a processor busy.
                reading.stopped.wait(EMPTY_ANSWER_PAUSE_S)
            failure: OSError | None = None
            if self._ranges:
                # Asked for before the last answer is handed on: the broker and the network work meanwhile.
                try:
                    connection.send(self._request(), version)
                except OSError as error:
                    failure = error  # what has been received still counts
            if pieces:
                reading.put(_Answer(pieces, buffer))
            for event in lost:
                reading.put(event)
            if failure is not None:
                raise failure

    def _request(self) -> FetchRequest:
        options = self._reading.options
        topic = self._reading.topic
        partitions = [
            FetchPartition(
                partition=partition,
                current_leader_epoch=self._leaders.get(partition, NO_LEADER).epoch,
                fetch_offset=one.start_offset,
                partition_max_bytes=options.max_partition_fetch_bytes,
            )
            for partition, one in self._ranges.items()
        ]
        return FetchRequest(
            max_wait_ms=options.fetch_max_wait_ms,
            min_bytes=1,
            max_bytes=options.fetch_max_bytes,
            isolation_level=self._reading.isolation_level,
            topics=[FetchTopic(topic_id=topic.topic_id, topic=topic.name, partitions=partitions)],
        )

    def _settle(self, error_code: int, answers: list[PartitionAnswer]) -> tuple[list[Piece], list[_Lost]]:
        """The pieces of an answer; moves the ranges on, and takes away those that are done or must go elsewhere."""
        if error_code:
            lost = _Lost(self._ranges, error_name(error_code), is_retriable=error_code in READ_AGAIN)
            self._ranges = {}
            return [], [lost]
        pieces: list[Piece] = []
        losses: list[_Lost] = []
        is_empty = not any(answer.records for answer in answers)
        for partition in self._ranges.keys() - {answer.partition for answer in answers}:
            if self._stays_stuck(partition):
                lost = _Lost(
                    {partition: self._ranges.pop(partition)}, "the broker leaves it out", is_retriable=False
                )
                losses.append(lost)
        for answer in answers:
            one = self._ranges.pop(answer.partition, None)
            if one is None:
                continue
            if answer.error_code:
                losses.append(_loss(answer, one))
                continue
            next_offset = one.start_offset
            if answer.records is not None:
                next_offset = next_offset_of(np.frombuffer(answer.records, dtype=np.uint8), one.start_offset)
            if answer.records is not None and next_offset > one.start_offset:
                self._stuck.pop(answer.partition, None)
                pieces.append(Piece(answer.partition, answer.records, *one, answer.aborted))
            elif is_empty and self._log_end(answer) >= one.end_offset:
                if self._stays_stuck(answer.partition, GAP_PATIENCE_S):
                    losses.append(_missing(one, answer.partition))
                    continue
            elif not is_empty and answer.records is None:
                self._stuck.pop(answer.partition, None)  # others took all the room of this answer
            elif self._stays_stuck(answer.partition):
                losses.append(_ended(answer, one, self._log_end(answer)))
                continue
            if next_offset < one.end_offset:
                # To the end of the list: who was served last is asked for first by nobody.
                self._ranges[answer.partition] = Range(next_offset, one.end_offset)
        return pieces, losses

    def _log_end(self, answer: PartitionAnswer) -> int:
        committed = self._reading.isolation_level == READ_COMMITTED
        return answer.last_stable_offset if committed else answer.high_watermark

    def _stays_stuck(self, partition: int, patience_s: float = math.inf) -> bool:
        """Whether that has gone on for too long: the log has lost records, or the broker is broken.

        A new leader learns soon where its log ends.
        """
        now = time.monotonic()
        since = self._stuck.setdefault(partition, now)
        return now - since > min(patience_s, self._reading.options.default_api_timeout_ms / 1000)


def _ended(answer: PartitionAnswer, one: Range, log_end: int) -> _Lost:
    cause = f"it ends at {log_end}, though records up to {one.end_offset} were there"
    if answer.records is not None:
        cause = f"what the broker sends holds no batch with records from offset {one.start_offset} on"
    return _Lost({answer.partition: one}, cause, is_retriable=False)


def _missing(one: Range, partition: int) -> _Lost:
    cause = f"the broker sends nothing from offset {one.start_offset} on, though the log goes on to {one.end_offset}"
    return _Lost({partition: one}, cause, is_retriable=True, may_be_compacted=True)


def _loss(answer: PartitionAnswer, one: Range) -> _Lost:
    ranges = {answer.partition: one}
    if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        cause = f"the records from offset {one.start_offset} on were deleted while they were read"
        return _Lost(ranges, cause, is_retriable=False)
    return _Lost(ranges, error_name(answer.error_code), is_retriable=answer.error_code in READ_AGAIN)
