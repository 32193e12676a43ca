"""The host of a coordinator: it carries out what its shards decide.

There is a shard for each partition of the coordinator's internal topic. It is loaded once, from the partition's log: soon after
this broker became the leader, or at the first request. After that a request is one step: decide, append, replay, set alarms,
answer. If followers must have the records first, the answer is parked (`uncommitted.py`). On one node an append is committed at
once, so most answers are ready when the step ends and need no task. A JoinGroup or SyncGroup that is parked needs one future.

`groups.py` and `transactions.py` say what is particular about the two coordinators.
"""

import logging
from asyncio import Future, Task, current_task, gather, wait_for
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from penstock.broker.coordinators.coordinator_topic import CoordinatorTopic
from penstock.broker.coordinators.shard_alarms import ShardAlarms
from penstock.broker.coordinators.shard_log import append, check_led, replay_log
from penstock.broker.coordinators.tickets import Tickets
from penstock.broker.coordinators.uncommitted import Released, Uncommitted
from penstock.broker.requests.later import Later, NowOrLater, settled
from penstock.coordination.form import NO_PRODUCER_ID, Alarm, AlarmKey, Outcome, RequestContext, Shard, Ticket
from penstock.coordination.placement import partition_for
from penstock.metadata.image import Topic
from penstock.model.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithBrokerId,
        WithClock,
        WithConfig,
        WithDiskFaults,
        WithImage,
        WithLoop,
        WithOpenings,
        WithPartitions,
        WithPools,
        WithRandom,
        WithTopics,
    )
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.call import Call

    class Needs(
        WithBrokerId,
        WithClock,
        WithConfig,
        WithDiskFaults,
        WithImage,
        WithLoop,
        WithOpenings,
        WithPartitions,
        WithPools,
        WithRandom,
        WithTopics,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

LOAD_WAIT_SECONDS: Final = 1.0
"""A request waits this long for its shard to be loaded; then the client is told to come back."""
MAX_QUEUED: Final = 10_000
"""Requests that wait for one shard to be loaded; more are told to come back at once."""
LOAD_AGAIN_SECONDS: Final = 1.0
"""After a shard was given up because its log did not take a record, or could not be loaded."""
ALARM_AGAIN_MS: Final = 1_000
"""An alarm that goes off while too few replicas are in sync is put off."""
NO_TICKET: Final = Ticket(0)

S = TypeVar("S", bound=Shard)
Decide = Callable[[S, Ticket, int], Outcome]
"""What to ask a shard: gets the shard, the ticket of the answer and the time."""


def context_of(call: "Call") -> RequestContext:
    header = call.header
    return RequestContext(header.api_version, header.client_id or "", call.client_host)


class CoordinatorHost(Generic[S]):
    topic_name: str

    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._topic = CoordinatorTopic(node, self.topic_name, self.make_topic)
        self.ensure_topic: Final = self._topic.ensure
        self._shards: dict[int, S] = {}
        self._uncommitted: dict[int, Uncommitted] = {}  # one for each shard
        self._loads: dict[int, Task[None]] = {}
        self._queued: dict[int, dict[Future[Any], tuple[Decide[S], bool]]] = {}
        self._not_before: dict[int, float] = {}
        """When a shard that could not be loaded is tried again: clients ask all the time."""
        self._tickets = Tickets(node.loop)
        self._alarms = ShardAlarms(node.loop, node.clock, self._ring)
        self._deaf: set[int] = set()
        """Shards that could not write when an alarm rang: nobody could show life there meanwhile."""
        self._now_ms = self._alarms.now_ms
        self._is_closed = False

    # --- what is particular about a coordinator

    def new_shard(self, index: int) -> S:
        raise NotImplementedError

    async def make_topic(self) -> Topic:
        """The coordinator's topic, made on first use."""
        raise NotImplementedError

    def run_errand(self, index: int, errand: object) -> None:
        """Do elsewhere what an outcome asks for; its records are committed."""
        raise NotImplementedError

    @property
    def commit_timeout_s(self) -> float:
        """How long an answer may wait for the followers."""
        raise NotImplementedError

    # --- asking

    def coordinator_of(self, key: str) -> int | None:
        """The broker that coordinates a key as far as we know, or NO_LEADER; None while there is no topic."""
        return self._topic.coordinator_of(key, self._shards)

    def ask(self, key: str, decide: Decide[S], *, reads_only: bool = False) -> NowOrLater[Any]:
        """What the shard of a group or transactional id answers.

        ApiError when this broker cannot say: it does not coordinate the key, is still loading it, or has too few replicas in
        sync to record what may follow. `reads_only`: nothing will.
        """
        if self._is_closed:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        topic = self._node.image.topic(self.topic_name)
        if topic is not None:
            index = partition_for(key, len(topic.partitions))
            shard = self._shards.get(index)
            if shard is not None:
                return self._decide(index, shard, decide, reads_only)
        return Later(self._ask_when_loaded(key, decide, reads_only))

    async def answer(self, key: str, decide: Decide[S], *, reads_only: bool = False) -> Any:
        return await settled(self.ask(key, decide, reads_only=reads_only))

    async def answer_of_all(self, decide: Decide[S]) -> list[Any]:
        """What each shard of this broker answers to a question that changes nothing; nothing where there is none yet."""
        asked = [self._when_loaded(index, decide, reads_only=True) for index in self._topic.led_indexes()]
        answers = []
        for answer in await gather(*asked, return_exceptions=True):
            if isinstance(answer, ApiError) and answer.code is ErrorCode.NOT_COORDINATOR:
                continue  # another broker leads it by now, and will say
            if isinstance(answer, BaseException):
                raise answer
            answers.append(answer)
        return answers

    async def _ask_when_loaded(self, key: str, decide: Decide[S], reads_only: bool) -> Any:
        topic = await self.ensure_topic()
        return await self._when_loaded(partition_for(key, len(topic.partitions)), decide, reads_only)

    async def _when_loaded(self, index: int, decide: Decide[S], reads_only: bool) -> Any:
        """In the order of arrival: the load ends with asking all who wait, before it lets anybody else in."""
        shard = self._shards.get(index)
        if shard is not None:
            answered = self._decide(index, shard, decide, reads_only)
        elif self._is_closed or not self._topic.leads(index):
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        elif self._node.loop.time() < self._not_before.get(index, 0.0):
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            queued = self._queued.setdefault(index, {})
            if len(queued) >= MAX_QUEUED:
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            future: Future[Any] = self._node.loop.create_future()
            queued[future] = (decide, reads_only)
            self._start_load(index)
            try:
                answered = await wait_for(future, LOAD_WAIT_SECONDS)
            except TimeoutError:
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from None
            finally:
                # A load may take minutes, and whoever was told to come back asks again.
                queued.pop(future, None)
        return await settled(answered)

    def _decide(self, index: int, shard: S, decide: Decide[S], reads_only: bool) -> NowOrLater[Any]:
        uncommitted = self._uncommitted[index]
        if uncommitted.partition.leadership is not None:
            uncommitted.check_room(to_write=not reads_only)
        ticket = self._tickets.new()
        outcome = decide(shard, ticket, self._now_ms())
        is_answered, answer = self._act(index, shard, outcome, ticket)
        if is_answered:
            return answer
        return Later(self._tickets.wait(ticket, self._tickets.expect(ticket)))

    def can_write(self, index: int) -> bool:
        try:
            self._uncommitted[index].check_room(to_write=True)
        except ApiError:
            return False
        return True

    # --- acting

    def _act(self, index: int, shard: S, outcome: Outcome, ticket: Ticket = NO_TICKET) -> tuple[bool, Any]:
        """Make an outcome real; (True, the answer to `ticket`) if that is among its replies."""
        if outcome.records:
            try:
                partition = self._node.partitions.get(self.topic_name, index)
                append(partition, outcome, now_ms=self._node.clock.now_ms())
            except (OSError, ApiError) as error:
                raise self._refusal(index, shard, outcome, error) from error
            producer_id = outcome.producer[0] if outcome.producer is not None else NO_PRODUCER_ID
            replay = shard.replay
            for key, value in outcome.records:
                replay(key, value, producer_id)
        if outcome.alarms:
            self._alarms.set(index, outcome.alarms)
        is_answered, answer = False, None
        uncommitted = self._uncommitted[index]
        if not uncommitted.is_clear:
            if outcome.replies or outcome.errands:
                uncommitted.park(outcome.replies, outcome.errands)
            return is_answered, answer
        for answered, response in outcome.replies:
            if answered == ticket:
                is_answered, answer = True, response
            else:
                self._tickets.resolve(answered, response)
        for errand in outcome.errands:
            if self._shards.get(index) is shard:  # else one before it could not be done, and all begins again
                self.run_errand(index, errand)
        return is_answered, answer

    def _refusal(self, index: int, shard: S, outcome: Outcome, error: OSError | ApiError) -> ApiError:
        """What to answer when the log did not take an outcome, and what must be done about it."""
        code = error.code if isinstance(error, ApiError) else None
        has_too_few = code is ErrorCode.NOT_ENOUGH_REPLICAS
        is_led = code is not ErrorCode.NOT_LEADER_OR_FOLLOWER
        if outcome.producer is not None and isinstance(error, ApiError) and is_led and not has_too_few:
            return error  # the producer is fenced: its fault, and nothing has changed
        if is_led and not has_too_few:
            self._report(index, error)
        self._give_up(index, shard, outcome)
        # Timeouts continue and markers are still to be written, also if nobody asks for this shard again.
        self._node.loop.call_later(LOAD_AGAIN_SECONDS, self.load_all)
        return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE if has_too_few else ErrorCode.NOT_COORDINATOR)

    def _act_on_released(self, index: int, shard: S, released: Released) -> None:
        """What was parked may happen now."""
        for ticket, error in released.refusals:
            self._tickets.refuse(ticket, error)
        for ticket, response in released.replies:
            self._tickets.resolve(ticket, response)
        for errand in released.errands:
            if self._shards.get(index) is shard:  # as in `_act`
                self.run_errand(index, errand)
        if released.is_lost:
            self.partition_lost(index)
            self._node.loop.call_later(LOAD_AGAIN_SECONDS, self.load_all)

    def _give_up(self, index: int, shard: S, undone: Outcome | None = None) -> None:
        """Forget a shard. Whoever waits for it looks for the coordinator again; the next request loads it
        again."""
        self._shards.pop(index, None)
        self._deaf.discard(index)
        self._alarms.drop(index)
        uncommitted = self._uncommitted.pop(index, None)
        if uncommitted is not None:
            self._act_on_released(index, shard, uncommitted.give_up(ErrorCode.NOT_COORDINATOR))
        for ticket, _ in undone.replies if undone is not None else ():
            self._tickets.refuse(ticket, ErrorCode.NOT_COORDINATOR)
        for ticket, response in shard.on_unload().replies:
            self._tickets.resolve(ticket, response)

    # --- unasked

    def _ring(self, index: int, key: AlarmKey, now_ms: int) -> None:
        shard = self._shards.get(index)
        if shard is None:
            return
        if not self.can_write(index):
            self._alarms.set(index, [Alarm(key, now_ms + ALARM_AGAIN_MS)])
            if not self._uncommitted[index].is_full:
                self._deaf.add(index)
            return
        if index in self._deaf:
            self._deaf.discard(index)
            outcome = shard.on_writable(now_ms)
            self._act_unasked(index, shard, outcome)
            if any(alarm.key == key for alarm in outcome.alarms):
                return
        self._act_unasked(index, shard, shard.on_alarm(key, now_ms))

    def _act_unasked(self, index: int, shard: S, outcome: Outcome) -> None:
        try:
            self._act(index, shard, outcome)
        except ApiError:
            pass  # reported and given up; nobody waits for this in particular

    # --- coming and going

    def load_all(self) -> None:
        """Begin to load every shard of this broker: timeouts continue even if nobody asks."""
        for index in self._topic.led_indexes():
            self.partition_led(index)

    def partition_led(self, index: int) -> None:
        """This broker has begun to lead a partition of the topic. Again is no harm."""
        uncommitted = self._uncommitted.get(index)
        if uncommitted is not None and uncommitted.partition.is_gone:
            self.partition_lost(index)  # the topic was made again: what we know is not in its log
        if index not in self._shards:
            self._start_load(index)

    def partition_lost(self, index: int) -> None:
        """It leads it no more, or the log is lost to us: whoever waits looks for the coordinator again."""
        load = self._loads.pop(index, None)
        if load is not None:
            load.cancel()
        shard = self._shards.get(index)
        if shard is not None:
            self._give_up(index, shard)
        self._ask_queued(index, ErrorCode.NOT_COORDINATOR)

    def _start_load(self, index: int) -> None:
        if index not in self._loads and not self._is_closed:
            self._loads[index] = self._node.loop.create_task(self._load(index))

    async def _load(self, index: int) -> None:
        refusal = ErrorCode.NOT_COORDINATOR
        try:
            partition = self._node.partitions.get(self.topic_name, index)
            shard = self.new_shard(index)
            await self._replay_log(partition, shard)
            check_led(partition)
            if not self._is_closed:
                self._shards[index] = shard
                act = partial(self._act_on_released, index, shard)
                self._uncommitted[index] = Uncommitted(self._node.loop, partition, self.commit_timeout_s, act)
                self._act(index, shard, shard.on_loaded(self._now_ms()))
        except OSError as error:
            self._report(index, error)
            refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
        except ApiError as error:
            if error.code is ErrorCode.CORRUPT_MESSAGE:
                log.error("cannot load %s-%s: %s", self.topic_name, index, error)
                self._not_before[index] = self._node.loop.time() + LOAD_AGAIN_SECONDS
            if error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
        except Exception:
            log.exception("%s-%s cannot be loaded", self.topic_name, index)
            refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
            self._not_before[index] = self._node.loop.time() + LOAD_AGAIN_SECONDS
        finally:
            if self._loads.get(index) is current_task():  # else it was cancelled, and another may have begun
                del self._loads[index]
                self._ask_queued(index, refusal)

    def _ask_queued(self, index: int, refusal: ErrorCode) -> None:
        queued = self._queued.pop(index, {})
        for future, (decide, reads_only) in tuple(queued.items()):
            if future.done():
                continue  # it has been told to come back
            shard = self._shards.get(index)
            try:
                if shard is None:
                    raise ApiError(refusal)
                future.set_result(self._decide(index, shard, decide, reads_only))
            except Exception as error:
                future.set_exception(error)

    async def _replay_log(self, partition: "Partition", shard: S) -> None:
        node = self._node
        unread = await replay_log(node.loop, node.pools.reads, partition, shard, node.openings)
        if unread:
            log.error("%s: skipped %s records that are not valid", partition, unread)

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
        for index in (*self._shards, *self._loads):
            self.partition_lost(index)
        self._alarms.close()
