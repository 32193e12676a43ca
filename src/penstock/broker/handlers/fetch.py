"""API 1 Fetch, versions 4–18: Read partitions, with fetch sessions (KIP-227) and topic ids. Waits for data if the client asks
for it.

The answer has slices of log files: at least one whole batch, however large, and nothing past the high watermark. With
read_committed it ends at the last stable offset, and lists the aborted transactions that the client must skip. With less than
min_bytes the request waits, at most max_wait_ms, without polling. A follower (replica_id ≥ 0) reads to the end of the log. Its
fetch offset tells the leader what it has. If its log differs from the leader's, it is told where they differ. A consumer that
names its rack may be sent to a replica there, and may read from a follower; so may a tool that compares replicas (replica_id
-2). A thread first reads what is not in memory (index, headers, records), so that a consumer of old data does not delay others.
A client that is over its quota gets an empty answer that says how long it must wait; a follower never does.
Not done: tiered storage; fetches of KRaft's metadata log.
"""

from asyncio import AbstractEventLoop
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.access.guards.records import NONE, Refusals, may_not_read
from penstock.broker.cluster.current_leaders import LED_ELSEWHERE, current_leader, endpoints_of
from penstock.broker.partitions.cold_reads import MOST_LOADS, is_cold, warm
from penstock.broker.partitions.fetch_sessions import FetchEntry, FetchPlan
from penstock.broker.partitions.held_topic import unknown_topic
from penstock.broker.partitions.partition import READ_COMMITTED
from penstock.broker.partitions.waits import FetchWait
from penstock.broker.replication.closest_replica import replica_for
from penstock.broker.requests.call import Call
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError, ErrorCode
from penstock.net.connection import Deferred
from penstock.net.output import Part
from penstock.runtime.page_cache import NotInMemory
from penstock.wire.errors import Malformed
from penstock.wire.fetch import (
    DEBUGGING_CONSUMER_ID,
    TOPIC_IDS_FROM,
    FetchRequest,
    FetchResult,
    read_request,
    write_response,
)
from penstock.wire.framing import response_prefix

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithAddresses,
        WithAuthorizer,
        WithBrokerId,
        WithClientQuotas,
        WithClock,
        WithClustered,
        WithConfig,
        WithDiskFaults,
        WithEffects,
        WithFetchSessions,
        WithImage,
        WithLoop,
        WithPartitions,
        WithPools,
        WithRequestCounts,
        WithRoles,
    )
    from penstock.broker.partitions.partition import Partition

    class Needs(
        WithAddresses,
        WithAuthorizer,
        WithBrokerId,
        WithClientQuotas,
        WithClock,
        WithClustered,
        WithConfig,
        WithDiskFaults,
        WithEffects,
        WithFetchSessions,
        WithImage,
        WithLoop,
        WithPartitions,
        WithPools,
        WithRequestCounts,
        WithRoles,
        Protocol,
    ): ...


MAX_FRAME_BYTES: Final = 4 * 1024 * 1024
"""Room for 120,000 partitions; each becomes several objects, which must neither fill memory nor hold up the others."""


def handle_frame(
    node: "Needs", call: Call, frame: memoryview, offset: int
) -> "Sequence[Part] | Deferred | None":
    version = call.header.api_version
    if len(frame) > MAX_FRAME_BYTES:
        raise Malformed(
            f"{len(frame)} bytes are more than the {MAX_FRAME_BYTES} that such a request may have"
        )
    request = read_request(frame, offset, version)
    plan = node.fetch_sessions.plan(request, by_id=version >= TOPIC_IDS_FROM, now_ms=node.clock.now_ms())
    return Fetch(node, call, request, plan).go_on()


