"""The host of a coordinator: does what its shards decide.

A shard lives for each partition of the coordinator's internal topic. It is made by reading the partition's log, once: soon
after the start, or when somebody asks; from then on a request is one step: decide, append, replay, set alarms, answer. On
one node an append is committed at once, so most answers are ready when the step ends and cost no task; a JoinGroup or
SyncGroup that is parked costs one future.

Time is monotonic here (counted from the wall clock at the start): a wall clock that is set must not end
everybody's session. `group_host.py` and `transaction_host.py` say what is particular about the two coordinators.
"""

import logging
from asyncio import Future, Lock, Task, TimerHandle, sleep, wait_for
from collections.abc import Callable, Iterator
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from penstock.broker.cold_reads import is_cold
from penstock.coordination.alarms import AlarmHeap
from penstock.coordination.form import NO_PRODUCER_ID, Alarm, Outcome, RequestContext, Shard, Ticket
from penstock.coordination.placement import partition_for
from penstock.metadata.image import Topic
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, iterate_headers
from penstock.records.build import build_batch
from penstock.records.marker import marker_of
from penstock.records.walk import read_pairs

if TYPE_CHECKING:
    from penstock.broker.call import Call
    from penstock.broker.node import Node
    from penstock.broker.partition import Partition

log = logging.getLogger("penstock.broker")

LOAD_CHUNK_BYTES: Final = 64 * 1024
"""Replayed before others get their turn: about 10 ms."""
LOAD_WAIT_SECONDS: Final = 1.0
"""A request waits this long for its shard to be loaded; then the client is told to come back."""
LOAD_AGAIN_SECONDS: Final = 1.0
"""After a shard was given up because its log did not take a record."""
BATCH_BYTES: Final = 4 * 1024 * 1024
"""An outcome is one batch, which a crash keeps or loses as a whole. Only more than this (tens of thousands of offsets that are
forgotten together) becomes several."""
NO_TICKET: Final = Ticket(0)

Records = list[tuple[bytes, bytes | None]]
S = TypeVar("S", bound=Shard)
Decide = Callable[[S, Ticket, int], Outcome]
"""What to ask a shard: gets the shard, the ticket of the answer and the time."""


def context_of(call: "Call") -> RequestContext:
    header = call.header
    return RequestContext(header.api_version, header.client_id or "", call.client_host)


