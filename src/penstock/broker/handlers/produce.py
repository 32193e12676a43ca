"""API 0 Produce, versions 3–13: append batches to partitions.

Appends each partition's batch to its log and answers with the base offsets. acks=0 gets no answer, acks=1 and acks=all the
same one: on one node the high watermark moves with the append. A refused partition does not hold up the others.
Transactional batches are refused until transactions are there.
"""

import logging
from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.model.errors import ApiError, ErrorCode
from penstock.net.connection import Deferred, Part
from penstock.wire.framing import response_prefix
from penstock.wire.produce import ProduceRequest, ProduceResult, read_request, refused, write_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.node import Node

log = logging.getLogger("penstock.broker")

_VALID_ACKS = (-1, 0, 1)


def handle_frame(
    node: "Node", call: Call, frame: memoryview, offset: int
) -> "Sequence[Part] | Deferred | None":
    header = call.header
    request = read_request(frame, offset, header.api_version)
    results = append_all(node, request)
    if request.acks == 0:
        for _, partitions in results:
            if any(error_code for _, error_code, *_ in partitions):
                # There is no answer in which to say so; the client learns it by losing its connection, as with Kafka.
                call.connection.close("a produce request with acks=0 failed")
                break
        return None
    body = write_response(results, header.api_version)
    return (response_prefix(header, len(body)), body)


def append_all(node: "Node", request: ProduceRequest) -> list[tuple[str | bytes, list[ProduceResult]]]:
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
                partition = topic.partition(index)
                if records is None:
                    raise ApiError(ErrorCode.INVALID_RECORD, "a partition without records")
                base_offset, append_time_ms = partition.append(records)
                results.append((index, 0, base_offset, append_time_ms, partition.log.start_offset, None))
            except ApiError as error:
                results.append(refused(index, error.code, error.detail))
            except OSError as error:
                log.error("cannot append to %s-%s: %s", key, index, error)
                results.append(refused(index, ErrorCode.KAFKA_STORAGE_ERROR, error.strerror))
        answers.append((key, results))
    return answers