class Fetch:
    """One fetch request on its way: read, perhaps wait and read again, answer."""

    __slots__ = (
        "_began_s",
        "_call",
        "_cold",
        "_deferred",
        "_forbidden",
        "_has_waited",
        "_has_word",
        "_loads",
        "_node",
        "_plan",
        "_request",
        "_results",
        "_total_bytes",
    )

    def __init__(self, node: "Needs", call: Call, request: FetchRequest, plan: FetchPlan) -> None:
        self._node = node
        self._call = call
        self._request = request
        self._plan = plan
        self._deferred: Deferred | None = None
        self._forbidden: Refusals = NONE
        """Topics that the client may not read, or that nobody could check."""
        if node.authorizer.is_on:
            topics = {entry.topic_key for entry in plan.entries}
            self._forbidden = may_not_read(node, call, request, topics)
        self._results: list[tuple[FetchEntry, FetchResult]] = []
        self._total_bytes = 0
        self._cold: list[tuple[FetchEntry, NotInMemory]] = []
        """Where it could not be looked up what there is, and why."""
        self._loads = 0
        self._has_waited = False
        self._began_s = 0.0
        self._has_word = False
        """Something other than records that is to be told at once: an error, where logs part, or where to read instead."""

    def go_on(self) -> "Sequence[Part] | Deferred":
        """The answer, or the promise of one."""
        if self._node.client_quotas.is_active:
            self._began_s = self._node.client_quotas.now_s()
        self._read()
        if self._cold and self._loads < MOST_LOADS:
            self._loads += 1
            return self._look_again()
        if not self._has_waited and self._must_wait():
            return self._wait(self._node.loop)
        return self._answer_or_warm()

    def _read(self) -> None:
        self._cold = []
        remaining = min(self._request.max_bytes, self._node.effects.fetch_max_bytes)
        quotas = self._node.client_quotas
        if quotas.is_active and not self._is_follower():
            most = quotas.most_fetched(self._call)
            remaining = remaining if most is None else min(remaining, most)
        results: list[tuple[FetchEntry, FetchResult]] = []
        total = 0
        self._has_word = False
        for entry in self._plan.entries:
            refusal = self._forbidden.get(entry.topic_key)
            if refusal is not None:
                result = FetchResult(entry.index, refusal)
            else:
                result = self._read_one(entry, remaining - total, at_least_one=total == 0)
            if result.records is not None:
                total += result.records.size_bytes
            elif (
                result.error_code or result.diverging_epoch is not None or result.preferred_read_replica >= 0
            ):
                self._has_word = True
            results.append((entry, result))
        self._results = results
        self._total_bytes = total

    def _is_follower(self) -> bool:
        return self._request.replica_id >= 0 and self._node.is_clustered

    def _read_one(self, entry: FetchEntry, remaining_bytes: int, *, at_least_one: bool) -> FetchResult:
        if self._is_follower():
            return self._read_for_follower(entry, remaining_bytes, at_least_one=at_least_one)
        wanted = entry.wanted
        isolation_level = self._request.isolation_level
        topic = self._node.partitions.topic(entry.topic_key)
        try:
            if topic is None:
                raise unknown_topic(entry.topic_key)
            topic.traffic.fetch_requests += 1
            partition = topic.partition(entry.index)
            if wanted.current_leader_epoch >= 0:
                partition.check_epoch(wanted.current_leader_epoch)
            rack = self._request.rack_id
            if rack and partition.leadership is not None:
                closest = replica_for(self._node, partition, rack, wanted.fetch_offset)
                if closest >= 0:
                    return _go_there(entry, partition, closest)
            elif not partition.is_leader and not rack and self._request.replica_id != DEBUGGING_CONSUMER_ID:
                raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            records = None
            aborted: list[tuple[int, int]] | None = [] if isolation_level == READ_COMMITTED else None
            if remaining_bytes > 0 or at_least_one:
                records = partition.read(
                    wanted.fetch_offset,
                    min(wanted.max_bytes, remaining_bytes),
                    isolation_level=isolation_level,
                    at_least_one=at_least_one,
                )
                if aborted is not None and records is not None:
                    aborted = partition.aborted_in(records, wanted.fetch_offset)
        except NotInMemory as cold:
            self._cold.append((entry, cold))
            return _nothing_yet(entry, partition)
        except ApiError as error:
            leader = None
            if error.code in LED_ELSEWHERE:
                leader = current_leader(self._node, entry.topic_key, entry.index)
            return FetchResult(entry.index, error.code, current_leader=leader)
        except OSError as error:
            self._node.report_disk_fault(f"cannot read {partition}", error, partition)
            return FetchResult(entry.index, ErrorCode.KAFKA_STORAGE_ERROR)
        return FetchResult(
            entry.index,
            0,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log.start_offset,
            records,
            aborted,
        )

    def _read_for_follower(
        self, entry: FetchEntry, remaining_bytes: int, *, at_least_one: bool
    ) -> FetchResult:
        wanted = entry.wanted
        topic = self._node.partitions.topic(entry.topic_key)
        try:
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
            partition = topic.partition(entry.index)
            partition.check_leader(wanted.current_leader_epoch)
            log = partition.log
            offset = wanted.fetch_offset
            diverging = partition.divergence(
                last_fetched_epoch=wanted.last_fetched_epoch, fetch_offset=offset
            )
            records = None
            if diverging is None:
                records = self._node.roles.serve_follower(
                    partition,
                    (self._request.replica_id, self._request.replica_epoch),
                    offset,
                    min(wanted.max_bytes, remaining_bytes) if remaining_bytes > 0 or at_least_one else -1,
                    start_offset=wanted.log_start_offset,
                    at_least_one=at_least_one,
                )
        except NotInMemory as cold:
            self._cold.append((entry, cold))
            return _nothing_yet(entry, partition)
        except ApiError as error:
            start_offset = partition.log.start_offset if error.code is ErrorCode.OFFSET_OUT_OF_RANGE else -1
            return FetchResult(entry.index, error.code, log_start_offset=start_offset)
        except OSError as error:
            self._node.report_disk_fault(f"cannot read {partition}", error, partition)
            return FetchResult(entry.index, ErrorCode.KAFKA_STORAGE_ERROR)
        return FetchResult(
            entry.index,
            0,
            partition.high_watermark,
            partition.last_stable_offset,
            log.start_offset,
            records,
            diverging_epoch=diverging,
        )

    def _must_wait(self) -> bool:
        request = self._request
        return (
            self._total_bytes < request.min_bytes
            and request.max_wait_ms > 0
            and not self._has_word
            and not self._plan.error_code
            and bool(self._results)
        )

    def _wait(self, loop: AbstractEventLoop) -> Deferred:
        self._has_waited = True
        deferred = self._promise()
        partitions = self._node.partitions
        watched = []
        max_wait_ms = self._request.max_wait_ms
        for entry, _ in self._results:
            topic = partitions.topic(entry.topic_key)
            if topic is not None:
                try:
                    watched.append(topic.partition(entry.index))
                except ApiError:
                    max_wait_ms = (
                        0  # the fault of a disk under another entry took it offline: the next look says so
                    )
        wait = FetchWait(
            loop,
            watched,
            self._woken,
            missing_bytes=self._request.min_bytes - self._total_bytes,
            max_wait_ms=max_wait_ms,
            only_stable=self._request.isolation_level == READ_COMMITTED,
            as_replica=self._request.replica_id >= 0,
        )
        deferred.on_abandoned = wait.cancel
        return deferred

    def _promise(self) -> Deferred:
        if self._deferred is None:
            self._deferred = self._call.connection.defer()
        return self._deferred

    def _woken(self) -> None:
        if self._call.connection.is_closed:
            return
        reply = self.go_on()
        if not isinstance(reply, Deferred):
            self._promise().resolve(reply)

    def _look_again(self) -> Deferred:
        """When a thread has read what was missing."""
        cold = self._cold
        future = self._node.pools.reads.run(warm, [missing for _, missing in cold])
        future.add_done_callback(lambda done: self._loaded([entry for entry, _ in cold], done.result()))
        return self._promise()

    def _loaded(self, entries: list[FetchEntry], faults: list[OSError | None]) -> None:
        for entry, fault in zip(entries, faults, strict=True):
            if fault is not None:
                self._report(entry, fault)
        self._woken()

    def _answer_or_warm(self) -> "Sequence[Part] | Deferred":
        """The answer now, or, when part of it must come from the disk, after a thread has read it into memory."""
        cold = [
            place
            for place, (_, result) in enumerate(self._results)
            if result.records is not None and is_cold(result.records)
        ]
        if not cold:
            return self._answer()
        promise = self._promise()
        parts = [self._results[place][1].records for place in cold]
        future = self._node.pools.reads.run(warm, parts)
        future.add_done_callback(lambda done: self._warmed(cold, done.result()))
        return promise

    def _warmed(self, cold: list[int], faults: list[OSError | None]) -> None:
        for place, fault in zip(cold, faults, strict=True):
            if fault is not None:
                entry, _ = self._results[place]
                self._results[place] = (entry, FetchResult(entry.index, ErrorCode.KAFKA_STORAGE_ERROR))
                self._report(entry, fault)
        if not self._call.connection.is_closed:
            self._promise().resolve(self._answer())

    def _report(self, entry: FetchEntry, fault: OSError) -> None:
        topic = self._node.partitions.topic(entry.topic_key)
        if topic is not None:
            try:
                partition = topic.partition(entry.index)
            except ApiError:
                return  # it is gone, or known to be offline
            self._node.report_disk_fault(f"cannot read {partition}", fault, partition)

    def _answer(self) -> list[Part]:
        plan = self._plan
        version = self._call.header.api_version
        quotas = self._node.client_quotas
        if quotas.is_active and not self._is_follower():
            spent_s = quotas.now_s() - self._began_s if self._began_s else 0.0  # quotas may be newer
            wait_ms = quotas.fetched(self._call, self._total_bytes, spent_s=spent_s)
            if wait_ms:
                return self._throttled(wait_ms)
        results = self._results
        if self._total_bytes or self._has_word or plan.error_code:
            self._count()
        if plan.session is not None:
            if plan.is_incremental:
                results = [(entry, result) for entry, result in results if entry.has_news(result)]
                plan.session.to_the_back(entry for entry, result in results if result.records is not None)
            else:
                for entry, result in results:
                    entry.has_news(result)
        topics: dict[str | bytes, list[FetchResult]] = {}
        for entry, result in results:
            topics.setdefault(entry.topic_key, []).append(result)
        leaders = [result.current_leader for _, result in results if result.current_leader is not None]
        parts, size = write_response(
            list(topics.items()),
            version,
            error_code=plan.error_code,
            session_id=plan.session_id,
            endpoints=endpoints_of(self._node, self._call.connection, leaders) if leaders else (),
        )
        return [response_prefix(self._call.header, size), *parts]

    def _count(self) -> None:
        """What is told in this answer, beside that there is nothing."""
        partitions, is_follower = self._node.partitions, self._is_follower()
        counts = self._node.request_counts.of(ApiKey.FETCH)
        if self._plan.error_code:
            counts.note_error(self._plan.error_code)
        for entry, result in self._results:
            if result.records is None and not result.error_code:
                continue
            topic = partitions.topic(entry.topic_key)
            traffic = partitions.gone_traffic if topic is None else topic.traffic
            if result.records is None:
                traffic.failed_fetch_requests += 1
                counts.note_error(result.error_code)
            elif is_follower:
                traffic.replication_bytes_out += result.records.size_bytes
            else:
                traffic.bytes_out += result.records.size_bytes

    def _throttled(self, wait_ms: int) -> list[Part]:
        """Nothing, and no session that the client would take for one in which it was told something."""
        plan = self._plan
        if plan.session is not None and not plan.is_incremental:
            self._node.fetch_sessions.forget(plan.session)
        parts, size = write_response(
            (),
            self._call.header.api_version,
            error_code=plan.error_code,
            session_id=plan.session_id if plan.is_incremental else 0,
            throttle_time_ms=wait_ms,
        )
        return [response_prefix(self._call.header, size), *parts]


def _nothing_yet(entry: FetchEntry, partition: "Partition") -> FetchResult:
    return FetchResult(
        entry.index,
        0,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log.start_offset,
    )


def _go_there(entry: FetchEntry, partition: "Partition", replica_id: int) -> FetchResult:
    """Nothing to read here, but where to."""
    return FetchResult(
        entry.index,
        0,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log.start_offset,
        preferred_read_replica=replica_id,
    )
