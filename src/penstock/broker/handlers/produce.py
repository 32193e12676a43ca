"""API 0 Produce, versions 3–13: append batches to partitions.

Appends each partition's batch to its log and answers with the base offsets. acks=0 gets no answer. acks=1 gets one at once,
acks=all when every in-sync replica has the batch: at once where there are no followers, because there the high watermark
moves with the append. A broker that cannot prove that it is still a member of its cluster treats acks=1 as acks=all: its
followers know whether it still leads. A refused partition does not hold up the others.

Down once, up once. Down: `append` puts what it can into the logs, nearly always all. Two things may have to be waited for first:
the consent of a transaction's coordinator to its first batch in a partition, where it is not here and loaded; and the check of a
batch that is large, or of very many. Meanwhile the connection is held, so a producer's batches are appended in the order in
which they came; also those that one request has for one partition, of which Kafka takes the last alone. Up: `ProduceAnswer` waits
for what the appended batches wait for and answers once. Where another broker leads a partition, it says which (KIP-951, from
version 10 on).
Not done: batches of more than 1,000,000 records, and new offset deltas for a batch whose own do not count from 0.
"""

import logging
from asyncio import sleep
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from penstock.broker.cluster.current_leaders import LED_ELSEWHERE
from penstock.broker.coordinators.admission import ClientLevel
from penstock.broker.coordinators.first_batches import Admission, admit, admit_without_id, is_admitted
from penstock.broker.partitions.held_topic import unknown_topic
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
    request = read_request(frame, offset, call.header.api_version)
    produce = Produce(node, call, request)
    topics = request.topics
    admission = admit_without_id(topics) if request.transactional_id is None else produce.admit(topics)
    if not isinstance(admission, Later):
        produce.append(topics, admission)
        if not produce.unchecked:
            return produce.answer()
    held = call.connection.hold(frame)
    if held is None:
        produce.abandon()
        if isinstance(admission, Later):
            node.answers.begin(_forget(admission))
        return None
    produce.request = read_request(held, offset, call.header.api_version)
    produce.deferred = call.connection.defer()
    node.answers.begin(produce.append_later(admission if isinstance(admission, Later) else None))
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

    async def append_later(self, admission: Later[Admission] | None) -> None:
        """What cannot be appended at once: all of it for want of the consent, or else the batches that are not checked yet."""
        topics: Sequence[ProduceTopic] = self.request.topics
        try:
            if admission is not None:
                # In one step with the append: the consent does not outlast it.
                self.append(topics, await admission)
            if self.unchecked:
                await self._check_and_append()
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
                self.results[place] = refused(index, error.code, error.detail)
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
        waited_for: tuple[Partition, ...] = ()
        number = -1
        checked_before = 0
        for key, batches in topics:
            topic = node.partitions.topic(key)
            for index, records in batches:
                number += 1
                place = number if checked_places is None else checked_places[number]
                if refusal:
                    results[place] = refused(index, refusal)
                    continue
                try:
                    if topic is None:
                        raise unknown_topic(key)
                    if is_internal(topic.name) and self._call.client_id != _ADMIN_CLIENT_ID:
                        raise _internal(topic.name)
                    partition = topic.partition(index)
                    if records is None:
                        raise ApiError(ErrorCode.INVALID_RECORD, "a partition without records")
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
                    results[place] = refused(index, error.code, error.detail)
                    if error.code in LED_ELSEWHERE:
                        self._is_led_elsewhere = True
                except NotAtOnce:
                    self.unchecked.append(place)
                    # What the request has for this partition behind it must not overtake it.
                    if number < BATCHES_AT_ONCE:
                        waited_for += (partition,)
                except OSError as error:
                    node.report_disk_fault(f"cannot append to {partition}", error, partition)
                    results[place] = refused(index, ErrorCode.KAFKA_STORAGE_ERROR, error.strerror)
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
