"""Logs on our disks that are not ours any more: while we were not there the topic was deleted, or the replica moved away.

When a controller has told us of the whole cluster, what we hold and it does not place here goes the way of a deleted topic's
logs: out of sight at once, and from the disk after log.segment.delete.delay.ms (Kafka calls such directories `-stray`; ours are
`-delete` like the others). Two kinds are left alone: logs in a directory that failed, and all of them when none at all is known
to the cluster. That is what an emptied ZooKeeper looks like, or a wrong one, and then these logs may be all that is left.
"""

import logging
from typing import TYPE_CHECKING, Final

from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import CLUSTER_METADATA

if TYPE_CHECKING:
    from penstock.broker.node import Node

log = logging.getLogger("penstock.broker")

NAMED_AT_MOST: Final = 20
"""In a line of the log."""


def find_strays(node: "Node") -> list[TopicPartition]:
    image = node.image
    ours: list[TopicPartition] = []
    strays: list[TopicPartition] = []
    for place in node.partitions.log_directories.all_logs():
        if place.topic == CLUSTER_METADATA:
            continue  # a KRaft node of Apache Kafka's wrote it, and nobody reads it any more
        placed = image.partition(*place)
        is_ours = placed is not None and node.broker_id in placed.replicas
        (ours if is_ours else strays).append(place)
    if strays and not ours:
        log.warning(
            "none of the %s logs here is known to the cluster (%s): leaving them alone, as its metadata may be lost",
            len(strays),
            _names(strays),
        )
        return []
    if strays:
        log.warning("%s logs are not placed here any more and are removed: %s", len(strays), _names(strays))
    return strays


def _names(places: list[TopicPartition]) -> str:
    named = ", ".join(str(place) for place in places[:NAMED_AT_MOST])
    return f"{named} …" if len(places) > NAMED_AT_MOST else named
