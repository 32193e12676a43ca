"""Logs that are here before the controller names their partitions: not opened yet, or renamed to strays."""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.metadata.configs import log_options
from penstock.broker.upkeep.strays import take_back
from penstock.model.ids import TopicPartition
from penstock.storage.log_directory import LogDirectory
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithBrokerId,
        WithConfig,
        WithDiskFaults,
        WithImage,
        WithPartitions,
        WithPools,
    )

    class Needs(WithBrokerId, WithConfig, WithDiskFaults, WithImage, WithPartitions, WithPools, Protocol): ...


async def load_unopened(node: "Needs", request: LeaderAndIsrRequest) -> None:
    """A log of the name may be there which nobody has opened, as of a topic that the store has forgotten: whose it is, a
    thread reads before it is opened, or set aside.
    """
    unopened: list[tuple[LogDirectory, TopicPartition]] = []
    for topic in request.topic_states:
        held = node.partitions.topic(topic.topic_id)
        for state in topic.partition_states:
            topic_partition = TopicPartition(topic.topic_name, state.partition_index)
            home = node.partitions.log_directories.home(topic_partition)
            if home is not None and (held is None or not held.has(topic_partition.partition)):
                unopened.append((home, topic_partition))
    if unopened:
        await node.pools.bulk.run(_load, unopened)


async def take_strays_back(node: "Needs", request: LeaderAndIsrRequest) -> set[tuple[bytes, int]]:
    """Of the partitions of which we are said to be in sync, or that are made again; those whose strays cannot be taken back.
    A replica that is only being added, or of a partition that is just new, gets a log of its own: what was set aside may have
    what the leader lacks.
    """
    failed: set[tuple[bytes, int]] = set()
    if not any(directory.strays for directory in node.partitions.log_directories.online):
        return failed
    for topic in request.topic_states:
        held = node.partitions.topic(topic.topic_id)
        options = log_options(node.config, node.image.topic_overrides(topic.topic_name))
        for state in topic.partition_states:
            index = state.partition_index
            is_made = state.is_new and node.broker_id not in state.adding_replicas
            if not (is_made or node.broker_id in state.isr) or (held is not None and held.has(index)):
                continue
            try:
                await take_back(
                    node,
                    topic.topic_id,
                    [TopicPartition(topic.topic_name, index)],
                    options,
                    new_epoch=state.leader_epoch if state.is_new else None,
                )
            except OSError as error:
                node.report_disk_fault(f"cannot take {topic.topic_name}-{index} back", error)
                failed.add((topic.topic_id, index))
    return failed


def _load(unopened: list[tuple[LogDirectory, TopicPartition]]) -> None:
    for directory, topic_partition in unopened:
        directory.load(topic_partition)
