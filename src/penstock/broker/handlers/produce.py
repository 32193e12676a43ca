"""API 0 Produce, versions 3–13: append batches to partitions.

Appends each partition's batch to its log and answers with the base offsets. acks=0 gets no answer. acks=1 gets one at once,
acks=all when every in-sync replica has the batch: at once where there are no followers, because there the high watermark
moves with the append. A broker that cannot prove that it is still a member of its cluster treats acks=1 as acks=all: its
followers know whether it still leads. A refused partition does not hold up the others.
Where flush.messages is reached, the answer waits until a thread has brought the log to the device; consumers do not.
The first batch of a transaction in a partition needs the coordinator's consent; where that is here and loaded, which is
nearly always, it costs a call, else the request waits with a copy of its bytes.
"""

import logging
from asyncio import Future, Task, shield
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from penstock.broker.coordinators.admission import ClientLevel
from penstock.broker.partitions.waits import CommitWait
from penstock.broker.requests.call import Call
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import is_internal
from penstock.net.connection import Deferred
from penstock.net.output import Part
from penstock.records.batch import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL_BIT,
    read_header,
)
from penstock.wire.framing import response_prefix
from penstock.wire.produce import ProduceRequest, ProduceResult, read_request, refused, write_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.broker.coordinators.admission import Refusals
    from penstock.broker.node import Node
    from penstock.broker.partitions.partition import Partition

    Admission = Mapping[TopicPartition, ErrorCode] | ErrorCode
    """Where a transaction begins: NONE if the coordinator consents. Or why the whole request is refused."""
    Place = tuple[int, int]
    """Where in the results: topic, partition."""
    Unflushed = tuple[Place, Partition]
    """What is to be flushed before the results are sent."""
    Uncommitted = tuple[Place, Partition, int]
    """What the followers must have before that, and up to which offset."""

log = logging.getLogger("penstock.broker")

Results = list[tuple[str | bytes, list[ProduceResult]]]
_VALID_ACKS = (-1, 0, 1)
_FLAGS_AT: Final = ATTRIBUTES_AT + 1
ABORTABLE_FROM: Final = 11
ADDS_PARTITIONS_FROM: Final = 12
"""From this version on (transaction version 2) a producer leaves it to the broker to add partitions to its transaction."""
NO_ADMISSION: "Admission" = {}
_ADMISSION_DETAILS = {
    ErrorCode.INVALID_TXN_STATE: "Partition was not added to the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "The transaction coordinator cannot say now whether the partition was added",
}
_ADMIN_CLIENT_ID = "__admin_client"
"""The one client that Kafka lets write to its internal topics."""


def handle_frame(
    node: "Node", call: Call, frame: memoryview, offset: int
) -> "Sequence[Part] | Deferred | None":
    request = read_request(frame, offset, call.header.api_version)
    if request.transactional_id is None:
        return _append_and_answer(node, call, request, _admit_without_id(request))
    admission = admit(node, request, client_level(call))
    if not isinstance(admission, Coroutine):
        return _append_and_answer(node, call, request, admission)
    deferred = call.connection.defer()
    copied = read_request(memoryview(bytearray(frame)), offset, call.header.api_version)
    node.answers.begin(_append_when_admitted(node, call, copied, admission, deferred))
    return deferred


async def _append_when_admitted(
    node: "Node",
    call: Call,
    request: ProduceRequest,
    admission: "Coroutine[Any, Any, Admission]",
    deferred: Deferred,
) -> None:
    try:
        # In one step with the append: the consent does not outlast it.
        reply = _append_and_answer(node, call, request, await admission, deferred)
    except Exception:
        log.exception("a produce request of transaction %s failed", request.transactional_id)
        call.connection.close("an error in the broker")
        return
    if not isinstance(reply, Deferred) and not call.connection.is_closed:
        deferred.resolve(reply)


