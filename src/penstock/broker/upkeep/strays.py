"""Logs on our disks that do not belong here by the cluster's metadata: renamed to `-stray` directories, as Kafka does, and
never removed.

Perhaps a topic was deleted or a replica was moved while this broker was stopped. Or the cluster's metadata is lost, outdated,
or that of another cluster, and these logs are all that is left. The broker cannot know which. So a person looks at the strays
and removes them (`penstock log strays`). Logs in a failed directory are not touched.

A stray becomes the log again when the metadata counts our replica of its topic id as in sync: else the replica would start with
an empty log, while others believe that it has all records.
So a store that is restored brings its logs back, and `penstock log strays restore` has only to
make the topic again, with its id.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.upkeep.log_directories import LogDirectories
from penstock.controller import names
from penstock.metadata.image import ClusterImage
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import CLUSTER_METADATA
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions
from penstock.storage.strays import Extent, Stray, measure

if TYPE_CHECKING:
    from penstock.broker.facets import WithPartitions, WithPools
    from penstock.runtime.files import Disk

    class Needs(WithPartitions, WithPools, Protocol): ...


log = logging.getLogger("penstock.broker")

NAMED_AT_MOST: Final = 20
"""In a line of the log."""


def find_strays(image: ClusterImage, broker_id: int, log_directories: LogDirectories) -> list[TopicPartition]:
    """The logs that the image does not place on this broker, whether they are open or not."""
    strays: list[TopicPartition] = []
    for topic_partition in log_directories.all_logs():
        if topic_partition.topic == CLUSTER_METADATA or not names.is_valid(topic_partition.topic):
            continue  # a KRaft node of Apache Kafka's wrote it, and nobody reads it any more; or it is not a topic
        placed = image.partition(*topic_partition)
        if placed is None or broker_id not in placed.replicas:
            strays.append(topic_partition)
    if strays:
        log.warning(
            "%s logs do not belong here by the cluster's metadata: they are kept as strays, see penstock log strays list (%s)",
            len(strays), _names(strays),
        )  # fmt: skip
    return strays


def _names(topic_partitions: list[TopicPartition]) -> str:
    named = ", ".join(str(topic_partition) for topic_partition in topic_partitions[:NAMED_AT_MOST])
    return f"{named} …" if len(topic_partitions) > NAMED_AT_MOST else named


async def measure_strays(node: "Needs") -> dict[LogDirectory, list[tuple[Stray, Extent]]]:
    """All that there are, by directory. Those that somebody has removed are forgotten."""
    disk = node.partitions.disk
    found: dict[LogDirectory, list[tuple[Stray, Extent]]] = {}
    for directory in tuple(node.partitions.log_directories.online):
        if directory.strays:
            found[directory] = await node.pools.bulk.run(_measure_all, disk, directory.strays)
            left = {stray.name for stray, _ in found[directory]}
            directory.strays = [
                stray for stray in directory.strays if stray.name in left or disk.exists(stray.path)
            ]
    return found


def _measure_all(disk: "Disk", strays: list[Stray]) -> list[tuple[Stray, Extent]]:
    measured = []
    for stray in strays:
        try:
            measured.append((stray, measure(disk, stray)))
        except OSError:
            pass  # it is gone, or cannot be read
    return measured


async def take_back(
    node: "Needs",
    topic_id: bytes,
    topic_partitions: Iterable[TopicPartition],
    options: LogOptions,
    *,
    new_epoch: int | None = None,
) -> None:
    """The strays of these partitions of a topic become their logs, checked by a thread. OSError when one of them cannot. With
    `new_epoch` the partitions are new: they are made again from strays only if it is above what these know."""
    partitions = node.partitions
    for topic_partition in topic_partitions:
        found = partitions.strays_for(topic_id, topic_partition)
        if found:
            home = await node.pools.bulk.run(
                take_furthest_back, partitions.disk, found, topic_id, topic_partition, options, new_epoch
            )
            if home is not None:
                partitions.log_directories.settle(topic_partition, home)


def take_furthest_back(
    disk: "Disk",
    found: list[tuple[LogDirectory, Stray]],
    topic_id: bytes,
    topic_partition: TopicPartition,
    options: LogOptions,
    new_epoch: int | None = None,
) -> LogDirectory | None:
    """Of several, the one that goes furthest: it has all that the others have. Where it is now; None when somebody has removed
    them meanwhile, or when it is not meant.
    """

    def reach(one: tuple[LogDirectory, Stray]) -> tuple[int, int]:
        extent = measure(disk, one[1])
        return extent.leader_epoch, extent.end_offset

    found = [(directory, stray) for directory, stray in found if disk.exists(stray.path)]
    if not found:
        return None
    directory, stray = max(found, key=reach)
    if new_epoch is not None and measure(disk, stray).leader_epoch >= new_epoch:
        # It is not restored but made: as a follower of an empty log we would cut the stray off.
        log.warning("%s is a new partition, and its stray is not used: %s", topic_partition, stray.path)
        return None
    directory.take_back(stray, topic_partition, topic_id, options)
    log.warning("%s was a stray and is used again: %s", topic_partition, stray.path)
    return directory
