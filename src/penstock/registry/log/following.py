"""The topic is read to its end, and then followed, in a thread.

Each record is read once, in order. What a broker says for the moment is asked again without end; `problem` says what is wrong
meanwhile. A topic that was made anew, or that ends before what has been read, is not the one that the state is of: then
everything is read again from the beginning.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from penstock.client.connection import BrokerConnection
from penstock.client.error_names import error_name
from penstock.client.errors import ReadFailed
from penstock.client.leaders import NO_LEADER
from penstock.client.options import ClientOptions
from penstock.client.patience import Retriable
from penstock.client.topics import EARLIEST, LATEST, Client, Topic
from penstock.model.errors import ErrorCode
from penstock.records.batch import InvalidRecord
from penstock.records.walk import iterate_batches_records
from penstock.registry.records import Read
from penstock.registry.terms import HEADER
from penstock.wire.errors import Malformed
from penstock.wire.fetch_client import READ_UNCOMMITTED, read_response
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.wire.schema import ZERO_UUID

log = logging.getLogger("penstock.registry")

RETRY_S: Final = 0.2
MAX_WAIT_MS: Final = 500
CHUNK_RECORDS: Final = 200
GAP_PATIENCE_S: Final = 3.0
_HIGHEST_VERSION: Final = 17
_HIGHEST_BY_NAME: Final = 12

Apply = Callable[[Sequence[Read], int], None]
"""Gets records, and the offset behind them, which moves also where there are none."""


class _BeginAgain(Exception):
    """What was read is not in the topic any more."""


class Following:
    """`begin` is called before the first record, and again when everything is read again; `apply` may block; `caught_up` is
    called when what was in the topic at the beginning has been applied."""

    def __init__(
        self,
        options: ClientOptions,
        topic: str,
        *,
        begin: Callable[[], None],
        apply: Apply,
        caught_up: Callable[[], None],
    ) -> None:
        self._options = options
        self._name = topic
        self._begin = begin
        self._apply = apply
        self._caught_up = caught_up
        self._topic: Topic | None = None
        self._position = 0
        self._end = 0
        self._has_caught_up = False
        self._empty_since_s: float | None = None
        self._connection: BrokerConnection | None = None
        self._stopped = threading.Event()
        self.problem: str | None = "the topic has not been read yet"
        self._thread = threading.Thread(target=self._run, name="penstock-following", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self._stopped.set()
        if self._connection is not None:
            self._connection.interrupt()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        client = Client(self._options, is_known=True)
        try:
            while not self._stopped.is_set():
                try:
                    self._follow(client)
                except _BeginAgain as error:
                    log.error("%s is read again from the beginning: %s", self._name, error)
                    self._topic = None
                except (Retriable, ReadFailed, OSError, Malformed, InvalidRecord) as error:
                    if not self._stopped.is_set():
                        self._say(str(error))
                    client.doubt()
                except Exception:
                    log.exception("A bug in the thread that reads %s", self._name)
                    self._say("there is a bug, see the log")
                self._stopped.wait(RETRY_S)
        finally:
            client.close()

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("Reading %s: %s", self._name, problem)
        self.problem = problem

    def _follow(self, client: Client) -> None:
        topic = client.topic(self._name)
        if self._topic is None:
            self._from_beginning(client, topic)
        elif topic.topic_id != self._topic.topic_id:
            raise _BeginAgain("the topic was deleted and created anew")
        self._topic = topic
        leader = topic.leaders.get(0, NO_LEADER)
        connection = client.connect(leader.node_id)
        self._connection = connection
        try:
            if self.problem is not None and self._has_caught_up:
                log.info("Reading %s goes on", self._name)
                self.problem = None
            while not self._stopped.is_set():
                self._take(connection, topic, leader.epoch)
        finally:
            self._connection = None
            connection.close()

    def _from_beginning(self, client: Client, topic: Topic) -> None:
        self._position = client.offsets(topic, {0: EARLIEST}, isolation_level=READ_UNCOMMITTED)[0] or 0
        self._end = client.offsets(topic, {0: LATEST}, isolation_level=READ_UNCOMMITTED)[0] or 0
        self._has_caught_up = False
        self._begin()
        self._check_end()

    def _check_end(self) -> None:
        if not self._has_caught_up and self._position >= self._end:
            self._has_caught_up = True
            self.problem = None
            self._caught_up()

    def _take(self, connection: BrokerConnection, topic: Topic, epoch: int) -> None:
        by_id = topic.topic_id != ZERO_UUID
        version = connection.version(FetchRequest, highest=_HIGHEST_VERSION if by_id else _HIGHEST_BY_NAME)
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=epoch,
            fetch_offset=self._position,
            partition_max_bytes=self._options.max_partition_fetch_bytes,
        )
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=self._options.fetch_max_bytes,
            isolation_level=READ_UNCOMMITTED,
            topics=[FetchTopic(topic_id=topic.topic_id, topic=topic.name, partitions=[partition])],
        )
        connection.send(request, version)
        size = connection.receive_size()
        frame = memoryview(connection.receive(size, bytearray(min(size, 1 << 20))))[:size]
        offset = connection.body_offset(frame, is_flexible=version >= FetchRequest.FLEXIBLE_FROM)
        answer = read_response(frame[offset:], version)
        if answer.error_code:
            raise Retriable(error_name(answer.error_code))
        for found in answer.partitions:
            if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                raise _BeginAgain(f"offset {self._position} is not there any more")
            if found.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                raise Retriable("the topic is not known by its id")
            if found.error_code:
                raise Retriable(error_name(found.error_code))
            if found.records is not None and len(found.records):
                self._hand_on(found.records)
            elif self._position < self._end and self._position < found.high_watermark:
                # Compaction has left nothing up to the end, or the broker has nothing yet.
                self._skip_gap(found.high_watermark)
        self._check_end()

    def _skip_gap(self, high_watermark: int) -> None:
        now_s = time.monotonic()
        if self._empty_since_s is None:
            self._empty_since_s = now_s
        elif now_s - self._empty_since_s > GAP_PATIENCE_S:
            self._position = min(self._end, high_watermark)
            self._apply((), self._position)

    def _hand_on(self, records: memoryview) -> None:
        self._empty_since_s = None
        chunk: list[Read] = []
        for header, batch in iterate_batches_records(records):
            if header.last_offset < self._position:
                continue
            if not header.is_control:
                for record in batch:
                    if record.offset < self._position:
                        continue
                    term = next((value for name, value in record.headers if name == HEADER), None)
                    chunk.append(Read(record.offset, record.timestamp, record.key, record.value, term))
                    if len(chunk) >= CHUNK_RECORDS:
                        self._apply(chunk, chunk[-1].offset + 1)
                        chunk = []
            self._position = header.last_offset + 1
        self._apply(chunk, self._position)
