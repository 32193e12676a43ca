"""Fetches all partitions that we follow from one leader, over one connection, in one fetch session.

It asks for all its partitions at once and waits at the leader until there is something. What a partition asks for is
sent again only when it changed. Partitions that the leader refuses (it has not heard of its leadership yet, or of its end)
are left out for a while, at first a short one. A request waits at the leader only until the first of them must be asked for
again. When a partition is added while a request waits at the leader, that request is given up: a new leader's first records
should not wait for an old long poll to end.

A fetch from an offset confirms that the follower has everything before it. So what flush.messages wants on the disk is flushed
first. As with Kafka, the other partitions of the same leader wait meanwhile.
"""

import logging
from asyncio import CancelledError, Event, Task, gather, wait
from math import ceil
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.partitions.damage import is_damage, report_leader
from penstock.broker.partitions.partition import Partition
from penstock.broker.replication.followed import FIRST_REST_SECONDS, Followed, Key
from penstock.broker.replication.leader_end import leader_end
from penstock.broker.replication.quotas import ReplicationQuota
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError, ErrorCode
from penstock.net.peers import PeerUnavailable
from penstock.records.batch import InvalidRecord
from penstock.storage.chores import Chores
from penstock.wire.errors import Malformed
from penstock.wire.fetch import FetchPartition
from penstock.wire.fetch_client import FetchAnswer, PartitionAnswer, read_response, write_request

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithBrokerEpoch,
        WithBrokerId,
        WithConfig,
        WithCuts,
        WithDiskFaults,
        WithFlushes,
        WithLoop,
        WithPartitions,
        WithPeers,
    )

    class Needs(
        WithBrokerEpoch,
        WithBrokerId,
        WithConfig,
        WithCuts,
        WithDiskFaults,
        WithFlushes,
        WithLoop,
        WithPartitions,
        WithPeers,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

MAX_EPOCH: Final = 2**31 - 1


class ReplicaFetcher:
    def __init__(self, node: "Needs", leader_id: int, quota: ReplicationQuota) -> None:
        self._node = node
        self._leader_id = leader_id
        self._quota = quota
        get = node.config.get
        self._max_wait_ms: int = get("replica.fetch.wait.max.ms")
        self._min_bytes: int = get("replica.fetch.min.bytes")
        self._max_bytes: int = get("replica.fetch.response.max.bytes")
        self._partition_max_bytes: int = get("replica.fetch.max.bytes")
        self._longest_rest_seconds: float = get("replica.fetch.backoff.ms") / 1000
        self._timeout_seconds: float = get("replica.socket.timeout.ms") / 1000
        self._followed: dict[Key, Followed] = {}
        self._by_partition: dict[Partition, Followed] = {}
        self._unsent: dict[Key, Followed] = {}
        """What the leader has not been asked for yet, or not from where we are now."""
        self._resting: dict[Key, Followed] = {}
        self._forgotten: set[Key] = set()
        self._session_id = 0
        self._session_epoch = 0
        self._failures = 0
        self._is_waiting = False
        self._request: Task[memoryview] | None = None
        self._wake = Event()
        self._task = node.loop.create_task(self._run())

    @property
    def has_work(self) -> bool:
        return bool(self._followed)

    def add(self, followed: Followed) -> None:
        previous = self._followed.get(followed.key)
        if previous is not None:  # another log had its place
            self._stop_resting(previous)
        self._followed[followed.key] = followed
        self._by_partition[followed.partition] = followed
        self._ask_for(followed)
        if self._is_waiting and self._request is not None:
            self._is_waiting = False
            self._node.loop.call_soon(self._request.cancel)

    def remove(self, partition: Partition) -> None:
        followed = self._by_partition.pop(partition)
        self._stop_resting(followed)
        if self._followed.get(followed.key) is followed:  # else another log has its place
            del self._followed[followed.key]
            self._unsent.pop(followed.key, None)
            self._forgotten.add(followed.key)

    def stop(self) -> None:
        self._task.cancel()
        for followed in tuple(self._resting.values()):
            self._stop_resting(followed)

    def _ask_for(self, followed: Followed) -> None:
        """With the next request. Only `add` gives up one that waits at the leader."""
        self._stop_resting(followed)
        self._unsent[followed.key] = followed
        self._forgotten.discard(followed.key)
        self._wake.set()

    def _rest(self, followed: Followed) -> None:
        """Leave a partition out for a while."""
        self._leave_out(followed, followed.rest_seconds)
        followed.rest_seconds = min(2 * followed.rest_seconds, self._longest_rest_seconds)

    def _leave_out(self, followed: Followed, seconds: float) -> None:
        self._unsent.pop(followed.key, None)
        self._forgotten.add(followed.key)
        self._stop_resting(followed)
        followed.resting = self._node.loop.call_later(seconds, self._ask_for, followed)
        self._resting[followed.key] = followed

    def _stop_resting(self, followed: Followed) -> None:
        if followed.resting is not None:
            followed.resting.cancel()
            followed.resting = None
            if self._resting.get(followed.key) is followed:
                del self._resting[followed.key]

    def _hold_back(self) -> None:
        """While more was fetched than the quota allows, those that it counts for are left out, unless they have caught up."""
        quota = self._quota
        if not quota.is_exceeded():
            return
        seconds = quota.pause_seconds()
        for followed in self._followed.values():
            if followed.resting is None and followed.is_behind and quota.counts(followed.partition):
                self._leave_out(followed, seconds)

    def release(self) -> None:
        for followed in tuple(self._resting.values()):
            self._ask_for(followed)

    # --- fetching

    async def _run(self) -> None:
        while True:
            if self._quota.is_active:
                self._hold_back()
            if len(self._resting) == len(self._followed):
                self._wake.clear()
                await self._wake.wait()
                continue
            try:
                await self._flush_unsent()
                if len(self._resting) == len(self._followed):
                    continue
                await self._fetch()
                self._failures = 0
            except (OSError, Malformed) as error:
                self._new_session()
                if not self._failures:
                    log.info("cannot fetch from broker %s: %s", self._leader_id, error)
                self._failures += 1
                await self._pause()
            except CancelledError:
                raise
            except Exception:
                log.exception("fetching from broker %s failed", self._leader_id)
                self._new_session()
                self._failures += 1
                await self._pause()

    async def _pause(self) -> None:
        """After a failure of the connection: short at first, since a leader that starts again is back soon."""
        seconds = min(FIRST_REST_SECONDS * 2 ** min(self._failures, 10), self._longest_rest_seconds)
        self._wake.clear()
        timer = self._node.loop.call_later(seconds, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    def _new_session(self) -> None:
        self._session_epoch = 0  # with the id of the old one, which the leader then gives up
        self._forgotten.clear()
        self._unsent = {key: each for key, each in self._followed.items() if each.resting is None}

    async def _flush_unsent(self) -> None:
        """The next request confirms what is before its offsets."""
        while due := [each for each in self._unsent.values() if each.partition.must_flush]:
            flushes = [self._node.flushes.ask(each.partition) for each in due]
            await wait(flushes)  # also others may wait for them, so they are not cancelled with us
            for followed, flush in zip(due, flushes, strict=True):
                error = flush.result()
                is_unsent = self._unsent.get(followed.key) is followed
                if is_unsent and (error is not None or followed.partition.must_flush):
                    self._rest(followed)

    @property
    def _wait_ms(self) -> int:
        """How long a request waits at the leader: not longer than until somebody who rests is to be asked for again."""
        if not self._resting:
            return self._max_wait_ms
        first = min(each.resting.when() for each in self._resting.values() if each.resting is not None)
        return max(1, min(self._max_wait_ms, ceil((first - self._node.loop.time()) * 1000)))

    async def _fetch(self) -> None:
        node = self._node
        version = await node.spoken.version(self._leader_id, ApiKey.FETCH, purpose="fetch")
        body = self._write_request(version)
        self._unsent.clear()
        self._forgotten.clear()
        peer = node.peers.peer(self._leader_id, "fetch")
        self._request = node.loop.create_task(
            peer.ask_raw(
                int(ApiKey.FETCH),
                version,
                body,
                timeout_s=self._max_wait_ms / 1000 + self._timeout_seconds,
            )
        )
        self._is_waiting = True
        try:
            frame = await self._request
        except CancelledError:
            if not self._is_waiting and not self._task.cancelling():  # given up by `add`
                self._new_session()
                return
            self._request.cancel()
            raise
        finally:
            self._is_waiting = False
            self._request = None
        answer = read_response(frame, version)
        if answer.error_code:
            if answer.error_code not in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ):
                raise PeerUnavailable(f"fetch: {ErrorCode(answer.error_code).name}")
            self._new_session()
            return
        self._note_session(answer)
        cuts = []
        for result in answer.partitions:
            followed = self._followed.get((result.topic_id, result.partition))
            if followed is None:
                continue
            if result.diverging_epoch is not None:
                cuts.append(self._take(followed, result))
            else:
                await self._take(followed, result)
        if cuts:  # all at once: a change of leaders may be the cause of hundreds
            await gather(*cuts)

    def _write_request(self, version: int) -> bytes:
        topics: dict[bytes, list[FetchPartition]] = {}
        for (topic_id, index), followed in self._unsent.items():
            log_ = followed.partition.log
            followed.told_start_offset = log_.start_offset
            followed.asked_offset = log_.end_offset
            topics.setdefault(topic_id, []).append(
                FetchPartition(
                    index,
                    followed.leader_epoch,
                    log_.end_offset,
                    log_.leader_epochs.latest,
                    log_.start_offset,
                    self._partition_max_bytes,
                )
            )
        forgotten: dict[bytes, list[int]] = {}
        if self._session_epoch:
            for topic_id, index in sorted(self._forgotten):
                forgotten.setdefault(topic_id, []).append(index)
        return write_request(
            version,
            replica_id=self._node.broker_id,
            replica_epoch=self._node.broker_epoch,
            max_wait_ms=self._wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=list(topics.items()),
            forgotten=list(forgotten.items()),
        )

    def _note_session(self, answer: FetchAnswer) -> None:
        if answer.session_id == 0:
            self._new_session()  # the leader keeps none for us: every request is whole
            return
        self._session_id = answer.session_id
        self._session_epoch = 1 if self._session_epoch == MAX_EPOCH else self._session_epoch + 1

    # --- taking

    async def _take(self, followed: Followed, result: PartitionAnswer) -> None:
        if not followed.can_take:
            return  # not asked before now: while others were waited for, it may have begun to lead
        partition = followed.partition
        try:
            if result.diverging_epoch is not None:
                await self._take_divergence(followed, *result.diverging_epoch)
            elif result.error_code == ErrorCode.NONE:
                self._take_records(followed, result)
            elif result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._take_other_range(followed, result)
            else:
                log.debug("%s: %s", partition, result.error_code)
                if result.error_code == ErrorCode.CORRUPT_MESSAGE:
                    report_leader(partition.log, self._leader_id, "it cannot be read there")
                self._rest(followed)
        except (ApiError, InvalidRecord, PeerUnavailable) as error:
            if is_damage(error):
                report_leader(partition.log, self._leader_id, f"it sent no whole record batches ({error})")
            else:
                log.warning("%s: cannot append what broker %s sent: %s", partition, self._leader_id, error)
            if followed.is_current:
                self._rest(followed)
        except OSError as error:
            self._node.report_disk_fault(f"cannot write to {partition}", error, partition)
            if followed.is_current:
                self._rest(followed)

    def _take_records(self, followed: Followed, result: PartitionAnswer) -> None:
        partition = followed.partition
        removal = partition.take_fetched(
            result.records,
            high_watermark=result.high_watermark,
            log_start_offset=result.log_start_offset,
            last_stable_offset=result.last_stable_offset,
        )
        # Not before: what cannot be taken is asked for less and less often.
        followed.rest_seconds = FIRST_REST_SECONDS
        if removal is not None:
            self._node.partitions.run_later(removal)
            self._node.partitions.start_offsets_moved = True
        followed.is_behind = partition.log.end_offset < result.high_watermark
        if result.records is not None and self._quota.is_active and self._quota.counts(partition):
            self._quota.record(len(result.records))
        if result.records is not None or partition.log.start_offset != followed.told_start_offset:
            self._unsent[followed.key] = followed

    async def _take_divergence(self, followed: Followed, leader_epoch: int, leader_end_offset: int) -> None:
        partition = followed.partition
        followed.rest_seconds = FIRST_REST_SECONDS
        before = partition.log.end_offset
        await self._cut(followed, partition.truncating(leader_epoch, leader_end_offset))
        log.info(
            "%s: cut from %s to %s, where the leader's log goes on",
            partition,
            before,
            partition.log.end_offset,
        )

    async def _cut(self, followed: Followed, chores: Chores) -> None:
        """Only when what was cut off cannot come back any more is the leader asked for what comes instead."""
        await self._node.cuts.run(followed.partition, chores)
        if followed.is_current and self._followed.get(followed.key) is followed:
            self._unsent[followed.key] = followed

    async def _take_other_range(self, followed: Followed, result: PartitionAnswer) -> None:
        """We have less than the leader still has, or more than it has at all."""
        partition = followed.partition
        start_offset = result.log_start_offset
        end_offset = partition.log.end_offset
        if start_offset > end_offset:
            log.warning(
                "%s: the leader's log begins at %s, this one ends at %s: starting again at the leader's beginning",
                partition, start_offset, end_offset,
            )  # fmt: skip
            await self._cut(followed, partition.starting_anew(start_offset))
        else:
            end_there = await leader_end(
                self._node, self._leader_id, partition, timeout_s=self._timeout_seconds
            )
            if not followed.is_current:
                return
            if end_there < end_offset:
                log.warning("%s: cut from %s to the leader's end %s", partition, end_offset, end_there)
                await self._cut(followed, partition.truncating(-1, end_there))
            else:
                self._unsent[followed.key] = followed
