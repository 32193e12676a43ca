"""API 0 Produce, versions 3–13: Append record batches to partitions.

Appends each partition's batch to its log and answers with the base offsets. acks=0 gets no answer. acks=1 gets one at once,
acks=all when every in-sync replica has the batch: at once where there are no followers, because there the high watermark
moves with the append. A broker that cannot prove that it is still a member of its cluster treats acks=1 as acks=all: its
followers know whether it still leads. A refused partition does not hold up the others.

Two steps. First `append` appends what it can to the logs, nearly always everything. Two things may take longer: the answer of a
transaction coordinator on another broker to the first batch in a partition, and the check of a large batch or of very many.
Meanwhile nothing more is read from the connection, so a producer's batches are appended in the order in which they were sent.
This includes several batches for one partition in one request, of which Kafka takes only the last. What comes behind a batch that
was refused for the moment is refused too (`refused_firsts`). Then `ProduceAnswer` waits
until the batches are committed, and answers once. If another broker leads a partition, the answer names it (KIP-951, from
version 10 on). A client that is over its quota gets its answer at once, and nothing more is read from it for a while.
Not done: batches of more than 1,000,000 records, and batches whose offset deltas do not count from 0. They are refused.
"""

import logging
from asyncio import sleep
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from penstock.broker.access.guards import records as guard
from penstock.broker.cluster.current_leaders import LED_ELSEWHERE
from penstock.broker.coordinators.admission import ClientLevel
from penstock.broker.coordinators.first_batches import Admission, admit, admit_without_id, is_admitted
from penstock.broker.partitions.held_topic import unknown_topic
from penstock.broker.partitions.refused_firsts import producer_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import Later, NowOrLater, settled
from penstock.broker.requests.produce_answer import ProduceAnswer
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import is_internal
from penstock.net.connection import Deferred
from penstock.net.output import Part
from penstock.records.batch import records_count
from penstock.records.walk import NotAtOnce
from penstock.wire.framing import SIZE
from penstock.wire.produce import ProduceTopic, read_request, refused

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.produce_answer import Needs

log = logging.getLogger("penstock.broker")

_VALID_ACKS = (-1, 0, 1)
ABORTABLE_FROM: Final = 11
ADDS_PARTITIONS_FROM: Final = 12
"""From this version on (transaction version 2) a producer leaves it to the broker to add partitions to its transaction."""
PORTION_BYTES: Final = 1024 * 1024
"""Of checked batches: these are appended before more are opened."""
BATCH_AS_RECORDS: Final = 32
"""What the check of a batch costs beside its records, in records."""
BATCHES_AT_ONCE: Final = 256
"""Batches of one request that are appended in one step: a few milliseconds."""
_ADMIN_CLIENT_ID = "__admin_client"
"""The one client that Kafka lets write to its internal topics."""


def handle_frame(
    node: "Needs", call: Call, frame: memoryview, offset: int
) -> Sequence[Part] | Deferred | None:
    quotas = node.client_quotas
    began_s = quotas.now_s() if quotas.is_active else 0.0
    request = read_request(frame, offset, call.header.api_version)
    produce = Produce(node, call, request)
    topics = request.topics
    if node.authorizer.is_on:
        admission = produce.admit_allowed(topics)
    else:
        admission = admit_without_id(topics) if request.transactional_id is None else produce.admit(topics)
    if not isinstance(admission, Later):
        produce.append(topics, admission)
        if not produce.unchecked:
            if quotas.is_active:
                produce.charge(len(frame) + SIZE.size, spent_s=quotas.now_s() - began_s)
            return produce.answer()
    held = call.connection.hold(frame)
    if held is None:
        produce.abandon()
        if isinstance(admission, Later):
            node.answers.begin(_forget(admission))
        return None
    produce.request = read_request(held, offset, call.header.api_version)
    produce.deferred = call.connection.defer()
    size_bytes = len(frame) + SIZE.size
    node.answers.begin(produce.append_later(admission if isinstance(admission, Later) else None, size_bytes))
    return produce.deferred


async def _forget(admission: Later[Admission]) -> None:
    await admission


