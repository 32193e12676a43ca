"""The answer to a produce request: its results, and what they wait for.

It waits for flushes where flush.messages is reached, and with acks=all for the in-sync replicas; then it answers once.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.broker.access.guards.records import NONE, Refusals
from penstock.broker.cluster.current_leaders import LED_ELSEWHERE, endpoints_of, leaders_elsewhere
from penstock.broker.partitions.waits import CommitWait
from penstock.broker.requests.call import Call
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.net.connection import Deferred
from penstock.net.output import Part
from penstock.wire.framing import response_prefix
from penstock.wire.produce import LEADERS_FROM, ProduceRequest, ProduceResult, refused, write_response

if TYPE_CHECKING:
    from asyncio import Task
    from typing import Protocol

    from penstock.broker.facets import (
        WithAddresses,
        WithAnswers,
        WithAuthorizer,
        WithBrokerId,
        WithClientQuotas,
        WithClock,
        WithDiskFaults,
        WithFlushes,
        WithImage,
        WithLoop,
        WithOpenings,
        WithPartitions,
        WithProof,
        WithRequestCounts,
        WithTransactions,
    )
    from penstock.broker.partitions.held_topic import HeldTopic
    from penstock.broker.partitions.partition import Partition

    class Needs(
        WithAddresses,
        WithAnswers,
        WithAuthorizer,
        WithBrokerId,
        WithClientQuotas,
        WithClock,
        WithDiskFaults,
        WithFlushes,
        WithImage,
        WithLoop,
        WithOpenings,
        WithPartitions,
        WithProof,
        WithRequestCounts,
        WithTransactions,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

_TOO_LARGE: Final = frozenset((ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE))
_NOT_YET: Final = refused(-1, ErrorCode.UNKNOWN_SERVER_ERROR)
"""Stands for a result that is not there yet; it is never sent."""


class ProduceAnswer:
    """What a request's batches have come to, by their places: where they stand in it, counted through all topics."""

    __slots__ = (
        "_awaited",
        "_call",
        "_commits",
        "_is_led_elsewhere",
        "_node",
        "_throttle_ms",
        "deferred",
        "forbidden",
        "request",
        "results",
        "unchecked",
    )

    def __init__(self, node: "Needs", call: Call, request: ProduceRequest) -> None:
        self._node = node
        self._call = call
        self.request = request
        topics = request.topics
        count = len(topics[0][1]) if len(topics) == 1 else sum(len(batches) for _, batches in topics)
        self.results: list[ProduceResult] = [_NOT_YET] * count
        self.unchecked: list[int] = []
        """Places without a result yet, since their batches cannot be checked at once."""
        self.forbidden: Refusals = NONE
        """Topics, as the request names them, that the client may not write to."""
        self.deferred: Deferred | None = None
        self._commits: list[CommitWait[int]] = []
        self._is_led_elsewhere = False
        """Whether a partition was refused because another broker leads it: the answer says which (KIP-951)."""
        self._throttle_ms = 0
        """How long the client must wait before it sends more."""
        self._awaited = 1
        """What the answer waits for: the way down, then flushes and commits."""

    def answer(self) -> Sequence[Part] | Deferred | None:
        """When all that can be appended is: at once where nothing is waited for, else by the deferred reply."""
        if self.request.acks == 0:
            if any(result[1] for result in self.results):
                # There is no answer in which to say so; the client learns it by losing its connection, as with Kafka.
                self._call.connection.close("a produce request with acks=0 failed")
            return self._reply(None)
        self._awaited -= 1
        if not self._awaited:
            return self._reply(self._response())
        # They are stored: an answer that waits for followers must not keep the memory in which they came, which nobody counts
        # any more.
        self.request = self.request.without_records()
        if self.deferred is None:
            self.deferred = self._call.connection.defer()
        self.deferred.on_abandoned = self.abandon
        return self.deferred

    def charge(self, size_bytes: int, *, spent_s: float) -> None:
        """Against the client's quotas, when its batches are in the logs: nothing more is read before."""
        self._throttle_ms = self._node.client_quotas.produced(self._call, size_bytes, spent_s=spent_s)

    def abandon(self) -> None:
        for wait in self._commits:
            wait.cancel()

    def await_commits(self, uncommitted: "list[tuple[int, Partition, int]]") -> None:
        timeout_ms = self.request.timeout_ms
        self._awaited += 1
        self._commits.append(CommitWait(self._node.loop, uncommitted, self._committed, timeout_ms=timeout_ms))

    def await_flush(self, place: int, partition: "Partition") -> None:
        flush = self._node.flushes.ask(partition)
        if self.request.acks:
            self._awaited += 1
            self._node.answers.await_end(flush)
            flush.add_done_callback(partial(self._flushed, place))

    def _committed(self, errors: "dict[int, ErrorCode]") -> None:
        for place, error in errors.items():
            if error:
                self._refuse(place, error)
        self._settle()

    def _flushed(self, place: int, flush: "Task[OSError | None]") -> None:
        if flush.cancelled():
            self._refuse(place, ErrorCode.KAFKA_STORAGE_ERROR)
        elif (bug := flush.exception()) is not None:
            log.error("answering a produce request failed", exc_info=bug)
            self._call.connection.close("an error in the broker")
        elif (fault := flush.result()) is not None:
            self._refuse(place, ErrorCode.KAFKA_STORAGE_ERROR, fault.strerror)
        self._settle()

    def _refuse(self, place: int, error: ErrorCode, detail: str | None = None) -> None:
        self.results[place] = refused(self.results[place][0], error, detail)
        self._count_refusal(error, None, None)
        if error in LED_ELSEWHERE:
            self._is_led_elsewhere = True

    def _count_refusal(self, error: ErrorCode, topic: "HeldTopic | None", records: memoryview | None) -> None:
        """Of one batch; without a topic where the batch is in the log and only its answer says that it may get lost."""
        node = self._node
        node.request_counts.of(ApiKey.PRODUCE).note_error(error)
        traffic = node.partitions.gone_traffic if topic is None else topic.traffic
        traffic.failed_produce_requests += 1
        if error in _TOO_LARGE and records is not None:
            traffic.bytes_rejected += len(records)

    def _settle(self) -> None:
        """Something that the answer waits for has come."""
        self._awaited -= 1
        if self._awaited == 0:
            try:
                self._reply(self._response())
            except Exception:
                log.exception("answering a produce request failed")
                self._call.connection.close("an error in the broker")

    def _reply(self, parts: Sequence[Part] | None) -> Sequence[Part] | Deferred | None:
        deferred = self.deferred
        if deferred is None:
            return parts
        if not self._call.connection.is_closed:
            deferred.resolve(parts)
        return deferred

    def _response(self) -> Sequence[Part]:
        asked = self.request.topics
        if len(asked) == 1:
            topics = [(asked[0][0], self.results)]
        else:
            topics = []
            end = 0
            for key, batches in asked:
                start, end = end, end + len(batches)
                topics.append((key, self.results[start:end]))
        header = self._call.header
        if self._is_led_elsewhere and header.api_version >= LEADERS_FROM:
            leaders = leaders_elsewhere(self._node, topics)
            endpoints = endpoints_of(self._node, self._call.connection, leaders.values())
            body = write_response(
                topics, header.api_version, self._throttle_ms, leaders=leaders, endpoints=endpoints
            )
        else:
            body = write_response(topics, header.api_version, self._throttle_ms)
        return (response_prefix(header, len(body)), body)
