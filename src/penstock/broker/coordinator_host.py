"""The host of the group coordinator: does what its shards decide.

A shard lives for each partition of `__consumer_offsets` that somebody has asked about. It is made by reading
the partition's log, once; from then on a request is one step: decide, append, replay, set alarms, answer. On
one node an append is committed at once, so most answers are ready when the step ends and cost no task; a
JoinGroup or SyncGroup that is parked costs one future.

Time is monotonic here (counted from the wall clock at the start): a wall clock that is set must not end
everybody's session.
"""

import logging
import os
from asyncio import Future, Task, TimerHandle, sleep, wait
from collections.abc import Callable
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from penstock.broker.cold_reads import is_cold
from penstock.coordination.alarms import AlarmHeap
from penstock.coordination.form import Outcome, RequestContext, Ticket
from penstock.groups.placement import OFFSETS_TOPIC, partition_for
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import NO_ID
from penstock.records.build import build_batch
from penstock.records.walk import iterate_batches_records

if TYPE_CHECKING:
    from penstock.broker.call import Call
    from penstock.broker.node import Node
    from penstock.broker.partition import Partition
    from penstock.groups.options import GroupOptions
    from penstock.groups.shard import GroupShard
    from penstock.metadata.image import ClusterImage

log = logging.getLogger("penstock.broker")

LOAD_CHUNK_BYTES: Final = 64 * 1024
"""Replayed before others get their turn: about 10 ms."""
LOAD_WAIT_SECONDS: Final = 1.0
"""A request waits this long for its shard to be loaded; then the client is told to come back."""
NO_TICKET: Final = Ticket(0)

Decide = Callable[["GroupShard", Ticket, int], Outcome]
"""What to ask a shard: gets the shard, the ticket of the answer and the time."""


def context_of(call: "Call") -> RequestContext:
    return RequestContext(call.api_version, call.client_id, call.client_host)


