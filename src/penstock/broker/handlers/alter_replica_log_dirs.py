"""API 34 AlterReplicaLogDirs, versions 1–2: Move replicas between the log directories of this broker.

Answers at once; the move goes on behind it and DescribeLogDirs shows how far it is. A later request for the same replica
replaces an earlier one.
Not done: remembering a directory for a replica that does not exist yet.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithLogMoves, WithPartitions

    class Needs(WithLogMoves, WithPartitions, Protocol): ...


REQUEST = AlterReplicaLogDirsRequest
RESPONSE = AlterReplicaLogDirsResponse

MAX_FILE_NAME_BYTES = 255
FUTURE_SUFFIX_BYTES = len(".-future") + 32


def handle(node: "Needs", call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                code = ErrorCode.NONE
                try:
                    _move(node, topic.name, index, directory.path)
                except ApiError as error:
                    code = error.code
                results.setdefault(topic.name, []).append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in results.items()
        ]
    )


def _move(node: "Needs", topic: str, index: int, path: str) -> None:
    if len(f"{topic}-{index}".encode()) + FUTURE_SUFFIX_BYTES > MAX_FILE_NAME_BYTES:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
    directories = node.partitions.log_directories
    path = path.rstrip("/") or "/"
    if path not in directories.paths:
        raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not among the broker's log.dirs")
    target = directories.at(path)
    if target is None:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
    node.log_moves.begin(node.partitions.get(topic, index), target)


def refuse(
    request: AlterReplicaLogDirsRequest, code: ErrorCode, detail: str | None
) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )
