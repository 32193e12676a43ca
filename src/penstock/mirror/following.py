"""The bytes of many partitions, followed as they are written: a thread for each broker that leads some of them.

A thread asks for the next bytes as soon as it has seen the headers of the last ones, and receives them while those are written
elsewhere. At most ANSWERS_AHEAD answers wait for all brokers together, so memory is bounded by a few times `fetch.max.bytes`.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from penstock.client.brokers import Brokers
from penstock.client.connection import TRUSTED_BYTES, BrokerConnection
from penstock.client.error_names import error_name
from penstock.client.errors import AccessRefused, ReadFailed
from penstock.client.leaders import Leader
from penstock.client.options import ClientOptions
from penstock.client.patience import Retriable
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.records.columnar.kernels import next_offset_of
from penstock.wire.errors import Malformed
from penstock.wire.fetch_client import PartitionAnswer, read_response
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.wire.schema import ZERO_UUID

log = logging.getLogger("penstock.mirror")

ANSWERS_AHEAD: Final = 2
NOTHING_PAUSE_S: Final = 0.05
AGAIN_S: Final = 0.5
PUT_S: Final = 0.5
HIGHEST: Final = 17
HIGHEST_BY_NAME: Final = 12
EARLIEST: Final = -2
LATEST: Final = -1
READ_COMMITTED: Final = 1
_REFUSALS: Final = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNSUPPORTED_VERSION,
)


class Piece(NamedTuple):
    place: TopicPartition
    records: memoryview
    start_offset: int
    aborted: list[tuple[int, int]]


class Answer(NamedTuple):
    """Its bytes are good until it is given back."""

    pieces: list[Piece]
    buffer: bytearray


class _Lost(NamedTuple):
    """Partitions that a thread cannot go on with, from where, and what a broker has said."""

    places: dict[TopicPartition, int]
    cause: str
    out_of_range: frozenset[TopicPartition] = frozenset()
    is_hopeless: bool = False
    """Another attempt will not go better."""


class Follower:
    """`next` from one thread. `ends` has the end of each partition as the source last told it."""

    def __init__(
        self,
        options: ClientOptions,
        offsets: Mapping[TopicPartition, int],
        *,
        isolation_level: int,
        reset_to: int = EARLIEST,
    ) -> None:
        self.options, self.isolation_level = options, isolation_level
        self.ends: dict[TopicPartition, int] = {}
        self.stopped = threading.Event()
        self.events: queue.Queue[Answer | _Lost] = queue.Queue(ANSWERS_AHEAD)
        self.topic_ids: dict[str, bytes] = {}
        self.by_name = False
        self._brokers = Brokers(options)
        self._reset_to = reset_to
        self._waiting: dict[TopicPartition, int] = dict(offsets)
        self._ask_at_s = 0.0
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._threads: list[_Thread] = []
        self._failing_since_s: float | None = None

    def next(self, timeout_s: float) -> Answer | None:
        """ReadFailed when the source has not been there for `default.api.timeout.ms`."""
        if self._waiting and time.monotonic() >= self._ask_at_s:
            self._assign()
        try:
            event = self.events.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(event, Answer):
            self._failing_since_s = None
            return event
        if event.is_hopeless:
            raise ReadFailed(f"the source cluster cannot be read: {event.cause}")
        log.info("%d partitions are asked for anew: %s", len(event.places), event.cause)
        self._waiting.update(event.places)
        self._ask_at_s = time.monotonic() + (0.0 if event.out_of_range else AGAIN_S)
        for place in event.out_of_range:
            self._waiting[place] = self._reset_to
        return None

    def give_back(self, answer: Answer) -> None:
        self._free.put(answer.buffer)

    def take_buffer(self, size_bytes: int) -> bytearray:
        try:
            buffer = self._free.get_nowait()
        except queue.Empty:
            buffer = bytearray()
        return buffer if len(buffer) >= size_bytes else bytearray(size_bytes)

    def put(self, event: Answer | _Lost) -> None:
        while not self.stopped.is_set():
            try:
                self.events.put(event, timeout=PUT_S)
                return
            except queue.Full:
                continue

    def close(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.interrupt()
        for thread in self._threads:
            thread.join()
        self._brokers.close()

    def _assign(self) -> None:
        """A thread for each leader of those that nobody follows."""
        self._ask_at_s = time.monotonic() + AGAIN_S
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        try:
            leaders = self._leaders()
            by_leader: dict[tuple[int, str], dict[TopicPartition, int]] = {}
            for place, offset in self._started(leaders).items():
                alone = self.by_name or self.topic_ids.get(place.topic, ZERO_UUID) == ZERO_UUID
                key = leaders[place].node_id, place.topic if alone else ""
                by_leader.setdefault(key, {})[place] = offset
            for (node_id, _), places in by_leader.items():
                connection = self._brokers.connect(node_id)
                for place in places:
                    del self._waiting[place]
                thread = _Thread(self, connection, places, leaders)
                self._threads.append(thread)
                thread.start()
            self._failing_since_s = None
        except Retriable as error:
            self._brokers.doubt()
            now_s = time.monotonic()
            self._failing_since_s = self._failing_since_s or now_s
            if now_s - self._failing_since_s > self.options.default_api_timeout_ms / 1000:
                raise ReadFailed(f"the source cluster cannot be read: {error}") from None

    def _leaders(self) -> dict[TopicPartition, Leader]:
        """Of those that have one."""
        names = sorted({place.topic for place in self._waiting})
        found: dict[TopicPartition, Leader] = {}
        for topic in self._brokers.metadata(names).topics:
            if topic.error_code or topic.name is None:
                continue
            self.topic_ids[topic.name] = topic.topic_id
            for one in topic.partitions:
                if one.leader_id >= 0:
                    found[TopicPartition(topic.name, one.partition_index)] = Leader(
                        one.leader_id, one.leader_epoch
                    )
        return found

    def _started(self, leaders: Mapping[TopicPartition, Leader]) -> dict[TopicPartition, int]:
        """With the offsets that they begin from."""
        known = {place: offset for place, offset in self._waiting.items() if place in leaders}
        unknown = {place: offset for place, offset in known.items() if offset < 0}
        if unknown:
            found = self._brokers.offsets(unknown, leaders, isolation_level=self.isolation_level)
            known.update({place: offset or 0 for place, offset in found.items()})
            self._waiting.update({place: offset or 0 for place, offset in found.items()})
        return known


class _Thread(threading.Thread):
    def __init__(
        self,
        follower: Follower,
        connection: BrokerConnection,
        places: dict[TopicPartition, int],
        leaders: Mapping[TopicPartition, Leader],
    ) -> None:
        super().__init__(name="penstock-mirror-fetch", daemon=True)
        self._follower, self._connection = follower, connection
        self._places, self._leaders = places, leaders
        self._names = {follower.topic_ids.get(place.topic, ZERO_UUID): place.topic for place in places}
        self._has_ids = ZERO_UUID not in self._names
        self._only = next(iter(places)).topic

    def interrupt(self) -> None:
        self._connection.interrupt()

    def run(self) -> None:
        connection = self._connection
        try:
            self._read(connection)
        except (OSError, Malformed) as error:
            self._lose(f"the broker at {connection.address} stopped answering: {error}")
        except AccessRefused as error:
            self._lose(str(error), is_hopeless=True)
        except Exception as error:
            log.exception("reading from %s has failed", connection.address)
            self._lose(f"{type(error).__name__}: {error}")
        finally:
            connection.close()

    def _lose(self, cause: str, *, is_hopeless: bool = False) -> None:
        if self._places:
            self._follower.put(_Lost(dict(self._places), cause, is_hopeless=is_hopeless))

    def _read(self, connection: BrokerConnection) -> None:
        follower = self._follower
        version = connection.version(FetchRequest, highest=HIGHEST if self._has_ids else HIGHEST_BY_NAME)
        by_id = version > HIGHEST_BY_NAME
        if not by_id and len({place.topic for place in self._places}) > 1:
            follower.by_name = True  # an answer would not say of which topic it is
            self._lose("it knows topics by name only")
            return
        connection.send(self._request(by_id=by_id), version)
        while self._places and not follower.stopped.is_set():
            size = connection.receive_size()
            buffer = connection.receive(size, follower.take_buffer(min(size, TRUSTED_BYTES)))
            frame = memoryview(buffer)[:size]
            at = connection.body_offset(frame, is_flexible=version >= FetchRequest.FLEXIBLE_FROM)
            answer = read_response(frame[at:], version)
            if answer.error_code:
                self._lose(error_name(answer.error_code))
                return
            pieces, lost = self._settle(answer.partitions, by_id=by_id)
            if not answer.partitions:
                follower.stopped.wait(NOTHING_PAUSE_S)  # held to a quota, or broken
            failure: OSError | None = None
            if self._places:
                try:
                    connection.send(self._request(by_id=by_id), version)
                except OSError as error:
                    failure = error  # what has been received still counts
            if pieces:
                follower.put(Answer(pieces, buffer))
            for event in lost:
                follower.put(event)
            if failure is not None:
                raise failure

    def _settle(self, answers: list[PartitionAnswer], *, by_id: bool) -> tuple[list[Piece], list[_Lost]]:
        pieces, lost = [], []
        follower = self._follower
        is_committed = follower.isolation_level == READ_COMMITTED
        for answer in answers:
            topic = self._names.get(answer.topic_id, "") if by_id else self._only
            place = TopicPartition(topic, answer.partition)
            offset = self._places.get(place)
            if offset is None:
                continue
            if answer.error_code:
                del self._places[place]
                is_out = answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
                cause = f"{place} at {offset}: {error_name(answer.error_code)}"
                is_hopeless = answer.error_code in _REFUSALS
                lost.append(
                    _Lost(
                        {place: offset}, cause, frozenset([place] if is_out else []), is_hopeless=is_hopeless
                    )
                )
                continue
            follower.ends[place] = answer.last_stable_offset if is_committed else answer.high_watermark
            if answer.records is None:
                continue
            next_offset = int(next_offset_of(np.frombuffer(answer.records, dtype=np.uint8), offset))
            if next_offset > offset:
                pieces.append(Piece(place, answer.records, offset, answer.aborted))
                # To the end of the list: who was served last is not asked for first.
                del self._places[place]
                self._places[place] = next_offset
        return pieces, lost

    def _request(self, *, by_id: bool) -> FetchRequest:
        options = self._follower.options
        topics: dict[str, list[FetchPartition]] = {}
        for place, offset in self._places.items():
            topics.setdefault(place.topic, []).append(
                FetchPartition(
                    partition=place.partition,
                    current_leader_epoch=self._leaders[place].epoch,
                    fetch_offset=offset,
                    partition_max_bytes=options.max_partition_fetch_bytes,
                )
            )
        ids = self._follower.topic_ids
        return FetchRequest(
            max_wait_ms=options.fetch_max_wait_ms,
            min_bytes=1,
            max_bytes=options.fetch_max_bytes,
            isolation_level=self._follower.isolation_level,
            topics=[
                FetchTopic(topic_id=ids[name] if by_id else ZERO_UUID, topic=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