class CoordinatorHost:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._shards: dict[int, GroupShard] = {}
        self._loads: dict[int, Task[None]] = {}
        self._waiting: dict[Ticket, Future[Any]] = {}
        self._alarms = AlarmHeap()
        self._timer: TimerHandle | None = None
        self._timer_at_ms = 0
        self._last_ticket = 0
        self._is_closed = False
        self._clock_start_ms = node.clock.now_ms() - int(node.clock.monotonic() * 1000)

    # --- asking

    def ask(self, group_id: str, decide: Decide) -> Any:
        """What the group's shard answers, or a coroutine that will return it.

        ApiError when this broker cannot say: it does not coordinate the group, or is still loading it.
        """
        if self._is_closed:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        topic = self._node.image.topic(OFFSETS_TOPIC)
        if topic is not None:
            index = partition_for(group_id, len(topic.partitions))
            shard = self._shards.get(index)
            if shard is not None:
                return self._decide(index, shard, decide)
        return self._ask_when_loaded(group_id, decide)

    async def answer(self, group_id: str, decide: Decide) -> Any:
        answered = self.ask(group_id, decide)
        return await answered if isinstance(answered, CoroutineType) else answered

    async def answer_of_all(self, decide: Decide) -> list[Any]:
        """What each shard of this broker answers; nothing where there is no group yet."""
        topic = self._node.image.topic(OFFSETS_TOPIC)
        answers = []
        for index, placed in enumerate(topic.partitions if topic is not None else ()):
            if placed.leader == self._node.broker_id:
                answered = self._decide(index, await self._loaded(index), decide)
                answers.append(await answered if isinstance(answered, CoroutineType) else answered)
        return answers

    async def _ask_when_loaded(self, group_id: str, decide: Decide) -> Any:
        topic = await self._node.topics.consumer_offsets()
        index = partition_for(group_id, len(topic.partitions))
        answered = self._decide(index, await self._loaded(index), decide)
        return await answered if isinstance(answered, CoroutineType) else answered

    def _decide(self, index: int, shard: "GroupShard", decide: Decide) -> Any:
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

    def _act(
        self, index: int, shard: "GroupShard", outcome: Outcome, ticket: Ticket = NO_TICKET
    ) -> tuple[bool, Any]:
        """Make an outcome real; (True, the answer to `ticket`) if that is among its replies."""
        if outcome.records:
            try:
                self._append(index, outcome.records)
            except (OSError, ApiError) as error:
                self._report(index, error)
                self._give_up(index, shard, outcome)
                raise ApiError(ErrorCode.NOT_COORDINATOR) from error
            for key, value in outcome.records:
                shard.replay(key, value)
        for name, at_ms in outcome.alarms:
            self._alarms.set(index, name, at_ms)
        if outcome.alarms:
            self._set_timer()
        is_answered, answer = False, None
        for answered, response in outcome.replies:
            if answered == ticket:
                is_answered, answer = True, response
            else:
                self._resolve(answered, response)
        return is_answered, answer

    def _append(self, index: int, records: list[tuple[bytes, bytes | None]]) -> None:
        now_ms = self._node.clock.now_ms()
        batch = build_batch((key, value, (), now_ms) for key, value in records)
        self._node.partitions.get(OFFSETS_TOPIC, index).append_own(batch)

    def _resolve(self, ticket: Ticket, response: object) -> None:
        future = self._waiting.get(ticket)
        if future is not None and not future.done():
            future.set_result(response)

    def _give_up(self, index: int, shard: "GroupShard", undone: Outcome | None = None) -> None:
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
        return self._clock_start_ms + int(self._node.clock.monotonic() * 1000)

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

    def _act_unasked(self, index: int, shard: "GroupShard", outcome: Outcome) -> None:
        try:
            self._act(index, shard, outcome)
        except ApiError:
            pass  # reported and given up; nobody waits for this in particular

    # --- coming and going

    async def _loaded(self, index: int) -> "GroupShard":
        if index not in self._shards:
            task = self._loads.get(index)
            if task is None:
                task = self._loads[index] = self._node.loop.create_task(self._load(index))
            done, _ = await wait((task,), timeout=LOAD_WAIT_SECONDS)
            if not done:
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            task.result()
        shard = self._shards.get(index)
        if shard is None:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        return shard

    async def _load(self, index: int) -> None:
        try:
            partition = self._node.partitions.get(OFFSETS_TOPIC, index)
            shard = self._new_shard()
            await self._replay_log(partition, shard)
            if not self._is_closed and not partition.is_gone:
                self._shards[index] = shard
                self._act(index, shard, shard.on_loaded(self._now_ms()))
        except OSError as error:
            self._report(index, error)
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from error
        except ApiError as error:
            raise ApiError(ErrorCode.NOT_COORDINATOR) from error
        finally:
            del self._loads[index]

    async def _replay_log(self, partition: "Partition", shard: "GroupShard") -> None:
        offset, end_offset = partition.log.start_offset, partition.high_watermark
        unread = 0
        while offset < end_offset:
            part = partition.log.read(offset, LOAD_CHUNK_BYTES, end_offset=end_offset)
            if part.size_bytes == 0:
                break
            if is_cold(part):
                raw = await self._node.loop.run_in_executor(
                    None, part.file.read_at, part.position, part.size_bytes
                )
            else:
                raw = part.file.read_at(part.position, part.size_bytes)
            for header, records in iterate_batches_records(raw):
                offset = header.last_offset + 1
                if header.is_control:
                    continue
                for record in records:
                    try:
                        shard.replay(record.key or b"", record.value)
                    except ValueError:
                        unread += 1
            await sleep(0)
        if unread:
            log.error(
                "%s-%s: %s records make no sense and were left out", OFFSETS_TOPIC, partition.index, unread
            )

    def _new_shard(self) -> "GroupShard":
        # Not at the top: a broker that has just started should listen before it learns about groups.
        from penstock.groups.shard import GroupShard

        image = self._node.image
        return GroupShard(options=self._options(), topics=_ImageTopics(image), new_id=_new_id)

    def _options(self) -> "GroupOptions":
        from penstock.groups.options import GroupOptions

        get = self._node.config.get
        return GroupOptions(
            min_session_timeout_ms=get("group.min.session.timeout.ms"),
            max_session_timeout_ms=get("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=get("group.initial.rebalance.delay.ms"),
            max_size=get("group.max.size"),
            offset_metadata_max_bytes=get("offset.metadata.max.bytes"),
        )

    def topic_deleted(self, name: str) -> None:
        """Its offsets go, in the shards that are loaded; the others know them by the topic's id to be old."""
        for index, shard in tuple(self._shards.items()):
            if name == OFFSETS_TOPIC:
                self._give_up(index, shard)
            else:
                self._act_unasked(index, shard, shard.on_topic_deleted(name))

    def partition_offline(self, index: int) -> None:
        """The log of a shard is lost to us: its groups have no coordinator until the broker is started again."""
        shard = self._shards.get(index)
        if shard is not None:
            self._give_up(index, shard)

    def _report(self, index: int, error: Exception) -> None:
        fault = error if isinstance(error, OSError) else OSError(str(error))
        try:
            partition = self._node.partitions.get(OFFSETS_TOPIC, index)
        except ApiError:
            partition = None
        self._node.report_disk_fault(f"{OFFSETS_TOPIC}-{index}", fault, partition if fault is error else None)

    def close(self) -> None:
        """Answer all who are parked and take no more."""
        self._is_closed = True
        for index, shard in tuple(self._shards.items()):
            self._give_up(index, shard)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _ImageTopics:
    """The cluster's topics as the groups ask about them."""

    __slots__ = ("_image",)

    def __init__(self, image: "ClusterImage") -> None:
        self._image = image

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._image.topic_name(topic_id)

    def topic_id(self, name: str) -> bytes | None:
        topic_id = self._image.topic_id(name)
        return None if topic_id == NO_ID else topic_id

    def has_partition(self, name: str, partition: int) -> bool:
        return self._image.partition(name, partition) is not None


def _new_id() -> str:
    """A random UUID as text, without the module of that name and what it imports."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
