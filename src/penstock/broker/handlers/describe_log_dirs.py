"""API 35 DescribeLogDirs, versions 1–5: each log directory with its partitions, their sizes, and the room on its disk."""

import os
from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.model.errors import ErrorCode
from penstock.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from penstock.broker.node import Node

REQUEST = DescribeLogDirsRequest
RESPONSE = DescribeLogDirsResponse


def handle(node: "Node", call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    by_directory: dict[str, dict[str, list[DescribeLogDirsPartition]]] = {
        path: {} for path in node.partitions.directories
    }
    for partition in node.partitions:
        if wanted is not None and (partition.topic, partition.index) not in wanted:
            continue
        topics = by_directory[os.path.dirname(partition.log.directory)]
        topics.setdefault(partition.topic, []).append(
            DescribeLogDirsPartition(partition_index=partition.index, partition_size=partition.log.size_bytes)
        )
    return DescribeLogDirsResponse(results=[_describe(path, topics) for path, topics in by_directory.items()])


def _describe(path: str, topics: dict[str, list[DescribeLogDirsPartition]]) -> DescribeLogDirsResult:
    try:
        disk = os.statvfs(path)
    except OSError:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[
            DescribeLogDirsTopic(name=name, partitions=sorted(parts, key=lambda part: part.partition_index))
            for name, parts in sorted(topics.items())
        ],
        total_bytes=disk.f_blocks * disk.f_frsize,
        usable_bytes=disk.f_bavail * disk.f_frsize,
    )
