"""API 0 Produce, versions 3–13: append batches to partitions.

Appends each partition's batch to its log and answers with the base offsets. acks=0 gets no answer, acks=1 and acks=all the
same one: on one node the high watermark moves with the append. A refused partition does not hold up the others.
Where flush.messages is reached, the answer waits until a thread has brought the log to the device; consumers do not.
Transactional batches are refused until transactions are there.
"""

from asyncio import Task, shield
from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.controller.names import is_internal
from penstock.model.errors import ApiError, ErrorCode
from penstock.net.connection import Deferred
from penstock.net.output import Part
from penstock.wire.framing import response_prefix
from penstock.wire.produce import ProduceRequest, ProduceResult, read_request, refused, write_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.node import Node
    from penstock.broker.partition import Partition

    Unflushed = tuple[tuple[int, int], Partition]
    """Where in the results (topic, partition), and what is to be flushed before they are sent."""

_VALID_ACKS = (-1, 0, 1)
_ADMIN_CLIENT_ID = "__admin_client"
"""The one client that Kafka lets write to its internal topics."""


def handle_frame(
    node: "Node", call: Call, frame: memoryview, offset: int
) -> "Sequence[Part] | Deferred | None":
    header = call.header
    request = read_request(frame, offset, header.api_version)
    unflushed: list[Unflushed] = []
    results = append_all(node, request, call.client_id, unflushed)
    flushes = [(place, node.flushes.ask(partition)) for place, partition in unflushed]
    if request.acks == 0:
        for _, partitions in results:
            if any(error_code for _, error_code, *_ in partitions):
                # There is no answer in which to say so; the client learns it by losing its connection, as with Kafka.
                call.connection.close("a produce request with acks=0 failed")
                break
        return None
    if flushes:
        deferred = call.connection.defer()
        answering = node.loop.create_task(_answer_when_flushed(call, results, flushes, deferred))
        _answering.add(answering)
        answering.add_done_callback(_answering.discard)
        return deferred
    body = write_response(results, header.api_version)
    return (response_prefix(header, len(body)), body)


async def _answer_when_flushed(
    call: Call,
    results: list[tuple[str | bytes, list[ProduceResult]]],
    flushes: "list[tuple[tuple[int, int], Task[OSError | None]]]",
    deferred: Deferred,
) -> None:
    for (topic, place), flush in flushes:
        error = await shield(flush)
        if error is not None:
            of_topic = results[topic][1]
            of_topic[place] = refused(of_topic[place][0], ErrorCode.KAFKA_STORAGE_ERROR, error.strerror)
    if not call.connection.is_closed:
        body = write_response(results, call.header.api_version)
        deferred.resolve((response_prefix(call.header, len(body)), body))


_answering: "set[Task[None]]" = set()  # the loop itself holds its tasks only weakly


def append_all(
    node: "Node", request: ProduceRequest, client_id: str, unflushed: "list[Unflushed]"
) -> list[tuple[str | bytes, list[ProduceResult]]]:
    refusal = ErrorCode.NONE
    if request.acks not in _VALID_ACKS:
        refusal = ErrorCode.INVALID_REQUIRED_ACKS
    elif request.transactional_id is not None:
        refusal = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    answers: list[tuple[str | bytes, list[ProduceResult]]] = []
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
                base_offset, append_time_ms = partition.append(records)
                stored = partition.log
                if stored.end_offset - stored.recovery_point >= stored.options.flush_messages:
                    unflushed.append(((len(answers), len(results)), partition))
                results.append((index, 0, base_offset, append_time_ms, stored.start_offset, None))
            except ApiError as error:
                results.append(refused(index, error.code, error.detail))
            except OSError as error:
                node.report_disk_fault(f"cannot append to {partition}", error, partition)
                results.append(refused(index, ErrorCode.KAFKA_STORAGE_ERROR, error.strerror))
        answers.append((key, results))
    return answers