def _append_and_answer(
    node: "Node",
    call: Call,
    request: ProduceRequest,
    admission: "Admission",
    deferred: Deferred | None = None,
) -> "Sequence[Part] | Deferred | None":
    header = call.header
    unflushed: list[Unflushed] = []
    uncommitted: list[Uncommitted] = []
    results = append_all(
        node,
        request,
        call.client_id,
        unflushed,
        admission,
        adds_partitions=call.api_version >= ADDS_PARTITIONS_FROM,
        uncommitted=uncommitted if request.acks == -1 or not node.is_proven() else None,
    )
    flushes = [(place, node.flushes.ask(partition)) for place, partition in unflushed]
    if request.acks == 0:
        for _, partitions in results:
            if any(error_code for _, error_code, *_ in partitions):
                # There is no answer in which to say so; the client learns it by losing its connection, as with Kafka.
                call.connection.close("a produce request with acks=0 failed")
                break
        return None
    if flushes:
        deferred = deferred or call.connection.defer()
        committed = _committed(node, request, uncommitted, deferred) if uncommitted else None
        node.answers.begin(_answer_when_flushed(call, results, flushes, committed, deferred))
        return deferred
    if uncommitted:
        deferred = deferred or call.connection.defer()
        _answer_when_committed(node, call, request, results, uncommitted, deferred)
        return deferred
    body = write_response(results, header.api_version)
    return (response_prefix(header, len(body)), body)


def _answer_when_committed(
    node: "Node",
    call: Call,
    request: ProduceRequest,
    results: Results,
    uncommitted: "list[Uncommitted]",
    deferred: Deferred,
) -> None:
    def finish(errors: "dict[Place, ErrorCode]") -> None:
        _refuse(results, errors)
        _resolve(call, results, deferred)

    wait = CommitWait(node.loop, uncommitted, finish, timeout_ms=request.timeout_ms)
    if not deferred.is_ready:
        deferred.on_abandoned = wait.cancel


def _committed(
    node: "Node", request: ProduceRequest, uncommitted: "list[Uncommitted]", deferred: Deferred
) -> "Future[dict[Place, ErrorCode]]":
    """The errors, when they are known. Asked for before anything is waited for: when others have led meanwhile, the same
    offsets may hold other records.
    """
    known: Future[dict[Place, ErrorCode]] = node.loop.create_future()
    wait = CommitWait(node.loop, uncommitted, known.set_result, timeout_ms=request.timeout_ms)

    def abandon() -> None:
        wait.cancel()
        if not known.done():
            known.set_result({})

    deferred.on_abandoned = abandon
    return known


def _refuse(results: Results, errors: "Mapping[Place, ErrorCode]") -> None:
    for (topic, place), error in errors.items():
        if error:
            of_topic = results[topic][1]
            of_topic[place] = refused(of_topic[place][0], error)


def _resolve(call: Call, results: Results, deferred: Deferred) -> None:
    if not call.connection.is_closed:
        body = write_response(results, call.header.api_version)
        deferred.resolve((response_prefix(call.header, len(body)), body))


async def _answer_when_flushed(
    call: Call,
    results: Results,
    flushes: "list[tuple[Place, Task[OSError | None]]]",
    committed: "Future[dict[Place, ErrorCode]] | None",
    deferred: Deferred,
) -> None:
    try:
        for (topic, place), flush in flushes:
            error = await shield(flush)
            if error is not None:
                of_topic = results[topic][1]
                of_topic[place] = refused(of_topic[place][0], ErrorCode.KAFKA_STORAGE_ERROR, error.strerror)
        if committed is not None:
            _refuse(results, await committed)
        _resolve(call, results, deferred)
    except Exception:
        log.exception("a produce request cannot be answered")
        call.connection.close("an error in the broker")


def client_level(call: Call) -> ClientLevel:
    return ClientLevel.of(call.api_version, abortable_from=ABORTABLE_FROM, adds_from=ADDS_PARTITIONS_FROM)


def _admit_without_id(request: ProduceRequest) -> "Admission":
    """Who has no transactional id cannot write as part of a transaction, not even one that is open."""
    for _, batches in request.topics:
        for _, records in batches:
            if (
                records is not None
                and len(records) >= HEADER_SIZE
                and records[_FLAGS_AT] & TRANSACTIONAL_BIT
                and records[MAGIC_AT] == MAGIC
            ):
                return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return NO_ADMISSION