class CoordinatorHost(Generic[S]):
    topic_name: str

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._shards: dict[int, S] = {}
        self._loads: dict[int, Task[None]] = {}
        self._queued: dict[int, list[tuple[Decide[S], Future[Any]]]] = {}
        self._turn = Lock()  # one chunk of all that load, then the clients have their turn
        self._waiting: dict[Ticket, Future[Any]] = {}
        self._alarms = AlarmHeap()
        self._timer: TimerHandle | None = None
        self._timer_at_ms = 0
        self._last_ticket = 0
        self._is_closed = False
        self._monotonic = node.clock.monotonic
        self._clock_start_ms = node.clock.now_ms() - int(self._monotonic() * 1000)

    # --- what is particular about a coordinator

    def new_shard(self, index: int) -> S:
        raise NotImplementedError

    async def ensure_topic(self) -> Topic:
        """The coordinator's topic, made on first use."""
        raise NotImplementedError

    def run_errand(self, index: int, errand: object) -> None:
        """Do elsewhere what an outcome asks for; its records are in the log."""
        raise NotImplementedError

    # --- asking

    def ask(self, key: str, decide: Decide[S]) -> Any:
        """What the shard of a group or transactional id answers, or a coroutine that will return it.

        ApiError when this broker cannot say: it does not coordinate the key, or is still loading it.
        """
        if self._is_closed:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        topic = self._node.image.topic(self.topic_name)
        if topic is not None:
            index = partition_for(key, len(topic.partitions))
            shard = self._shards.get(index)
            if shard is not None:
                return self._decide(index, shard, decide)
        return self._ask_when_loaded(key, decide)

    async def answer(self, key: str, decide: Decide[S]) -> Any:
        answered = self.ask(key, decide)
        return await answered if isinstance(answered, CoroutineType) else answered

    async def answer_of_all(self, decide: Decide[S]) -> list[Any]:
        """What each shard of this broker answers; nothing where there is none yet."""
        return [await self._when_loaded(index, decide) for index in self._own_indexes()]

    def _own_indexes(self) -> list[int]:
        topic = self._node.image.topic(self.topic_name)
        if topic is None:
            return []
        own = self._node.broker_id
        return [index for index, placed in enumerate(topic.partitions) if placed.leader == own]

    async def _ask_when_loaded(self, key: str, decide: Decide[S]) -> Any:
        topic = await self.ensure_topic()
        return await self._when_loaded(partition_for(key, len(topic.partitions)), decide)

    async def _when_loaded(self, index: int, decide: Decide[S]) -> Any:
        """In the order of arrival: the load ends with asking all who wait, before it lets anybody else in."""
        shard = self._shards.get(index)
        if shard is not None:
            answered = self._decide(index, shard, decide)
        else:
            future: Future[Any] = self._node.loop.create_future()
            self._queued.setdefault(index, []).append((decide, future))
            self._start_load(index)
            try:
                answered = await wait_for(future, LOAD_WAIT_SECONDS)
            except TimeoutError:
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from None
        return await answered if isinstance(answered, CoroutineType) else answered

    def _decide(self, index: int, shard: S, decide: Decide[S]) -> Any:
        self._last_ticket += 1
        ticket = Ticket(self._last_ticket)
        outcome = decide(shard, ticket, self._now_ms())
        is_answered, answer = self._act(index, shard, outcome, ticket)
        if is_answered:
            return answer
        future: Future[Any] = self._node.loop.create_future()
        self._waiting[ticket] = future
        return self._wait(ticket, future)

    async def _wait(self, ticket: Ticket, future: Future[Any]) -> Any:
        try:
            return await future
        finally:
            self._waiting.pop(ticket, None)

    # --- acting

    def _act(self, index: int, shard: S, outcome: Outcome, ticket: Ticket = NO_TICKET) -> tuple[bool, Any]:
        """Make an outcome real; (True, the answer to `ticket`) if that is among its replies."""
        if outcome.records:
            try:
                self._append(index, outcome)
            except (OSError, ApiError) as error:
                if outcome.producer is not None and isinstance(error, ApiError):
                    raise  # the producer is fenced: its fault, and nothing has changed
                self._report(index, error)
                self._give_up(index, shard, outcome)
                # Timeouts go on and markers are still to be written, also if nobody asks for this shard again.
                self._node.loop.call_later(LOAD_AGAIN_SECONDS, self.load_all)
                raise ApiError(ErrorCode.NOT_COORDINATOR) from error
            producer_id = outcome.producer[0] if outcome.producer is not None else NO_PRODUCER_ID
            replay = shard.replay
            for key, value in outcome.records:
                replay(key, value, producer_id)
        if outcome.alarms:
            self._set_alarms(index, outcome.alarms)
        is_answered, answer = False, None
        for answered, response in outcome.replies:
            if answered == ticket:
                is_answered, answer = True, response
            else:
                self._resolve(answered, response)
        for errand in outcome.errands:
            self.run_errand(index, errand)
        return is_answered, answer

    def _append(self, index: int, outcome: Outcome) -> None:
        now_ms = self._node.clock.now_ms()
        partition = self._node.partitions.get(self.topic_name, index)
        batch = _build(outcome.records, outcome.producer, now_ms)
        if len(batch) <= BATCH_BYTES:
            partition.append_own(batch)
        else:
            for records in _in_batches(outcome.records):
                partition.append_own(_build(records, outcome.producer, now_ms))

    def _resolve(self, ticket: Ticket, response: object) -> None:
        future = self._waiting.get(ticket)
        if future is not None and not future.done():
            future.set_result(response)

    def _give_up(self, index: int, shard: S, undone: Outcome | None = None) -> None:
        """Forget a shard. Whoever waits for it looks for the coordinator again; the next request loads it
        anew."""
        self._shards.pop(index, None)
        self._alarms.drop(index)
        for ticket, _ in undone.replies if undone is not None else ():
            future = self._waiting.get(ticket)
            if future is not None and not future.done():
                future.set_exception(ApiError(ErrorCode.NOT_COORDINATOR))
        for ticket, response in shard.on_unload().replies:
            self._resolve(ticket, response)

    # --- time

    def _now_ms(self) -> int:
        return self._clock_start_ms + int(self._monotonic() * 1000)

    def _set_alarms(self, index: int, alarms: list[Alarm]) -> None:
        is_earlier = False
        for name, at_ms in alarms:
            self._alarms.set(index, name, at_ms)
            if at_ms is not None and (self._timer is None or at_ms < self._timer_at_ms):
                is_earlier = True
        if is_earlier:  # which is rare: most push back a session that has just been heard of
            self._set_timer()

    def _set_timer(self) -> None:
        next_ms = self._alarms.next_at_ms()
        if next_ms is None or (self._timer is not None and self._timer_at_ms <= next_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at_ms = next_ms
        self._timer = self._node.loop.call_later(max(next_ms - self._now_ms(), 0) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now_ms = self._now_ms()
        try:
            for index, name in self._alarms.due(now_ms):
                shard = self._shards.get(index)
                if shard is not None:
                    self._act_unasked(index, shard, shard.on_alarm(name, now_ms))
        finally:  # a mistake with one alarm must not be the end of all
            self._set_timer()

    def _act_unasked(self, index: int, shard: S, outcome: Outcome) -> None:
        try:
            self._act(index, shard, outcome)
        except ApiError:
            pass  # reported and given up; nobody waits for this in particular

    # --- coming and going

    def load_all(self) -> None:
        """Begin to load every shard of this broker: timeouts go on even if nobody asks."""
        for index in self._own_indexes():
            if index not in self._shards:
                self._start_load(index)

    def _start_load(self, index: int) -> None:
        if index not in self._loads and not self._is_closed:
            self._loads[index] = self._node.loop.create_task(self._load(index))

    async def _load(self, index: int) -> None:
        refusal = ErrorCode.NOT_COORDINATOR
        try:
            partition = self._node.partitions.get(self.topic_name, index)
            shard = self.new_shard(index)
            await self._replay_log(partition, shard)
            if not self._is_closed and not partition.is_gone:
                self._shards[index] = shard
                self._act(index, shard, shard.on_loaded(self._now_ms()))
        except OSError as error:
            self._report(index, error)
            refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
        except ApiError:
            pass
        except Exception:
            log.exception("%s-%s cannot be loaded", self.topic_name, index)
            refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
        finally:
            del self._loads[index]
            self._ask_queued(index, refusal)

    def _ask_queued(self, index: int, refusal: ErrorCode) -> None:
        for decide, future in self._queued.pop(index, ()):
            if future.done():
                continue  # it has been told to come back
            shard = self._shards.get(index)
            try:
                if shard is None:
                    raise ApiError(refusal)
                future.set_result(self._decide(index, shard, decide))
            except Exception as error:
                future.set_exception(error)

    async def _replay_log(self, partition: "Partition", shard: S) -> None:
        offset = partition.log.start_offset
        unread = 0
        while offset < partition.high_watermark:  # which markers may move while we read
            end_offset = partition.high_watermark
            part = partition.log.read(offset, LOAD_CHUNK_BYTES, end_offset=end_offset)
            if part.size_bytes == 0:
                break
            if is_cold(part):
                raw = await self._node.loop.run_in_executor(
                    None, part.file.read_at, part.position, part.size_bytes
                )
            else:
                raw = part.file.read_at(part.position, part.size_bytes)
            async with self._turn:
                offset, misread = replay(shard, raw)
                unread += misread
            await sleep(0)
        if unread:
            log.error("%s: %s records make no sense and were left out", partition, unread)

    def partition_offline(self, index: int) -> None:
        """The log of a shard is lost to us: its keys have no coordinator until the broker is started again."""
        shard = self._shards.get(index)
        if shard is not None:
            self._give_up(index, shard)

    def _report(self, index: int, error: Exception) -> None:
        fault = error if isinstance(error, OSError) else OSError(str(error))
        try:
            partition = self._node.partitions.get(self.topic_name, index)
        except ApiError:
            partition = None
        self._node.report_disk_fault(
            f"{self.topic_name}-{index}", fault, partition if fault is error else None
        )

    def close(self) -> None:
        """Answer all who are parked and take no more."""
        self._is_closed = True
        for index, shard in tuple(self._shards.items()):
            self._give_up(index, shard)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def replay(shard: Shard, batches: bytes) -> tuple[int, int]:
    """Tell a shard what whole batches of its log say: the offset behind them, and how many records make no sense."""
    offset = unread = 0
    view = memoryview(batches)
    replay = shard.replay
    for position, header in iterate_headers(view):
        offset = header.last_offset + 1
        batch = view[position : position + header.size_bytes]
        if header.attributes & CONTROL_BIT:
            marker = marker_of(batch, header)
            if marker is not None:
                shard.replay_marker(header.producer_id, committed=marker.committed)
            continue
        is_pending = header.attributes & TRANSACTIONAL_BIT
        producer_id = header.producer_id if is_pending else NO_PRODUCER_ID
        for key, value in read_pairs(batch, header):
            try:
                replay(key or b"", value, producer_id)
            except ValueError:
                unread += 1
    return offset, unread


def _build(records: Records, producer: tuple[int, int] | None, now_ms: int) -> bytearray:
    to_write = [(key, value, (), now_ms) for key, value in records]
    if producer is None:
        return build_batch(to_write)
    producer_id, epoch = producer
    return build_batch(to_write, producer_id=producer_id, producer_epoch=epoch, transactional=True)


def _in_batches(records: Records) -> Iterator[Records]:
    start = size = 0
    for end, (key, value) in enumerate(records):
        size += len(key) + len(value or b"")
        if size > BATCH_BYTES and end > start:
            yield records[start:end]
            start, size = end, 0
    yield records[start:]
