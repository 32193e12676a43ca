"""What a change of the metadata does on this broker: logs are opened and removed, options replaced, coordinators told.

`prepare` comes before clients are told of a change, `act` after the image has it. On one node they open and remove the logs;
in a cluster the controller's requests do that (`broker/replication/roles.py`), and only the other effects happen here.
"""

import logging
from asyncio import sleep
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.metadata.configs import log_options
from penstock.broker.upkeep.strays import find_strays, take_back
from penstock.metadata.image import (
    BROKERS,
    CLIENT_METRICS,
    TOPICS,
    USERS,
    AclsChanged,
    Change,
    ConfigsChanged,
    PartitionsAdded,
    TokenChanged,
    Topic,
    TopicCreated,
    TopicDeleted,
)
from penstock.model.ids import TopicPartition

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithAuthorizer,
        WithBrokerId,
        WithClientMetrics,
        WithClientQuotas,
        WithConfig,
        WithDecoys,
        WithDiskFaults,
        WithGroups,
        WithImage,
        WithPartitions,
        WithPasswords,
        WithPools,
        WithTokens,
        WithTransactions,
    )
    from penstock.broker.partitions.partition import Partition
    from penstock.storage.options import LogOptions

    class Needs(
        WithAuthorizer,
        WithBrokerId,
        WithClientMetrics,
        WithClientQuotas,
        WithConfig,
        WithDecoys,
        WithDiskFaults,
        WithGroups,
        WithImage,
        WithPartitions,
        WithPasswords,
        WithPools,
        WithTokens,
        WithTransactions,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

OPENED_AT_ONCE: Final = 4
"""New logs that are made before others get their turn; each takes about a millisecond."""


class FollowsConfigs(Protocol):
    """Who in a cluster must know of changed configs."""

    def config_changed(self, change: ConfigsChanged) -> None: ...


class Effects:
    def __init__(self, node: "Needs", *, is_clustered: bool) -> None:
        self._node = node
        self._is_clustered = is_clustered
        self.followers_of_configs: list[FollowsConfigs] = []
        self._mistakes: dict[str, list[str]] = {}
        """By topic: what is wrong with its stored configs, as it was reported."""
        self.fetch_max_bytes: int = node.config.get("fetch.max.bytes")

    async def prepare(self, change: Change) -> None:
        """What must be there before clients are told of a change: its logs. Others are served while they are made."""
        if self._is_clustered:
            return  # LeaderAndIsr opens them, before UpdateMetadata tells of them
        if isinstance(change, TopicCreated):
            topic = Topic(change.name, topic_id=change.topic_id, partitions=list(change.partitions))
        elif isinstance(change, PartitionsAdded):
            held = self._node.image.topic(change.name)
            assert held is not None
            topic = Topic(
                held.name, topic_id=held.topic_id, partitions=[*held.partitions, *change.partitions]
            )
        else:
            return
        options = self._options(topic.name)
        topic_partitions = (TopicPartition(topic.name, index) for index in range(len(topic.partitions)))
        await take_back(self._node, topic.topic_id, topic_partitions, options)
        for opened, _ in enumerate(self._opening(topic, is_new=True), 1):
            if opened % OPENED_AT_ONCE == 0:
                await sleep(0)

    def apply(self, change: ConfigsChanged | AclsChanged | TokenChanged) -> None:
        """Another broker changed a configuration, access rules, or a token."""
        self._node.image.apply(change)
        self.act(change)

    def learn(self, change: Change) -> None:
        """As `act`, for what the image has by the word of others: the controller, or the tree as it was read again.

        A topic that is not there any more is not known to be deleted: that we would have been told, or have decided.
        """
        if isinstance(change, TopicDeleted) and not self._is_made_again(change.name):
            self._node.partitions.set_topic_aside(change.name)
        self.act(change)

    def act(self, change: Change) -> None:
        """Make a change that the image has real on this broker."""
        node = self._node
        if isinstance(change, AclsChanged):
            node.authorizer.learn(change)
            return
        if isinstance(change, TokenChanged):
            node.tokens.changed(change.token_id)
            return
        if isinstance(change, TopicDeleted) and not self._is_made_again(change.name):
            node.groups.topic_deleted(change.name)
            node.transactions.topic_deleted(change.name)
            node.partitions.delete_topic(change.name)
        if isinstance(change, TopicDeleted | TopicCreated | PartitionsAdded):
            topic = node.image.topic(change.name)
            if topic is not None and self._is_clustered:
                node.partitions.know(topic)
            node.groups.topics_changed()
        elif isinstance(change, ConfigsChanged):
            if change.entity_type == BROKERS:
                self.reload_broker_configs()
            elif change.entity_type == TOPICS:  # which we may hold before the image knows it
                self._set_options(change.entity_name)
            elif change.entity_type == CLIENT_METRICS:
                node.client_metrics.config_changed()
            else:
                node.client_quotas.config_changed(change)
                if change.entity_type == USERS:
                    node.decoys.user_changed(change)
            if change.entity_type in (BROKERS, TOPICS):
                for follower in self.followers_of_configs:
                    follower.config_changed(change)

    def _is_made_again(self, name: str) -> bool:
        """Whether the topic of a name that was deleted is here by now with another id: LeaderAndIsr comes first."""
        held, topic = self._node.partitions.topic(name), self._node.image.topic(name)
        return held is not None and topic is not None and held.topic_id == topic.topic_id

    # --- logs

    def open_logs(self) -> None:
        """Open every log that the cluster puts here; at the start."""
        for topic in self._node.image.topics.values():
            try:
                for _ in self._opening(topic, is_new=False):
                    pass
            except OSError as error:
                self._node.report_disk_fault(f"cannot open all of {topic.name}", error)

    def set_strays_aside(self) -> None:
        """Of a lone broker, at the start; in a cluster the controller's word is waited for."""
        node = self._node
        topic_partitions = find_strays(node.image, node.broker_id, node.partitions.log_directories)
        for directory, logs in node.partitions.leave_strays(topic_partitions).items():
            node.partitions.make_strays(directory, logs)

    def _opening(self, topic: Topic, *, is_new: bool) -> Iterator[int]:
        options = self._options(topic.name)
        return self._node.partitions.open_topic(topic, options, is_new=is_new)

    def open_partition(self, name: str, topic_id: bytes, index: int, *, is_new: bool) -> "Partition":
        """A partition that the controller puts here, opened if it is not open yet."""
        node = self._node
        overrides = node.image.topic_overrides(name)
        held = node.partitions.topic(topic_id)
        if held is not None and held.has(index):  # nearly always: thousands change roles when a broker dies
            partition = held.partition(index)
        else:
            options = self._options(name)
            partition = node.partitions.ensure(topic_id, TopicPartition(name, index), options, is_new=is_new)
        partition.replica.min_insync_replicas = self._min_insync_replicas(overrides)
        return partition

    # --- options

    def _set_options(self, name: str) -> None:
        overrides = self._node.image.topic_overrides(name)
        self._node.partitions.set_options(
            name,
            self._options(name),
            min_insync_replicas=self._min_insync_replicas(overrides),
        )

    def _options(self, name: str) -> "LogOptions":
        """Stored values that we would not take from a client are reported, once, and keep nothing from its place."""
        overrides = self._node.image.topic_overrides(name)
        mistakes = self._node.config.topic_mistakes(overrides)
        if mistakes != self._mistakes.get(name, []):
            self._mistakes[name] = mistakes
            for mistake in mistakes:
                log.warning("a stored config of topic %s is not used: %s", name, mistake)
        return log_options(self._node.config, overrides)

    def _min_insync_replicas(self, overrides: Mapping[str, str]) -> int:
        return int(self._node.config.topic_value(overrides, "min.insync.replicas"))

    def reload_broker_configs(self) -> None:
        node = self._node
        reports = node.config.set_dynamic(
            cluster_default=node.image.all_broker_overrides(),
            broker=node.passwords.open(node.image.broker_overrides(node.broker_id)),
        )
        for report in reports:
            log.warning("%s", report.text)
        self.fetch_max_bytes = node.config.get("fetch.max.bytes")
        for name in dict.fromkeys(partition.topic for partition in node.partitions):
            self._set_options(name)
