"""The topics of a running plan in the cluster: made, checked, pinned to where reading begins, watched, removed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.admin import Cluster, TopicPartition
from penstock.admin.streams_applications import internal_topics
from penstock.client.errors import NoSuchTopic, Refused
from penstock.model.errors import ErrorCode
from penstock.streams.kernel.topology import Subtopology
from penstock.streams.running.layout import CannotRun, InternalTopic, Layout, arrange, read_topics
from penstock.streams.running.options import LATEST, RunOptions

log = logging.getLogger("penstock.streams")


def cluster_of(options: RunOptions) -> Cluster:
    return Cluster(options.bootstrap, options.security)


def prepare(cluster: Cluster, subtopologies: Sequence[Subtopology], options: RunOptions) -> Layout:
    """Checks what is there and makes what is missing. CannotRun says what does not fit."""
    counts = partitions_of(cluster, read_topics(subtopologies))
    layout = arrange(options.application_id, subtopologies, counts)
    found = partitions_of(cluster, [topic.name for topic in layout.internal])
    for topic in layout.internal:
        _make(cluster, topic, found[topic.name], options)
    for topic_name in (options.processing_log, options.dead_letters):
        if topic_name is not None:
            cluster.topics.create(topic_name, partitions=1, exist_ok=True)
    if options.auto_offset_reset == LATEST:
        _pin(cluster, layout, options)
    return layout


def partitions_of(cluster: Cluster, names: Iterable[str]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name in names:
        try:
            found[name] = len(cluster.topics.partitions(name))
        except NoSuchTopic:
            found[name] = None
    return found


def grown(cluster: Cluster, layout: Layout) -> list[str]:
    """What has changed about the topics since the plan was started, in sentences."""
    now = partitions_of(cluster, dict(layout.partitions))
    told = []
    for topic, count in layout.partitions:
        there = now[topic]
        if there is None:
            told.append(f"the topic {topic} has been deleted")
        elif there != count:
            told.append(
                f"the topic {topic} has {there} partitions now; {count} are read until the plan is started again"
            )
    return told


def fence_others(cluster: Cluster, options: RunOptions) -> None:
    """Tasks of an earlier run that are not quite dead. Ours fence those of the same name when they open; but where the number of
    tasks has changed, a partition may come from a task of another name, which must not commit once ours has begun."""
    prefix = f"{options.application_id}-"
    for each in cluster.transactions.list():
        number = each.transactional_id.removeprefix(prefix)
        if each.transactional_id.startswith(prefix) and number.isdecimal():
            log.info("fencing %s, of an earlier run", each.transactional_id)
            cluster.transactions.fence(each.transactional_id)


def remove(cluster: Cluster, application_id: str, *, group: bool = True) -> list[str]:
    """Deletes the internal topics of an application, and its group; which topics there were."""
    names = internal_topics((topic.name for topic in cluster.topics.list()), application_id)
    for name in names:
        try:
            cluster.topics.delete(name)
        except NoSuchTopic:
            pass  # somebody else was as quick
    if group:
        try:
            cluster.groups.delete(application_id)
        except Refused as error:
            if error.code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NON_EMPTY_GROUP):
                raise
    return names


def _make(cluster: Cluster, topic: InternalTopic, there: int | None, options: RunOptions) -> None:
    if there is None:
        configs: dict[str, Any] = dict(topic.configs)
        cluster.topics.create(
            topic.name,
            partitions=topic.partitions,
            replication_factor=options.replication_factor,
            configs=configs,
            exist_ok=True,
        )
    elif there != topic.partitions:
        raise CannotRun(
            f"the internal topic {topic.name} has {there} partitions and must have {topic.partitions}: the topics that are read "
            "have changed since it was made. Reset the application with kafka-streams-application-reset, which begins anew"
        )


def _pin(cluster: Cluster, layout: Layout, options: RunOptions) -> None:
    """Where "latest" is, is decided now and not once more after each failure: what comes from here on is read."""
    internal = {topic.name for topic in layout.internal}
    committed = cluster.groups.committed(options.application_id)
    missing = [
        TopicPartition(*place)
        for place in layout.inputs()
        if place[0] not in internal and TopicPartition(*place) not in committed
    ]
    if missing:
        cluster.groups.commit(options.application_id, cluster.offsets.ends(partitions=missing))


def purge(cluster: Cluster, layout: Layout) -> None:
    """Records of repartition topics that are processed are of no use to anybody."""
    internal = {topic for part in layout.parts for topic in part.internal}
    if not internal:
        return
    committed = cluster.groups.committed(layout.application_id)
    done = {
        partition: found.offset
        for partition, found in committed.items()
        if partition.topic in internal and found.offset > 0
    }
    if done:
        cluster.topics.delete_records(done)