def admit(
    node: "Node", request: ProduceRequest, client: ClientLevel
) -> "Admission | Coroutine[Any, Any, Admission]":
    """What the coordinator says about the partitions in which this request begins a transaction."""
    assert request.transactional_id is not None
    asked: list[TopicPartition] = []
    producers: set[tuple[int, int]] = set()
    for key, batches in request.topics:
        topic = node.partitions.topic(key)
        for index, records in batches:
            if topic is None or records is None or len(records) < HEADER_SIZE:
                continue  # refused below
            header = read_header(records)
            if not header.attributes & TRANSACTIONAL_BIT or header.producer_id < 0:
                continue
            producers.add((header.producer_id, header.producer_epoch))
            try:
                partition = topic.partition(index)
            except ApiError:
                continue
            if not partition.has_open_transaction(header.producer_id, header.producer_epoch):
                asked.append(TopicPartition(topic.name, index))
    if len(producers) > 1:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not asked:
        return NO_ADMISSION
    ((producer_id, producer_epoch),) = producers
    answered: Any = node.transactions.admit(
        request.transactional_id,
        asked,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        client=client,
    )
    if isinstance(answered, Coroutine):
        return _admission_later(answered, asked)
    return _admission(answered, asked)


async def _admission_later(
    answered: "Coroutine[Any, Any, Refusals]", asked: "list[TopicPartition]"
) -> "Admission":
    return _admission(await answered, asked)


def _admission(refusals: "Refusals", asked: "Iterable[TopicPartition]") -> "Admission":
    return {place: refusals.get(place, ErrorCode.NONE) for place in asked}


def append_all(
    node: "Node",
    request: ProduceRequest,
    client_id: str,
    unflushed: "list[Unflushed]",
    admission: "Admission" = NO_ADMISSION,
    *,
    adds_partitions: bool = False,
    uncommitted: "list[Uncommitted] | None" = None,
) -> Results:
    refusal = admission if isinstance(admission, ErrorCode) else ErrorCode.NONE
    if request.acks not in _VALID_ACKS:
        refusal = ErrorCode.INVALID_REQUIRED_ACKS
    answers: Results = []
    to_all = request.acks == -1
    for key, batches in request.topics:
        topic = node.partitions.topic(key)
        results: list[ProduceResult] = []
        for index, records in batches:
            if refusal:
                results.append(refused(index, refusal))
                continue
            try:
                if topic is None:
                    raise ApiError(
                        ErrorCode.UNKNOWN_TOPIC_ID
                        if isinstance(key, bytes)
                        else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    )
                if is_internal(topic.name) and client_id != _ADMIN_CLIENT_ID:
                    raise ApiError(
                        ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic.name}"
                    )
                partition = topic.partition(index)
                if records is None:
                    raise ApiError(ErrorCode.INVALID_RECORD, "a partition without records")
                if request.transactional_id is None:
                    base_offset, append_time_ms = partition.append(records, to_all=to_all)
                else:
                    base_offset, append_time_ms = _append_of_transaction(
                        partition, records, admission, starts_at_zero=adds_partitions, to_all=to_all
                    )
                stored = partition.log
                if partition.must_flush:
                    unflushed.append(((len(answers), len(results)), partition))
                if uncommitted is not None and partition.high_watermark < stored.end_offset:
                    uncommitted.append(((len(answers), len(results)), partition, stored.end_offset))
                results.append((index, 0, base_offset, append_time_ms, stored.start_offset, None))
            except ApiError as error:
                results.append(refused(index, error.code, error.detail))
            except OSError as error:
                node.report_disk_fault(f"cannot append to {partition}", error, partition)
                results.append(refused(index, ErrorCode.KAFKA_STORAGE_ERROR, error.strerror))
        answers.append((key, results))
    return answers


def _append_of_transaction(
    partition: "Partition",
    records: memoryview,
    admission: "Admission",
    *,
    starts_at_zero: bool,
    to_all: bool,
) -> "tuple[int, int]":
    assert not isinstance(admission, ErrorCode)
    error = admission.get(TopicPartition(partition.topic, partition.index))
    if error:
        raise ApiError(error, _ADMISSION_DETAILS.get(error))
    return partition.append(
        records, verified_transaction=error is not None, starts_at_zero=starts_at_zero, to_all=to_all
    )
