"""API 35 DescribeLogDirs, versions 1–5: The log directories with their partitions, the sizes of these, and the free space on
the disk.

A directory that failed has the error KAFKA_STORAGE_ERROR and, in a field of ours, why. A replica on its way elsewhere is
in both: where it goes with `is_future_key` and by how many offsets the copy is behind. In tagged fields of ours, which clients of
Kafka's kind skip, a compacted partition tells of its cleaning, a partition that cannot be read of the damage, and a directory of
the strays in it; a broker of a cluster tells what is wrong with its session.
Not done: cordoned directories (`cordoned.log.dirs`).
"""

import os
from typing import TYPE_CHECKING, Protocol

from penstock.broker.partitions.damage import current_damage
from penstock.broker.requests.call import Call
from penstock.broker.upkeep.cleaner_status import CleanerStatus
from penstock.broker.upkeep.strays import measure_strays
from penstock.model.errors import ErrorCode
from penstock.storage.damage import OURS
from penstock.storage.strays import Extent, Stray
from penstock.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
    PenstockCleaner,
    PenstockDamage,
    PenstockFailure,
    PenstockSession,
    PenstockStray,
)

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithBrokerId,
        WithCleaner,
        WithClustered,
        WithLogMoves,
        WithMembership,
        WithPartitions,
        WithPools,
    )
    from penstock.broker.partitions.partition import Partition

    class Needs(
        WithBrokerId,
        WithCleaner,
        WithClustered,
        WithLogMoves,
        WithMembership,
        WithPartitions,
        WithPools,
        Protocol,
    ): ...


REQUEST = DescribeLogDirsRequest
RESPONSE = DescribeLogDirsResponse

Found = dict[str, list[DescribeLogDirsPartition]]


async def handle(node: "Needs", call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    strays = {directory.path: found for directory, found in (await measure_strays(node)).items()}
    directories = node.partitions.log_directories
    online = [directory.path for directory in directories.online]
    rooms = {path: await node.pools.bulk.run(_room, path) for path in online}
    by_directory: dict[str, Found] = {path: {} for path in directories.paths}
    for partition in node.partitions:
        if wanted is None or (partition.topic, partition.index) in wanted:
            topics = by_directory[os.path.dirname(partition.log.directory)]
            status = node.cleaner.status(partition.topic, partition.index)
            topics.setdefault(partition.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=partition.index,
                    partition_size=partition.log.size_bytes,
                    penstock_cleaner=[_cleaner(status)] if status and partition.log.options.compacted else (),
                    penstock_damage=_damage(partition, node.broker_id),
                )
            )
    for partition, move in node.log_moves.all():
        if wanted is None or (partition.topic, partition.index) in wanted:
            by_directory[move.target.path].setdefault(partition.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=partition.index,
                    partition_size=move.future.size_bytes,
                    offset_lag=max(partition.log.end_offset - move.future.end_offset, 0),
                    is_future_key=True,
                )
            )
    return DescribeLogDirsResponse(
        results=[
            _describe(path, topics, strays.get(path, []), rooms.get(path), directories.failed.get(path))
            for path, topics in by_directory.items()
        ],
        penstock_session=[PenstockSession(trouble=node.membership.session_state.trouble)]
        if node.is_clustered
        else (),
    )


def _room(path: str) -> os.statvfs_result | None:
    """On the disk of a directory; by a thread, since a disk that is gone may not answer."""
    try:
        return os.statvfs(path)
    except OSError:
        return None


def _cleaner(status: CleanerStatus) -> PenstockCleaner:
    has_run = status.runs > 0
    return PenstockCleaner(
        dirty_ratio=status.dirty_ratio,
        is_cleanable=status.is_cleanable,
        progress=-1.0 if status.progress is None else status.progress,
        runs=status.runs,
        last_run_ms=status.last_run_ms,
        last_duration_ms=round(status.last_seconds * 1000) if has_run else -1,
        bytes_read=status.bytes_read,
        bytes_written=status.bytes_written,
        records_kept=status.records_kept,
        records_removed=status.records_removed,
        uncleanable_reason=status.uncleanable_reason or "",
    )


def _damage(partition: "Partition", broker_id: int) -> list[PenstockDamage]:
    damage = current_damage(partition.log, is_leader=partition.is_leader)
    if damage is None:
        return []
    whose = broker_id if damage.broker_id == OURS else damage.broker_id
    return [
        PenstockDamage(offset=damage.offset, cause=damage.cause, broker_id=whose, found_ms=damage.found_ms)
    ]


def _stray(stray: Stray, extent: Extent) -> PenstockStray:
    return PenstockStray(
        topic=stray.topic_partition.topic,
        partition_index=stray.topic_partition.partition,
        topic_id=stray.topic_id,
        directory=stray.name,
        size_bytes=extent.size_bytes,
        start_offset=extent.start_offset,
        end_offset=extent.end_offset,
        leader_epoch=extent.leader_epoch,
        set_aside_ms=stray.set_aside_ms,
    )


def _describe(
    path: str,
    topics: Found,
    strays: list[tuple[Stray, Extent]],
    disk: os.statvfs_result | None,
    failure: OSError | None,
) -> DescribeLogDirsResult:
    if disk is None:
        cause = "it does not answer" if failure is None else failure.strerror or str(failure)
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR,
            log_dir=path,
            penstock_failure=[PenstockFailure(cause=cause)],
        )
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[
            DescribeLogDirsTopic(name=name, partitions=sorted(parts, key=lambda part: part.partition_index))
            for name, parts in sorted(topics.items())
        ],
        total_bytes=disk.f_blocks * disk.f_frsize,
        usable_bytes=disk.f_bavail * disk.f_frsize,
        penstock_strays=[_stray(*each) for each in strays],
    )