class Produce(ProduceAnswer):
    """One request on its way down to the logs. A place is where a batch stands in the request, counted through all topics."""

    __slots__ = ()

    def admit(self, topics: Sequence[ProduceTopic]) -> NowOrLater[Admission]:
        request = self.request
        if request.transactional_id is None:
            return admit_without_id(topics)
        client = ClientLevel.of(
            self._call.api_version, abortable_from=ABORTABLE_FROM, adds_from=ADDS_PARTITIONS_FROM
        )
        return admit(self._node, request.transactional_id, topics, client)

    def admit_allowed(self, topics: Sequence[ProduceTopic]) -> NowOrLater[Admission]:
        """The same of what the client may write. What it may not is refused by `append`."""
        node, call, transactional_id = self._node, self._call, self.request.transactional_id
        without_id = admit_without_id(topics)
        is_part_of_one = isinstance(without_id, ErrorCode)
        if is_part_of_one and not guard.may_write_as(node, call, transactional_id):
            return without_id
        self.forbidden = guard.may_not_write(node, call, topics)
        if transactional_id is None:
            return without_id
        return self.admit([each for each in topics if each[0] not in self.forbidden])

    async def append_later(self, admission: Later[Admission] | None, size_bytes: int) -> None:
        """What cannot be appended at once: all of it for want of the consent, or else the batches that are not checked yet."""
        topics: Sequence[ProduceTopic] = self.request.topics
        quotas = self._node.client_quotas
        try:
            consent = None if admission is None else await admission
            began_s = quotas.now_s()
            if consent is not None:
                # In one step with the await: the consent does not outlast it.
                self.append(topics, consent)
            if self.unchecked:
                await self._check_and_append()
            if quotas.is_active:
                self.charge(size_bytes, spent_s=quotas.now_s() - began_s)
        except Exception:
            log.exception("a produce request failed")
            self._call.connection.close("an error in the broker")
        finally:
            self._call.connection.release()
        if self._call.connection.is_closed:
            self.abandon()
        else:
            self.answer()

    async def _check_and_append(self) -> None:
        """One after the other, and those that passed in portions: opened batches may be a thousand times what the request is."""
        node = self._node
        places, self.unchecked = self.unchecked, []
        batches = [(key, each) for key, batches in self.request.topics for each in batches]
        topics: list[ProduceTopic] = []
        passed: list[int] = []
        size_bytes = 0
        for place in places:
            key, (index, records) = batches[place]
            assert records is not None
            try:
                partition = node.partitions.get(key, index)
                checked = await node.openings.check(partition, records, node.clock.now_ms())
            except ApiError as error:
                self.results[place] = refused(index, error.code, error.detail, error.record)
                node.partitions.refused_firsts.note(key, index, records, error.code)
                self._count_refusal(error.code, node.partitions.topic(key), records)
            else:
                topics.append((key, [(index, checked)]))
                passed.append(place)
                size_bytes += len(checked)
            is_portion = size_bytes >= PORTION_BYTES or len(passed) >= BATCHES_AT_ONCE
            if topics and (is_portion or place == places[-1]):
                self.append(topics, await settled(self.admit(topics)), checked_places=passed)
                topics, passed, size_bytes = [], [], 0
                await sleep(0)

    def append(
        self,
        topics: Sequence[ProduceTopic],
        admission: Admission,
        *,
        checked_places: Sequence[int] | None = None,
    ) -> None:
        """In one step: nobody else appends between its batches. What they wait for is asked for in the same step: when others
        have led in between, the same offsets may hold other records.
        """
        uncommitted: list[tuple[int, Partition, int]] = []
        node, request, results = self._node, self.request, self.results
        refusal = admission if isinstance(admission, ErrorCode) else ErrorCode.NONE
        if request.acks not in _VALID_ACKS:
            refusal = ErrorCode.INVALID_REQUIRED_ACKS
        to_all = request.acks == -1
        must_commit = to_all or not node.is_proven()
        is_checked = checked_places is not None
        refused_firsts = node.partitions.refused_firsts
        waited_for: tuple[Partition, ...] = ()
        number = -1
        checked_before = 0
        for key, batches in topics:
            topic = node.partitions.topic(key)
            why = refusal or self.forbidden.get(key, refusal)
            for index, records in batches:
                number += 1
                place = number if checked_places is None else checked_places[number]
                if why:
                    results[place] = refused(index, why)
                    self._count_refusal(why, topic, records)
                    continue
                try:
                    if topic is None:
                        raise unknown_topic(key)
                    topic.traffic.produce_requests += 1
                    if is_internal(topic.name) and self._call.client_id != _ADMIN_CLIENT_ID:
                        raise _internal(topic.name)
                    partition = topic.partition(index)
                    if records is None:
                        raise ApiError(ErrorCode.INVALID_RECORD, "a partition without records")
                    if refused_firsts:
                        is_known = producer_of(records) in partition.log.producers
                        refused_firsts.check(key, index, records, is_known=is_known)
                    before = checked_before
                    if len(results) > 1:
                        if not is_checked and (number >= BATCHES_AT_ONCE or partition in waited_for):
                            raise NotAtOnce
                        checked_before += BATCH_AS_RECORDS + records_count(records)
                    if request.transactional_id is None:
                        base_offset, append_time_ms = partition.append(
                            records, to_all=to_all, is_checked=is_checked, checked_before=before
                        )
                    else:
                        base_offset, append_time_ms = self._append_of_transaction(
                            partition, records, admission, is_checked=is_checked, checked_before=before
                        )
                    stored, replica = partition.log, partition.replica
                    if replica.must_flush:
                        self.await_flush(place, partition)
                    if must_commit and replica.high_watermark < stored.end_offset:
                        uncommitted.append((place, partition, stored.end_offset))
                    results[place] = (index, 0, base_offset, append_time_ms, stored.start_offset, None)
                except ApiError as error:
                    results[place] = refused(index, error.code, error.detail, error.record)
                    refused_firsts.note(key, index, records, error.code)
                    self._count_refusal(error.code, topic, records)
                    if error.code in LED_ELSEWHERE:
                        self._is_led_elsewhere = True
                except NotAtOnce:
                    self.unchecked.append(place)
                    # What the request has for this partition behind it must not overtake it.
                    if number < BATCHES_AT_ONCE:
                        waited_for += (partition,)
                except OSError as error:
                    node.report_disk_fault(f"cannot append to {partition}", error, partition)
                    refused_firsts.note(key, index, records, ErrorCode.KAFKA_STORAGE_ERROR)
                    results[place] = refused(index, ErrorCode.KAFKA_STORAGE_ERROR, error.strerror)
                    self._count_refusal(ErrorCode.KAFKA_STORAGE_ERROR, topic, records)
        if uncommitted and request.acks:
            self.await_commits(uncommitted)

    def _append_of_transaction(
        self,
        partition: "Partition",
        records: memoryview,
        admission: Admission,
        *,
        is_checked: bool,
        checked_before: int,
    ) -> tuple[int, int]:
        return partition.append(
            records,
            verified_transaction=is_admitted(admission, TopicPartition(partition.topic, partition.index)),
            starts_at_zero=self._call.api_version >= ADDS_PARTITIONS_FROM,
            to_all=self.request.acks == -1,
            is_checked=is_checked,
            checked_before=checked_before,
        )


def _internal(name: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
