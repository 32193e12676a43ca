"""Taking over log directories that Apache Kafka wrote: their logs become topics.

Happens once, at the first start with a metadata store that knows no topic: afterwards the store says which topics there
are, and a directory that it does not know is not a topic. A log of KRaft's metadata beside the others gives the topics'
configs and the producer ids that are taken. In a directory of the ZooKeeper era there is none, nor in our own where the store
is lost: the topics keep all that they have, until somebody gives them configs.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from penstock.broker.adoption.kraft_metadata import KraftMetadata, read_kraft_metadata
from penstock.broker.adoption.taken_producer_ids import block_before, next_producer_id
from penstock.config.check import check_topic_overrides
from penstock.config.layers import BrokerConfig
from penstock.config.topic_options import KEEP_ALL
from penstock.controller import names as topic_names
from penstock.controller.topics import new_partition, partition_creation
from penstock.metadata import znodes
from penstock.metadata.image import TOPICS, ClusterImage, ConfigsChanged, PartitionRegistration, TopicCreated
from penstock.metadata.tree import Create, MetadataTree, Set, TreeOp
from penstock.model.errors import ApiError
from penstock.model.internal_topics import CLUSTER_METADATA, is_internal
from penstock.records.batch import MAGIC, MAGIC_AT
from penstock.runtime.files import Disk
from penstock.storage import names
from penstock.storage.leader_epochs import LeaderEpochs
from penstock.storage.log_directory import LogDirectory
from penstock.storage.meta_properties import LogDirectoryError

log = logging.getLogger("penstock.broker")

ADOPTED: Final = "/admin/adopted_log_dirs"
"""Its presence in the tree says that the directories were looked through."""
NAMED_AT_MOST: Final = 20
"""In a line of the log."""


class Adopted(NamedTuple):
    name: str
    topic_id: bytes
    partitions: tuple[PartitionRegistration, ...]
    overrides: Mapping[str, str]
    is_kept_whole: bool
    """Its own configs are lost."""


async def adopt_logs(
    tree: MetadataTree,
    image: ClusterImage,
    disk: Disk,
    directories: Iterable[LogDirectory],
    config: BrokerConfig,
) -> None:
    """Makes topics of the logs that are there; LogDirectoryError when they contradict one another."""
    if image.topics or await tree.exists(ADOPTED):
        return
    found = _find_logs(directories)
    ops: list[TreeOp] = [Create(ADOPTED)]
    if found:
        metadata = _kraft_metadata(disk, found)
        topics = [_adopt(disk, name, logs, metadata, config) for name, logs in sorted(found.items())]
        for topic in topics:
            ops += _creation(topic, controller_epoch=image.controller_epoch)
        ops += await _taken_producer_ids(tree, disk, found, metadata, config.node_id)
        await tree.multi(ops)
        _warn_of_lost_configs([topic.name for topic in topics if topic.is_kept_whole])
        for topic in topics:
            image.apply(TopicCreated(topic.name, topic.topic_id, topic.partitions))
            image.apply(ConfigsChanged(TOPICS, topic.name, topic.overrides))
    else:
        await tree.multi(ops)


class _FoundLog(NamedTuple):
    directory: LogDirectory
    topic_id: bytes | None
    path: str


_Logs = dict[int, _FoundLog]


def _find_logs(directories: Iterable[LogDirectory]) -> dict[str, _Logs]:
    found: dict[str, _Logs] = {}
    for directory in directories:
        for topic_partition, topic_id in directory.list_logs():
            name, index = topic_partition
            if name == CLUSTER_METADATA or not topic_names.is_valid(name):
                continue
            path = f"{directory.path}/{topic_partition}"
            found.setdefault(name, {})[index] = _FoundLog(directory, topic_id, path)
    return found


def _kraft_metadata(disk: Disk, found: Mapping[str, _Logs]) -> KraftMetadata | None:
    paths = {one.directory.path for logs in found.values() for one in logs.values()}
    known = (read_kraft_metadata(disk, path) for path in sorted(paths))
    return next((metadata for metadata in known if metadata is not None), None)


def _adopt(
    disk: Disk, name: str, logs: _Logs, metadata: KraftMetadata | None, config: BrokerConfig
) -> Adopted:
    topic_ids = {one.topic_id for one in logs.values() if one.topic_id is not None}
    if len(topic_ids) > 1:
        paths = ", ".join(one.path for one in logs.values())
        raise LogDirectoryError(
            f"the logs of topic {name} carry different topic ids in their {names.PARTITION_METADATA}: {paths}. "
            "They are not of one topic: move those away that do not belong here"
        )
    for one in logs.values():
        _refuse_old_formats(disk, one.path)
    count = max(logs) + 1
    partitions = tuple(
        new_partition((config.node_id,))._replace(leader_epoch=_next_epoch(disk, logs[index].path))
        if index in logs
        else new_partition((config.node_id,))
        for index in range(count)
    )
    is_kept_whole = not is_internal(name) and (metadata is None or not metadata.knows(name))
    overrides = dict(KEEP_ALL) if is_kept_whole else _overrides(name, metadata, config)
    missing = [str(index) for index in range(count) if index not in logs]
    log.info(
        "took over topic %s: %s partitions%s, %s",
        name,
        count,
        f" (empty, as there is no log of them here: {', '.join(missing)})" if missing else "",
        " ".join(f"{key}={value}" for key, value in sorted(overrides.items())) or "default configs",
    )
    topic_id = topic_ids.pop() if topic_ids else os.urandom(16)
    return Adopted(name, topic_id, partitions, overrides, is_kept_whole)


def _warn_of_lost_configs(topics: list[str]) -> None:
    if topics:
        named = ", ".join(topics[:NAMED_AT_MOST]) + (" …" if len(topics) > NAMED_AT_MOST else "")
        log.warning(
            "the configs of %s topics are lost, so they keep all records (%s) until you give them theirs "
            "with penstock configs set --topic NAME, or the defaults with penstock configs delete: %s",
            len(topics), " ".join(f"{key}={value}" for key, value in KEEP_ALL.items()), named,
        )  # fmt: skip


def _refuse_old_formats(disk: Disk, path: str) -> None:
    """Recovery would take messages of Kafka 0.10 and older for damage. Formats only ever change upwards in a segment."""
    for name, size in disk.list_files(path):
        if size > MAGIC_AT and names.offset_of(name, names.LOG_SUFFIX) is not None:
            file = disk.open(f"{path}/{name}")
            try:
                magic = file.read_at(MAGIC_AT, 1)[0]
            finally:
                file.close()
            if magic < MAGIC:
                raise LogDirectoryError(
                    f"{path}/{name} holds messages of format {magic}, which is not read: "
                    "let Apache Kafka 3 rewrite them, by compaction or by copying the topic"
                )


def _next_epoch(disk: Disk, path: str) -> int:
    """A new leader begins a new epoch, so that nobody takes its word for that of the one before."""
    epochs = LeaderEpochs(disk, f"{path}/{names.LEADER_EPOCH_CHECKPOINT}")
    epochs.load()
    return epochs.latest + 1


def _overrides(name: str, metadata: KraftMetadata | None, config: BrokerConfig) -> dict[str, str]:
    known = dict(metadata.configs.get(name, {})) if metadata is not None else {}
    if is_internal(name):
        known.setdefault("cleanup.policy", "compact")
    overrides: dict[str, str] = {}
    for key, value in known.items():
        try:
            check_topic_overrides(config, {**overrides, key: value})
        except ApiError as error:
            log.warning("topic %s: its config %s=%s is ignored: %s", name, key, value, error.detail)
        else:
            overrides[key] = value
    return overrides


def _creation(topic: Adopted, *, controller_epoch: int) -> list[TreeOp]:
    ops: list[TreeOp] = [
        Create(znodes.config_path(TOPICS, topic.name), znodes.encode_config(topic.overrides)),
        Create(znodes.topic_path(topic.name), znodes.encode_topic(topic.topic_id, topic.partitions)),
        Create(znodes.partitions_path(topic.name)),
    ]
    for index, partition in enumerate(topic.partitions):
        ops += partition_creation(topic.name, index, partition, controller_epoch=controller_epoch)
    return ops


async def _taken_producer_ids(
    tree: MetadataTree,
    disk: Disk,
    found: Mapping[str, _Logs],
    metadata: KraftMetadata | None,
    broker_id: int,
) -> list[TreeOp]:
    if metadata is not None and metadata.next_producer_id > 0:
        next_id = metadata.next_producer_id
    else:
        paths = [one.path for logs in found.values() for one in logs.values()]
        next_id = next_producer_id(disk, paths)
        if next_id == 0:
            return []
    node = await tree.get(znodes.PRODUCER_ID_BLOCK)
    return [Set(znodes.PRODUCER_ID_BLOCK, block_before(next_id, broker_id), node.version)]
