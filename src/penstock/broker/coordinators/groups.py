"""The host of the group coordinator: it gives its shards what they need to know about the cluster."""

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Protocol

from penstock.broker.coordinators.host import CoordinatorHost
from penstock.config.option import ConfigError
from penstock.metadata.image import GROUPS, Topic
from penstock.model.ids import NO_ID
from penstock.model.internal_topics import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from penstock.broker.facets import WithConfig, WithImage
    from penstock.groups.directory import GroupDirectory
    from penstock.groups.options import GroupOptions
    from penstock.groups.shard import GroupShard
    from penstock.metadata.image import ClusterImage

    class HasConfigs(WithConfig, WithImage, Protocol): ...


class GroupHost(CoordinatorHost["GroupShard"]):
    topic_name = CONSUMER_OFFSETS

    def new_shard(self, index: int) -> "GroupShard":
        # Not at the top: a broker that has just started should listen before it learns about groups.
        from penstock.groups.shard import GroupShard

        options = _options(self._node)
        return GroupShard(
            options=options,
            topics=_ImageTopics(self._node.image),
            new_id=partial(_new_id, self._node.random),
            options_of=partial(_options_of, self._node, options),
        )

    async def make_topic(self) -> Topic:
        return await self._node.topics.consumer_offsets()

    @property
    def commit_timeout_s(self) -> float:
        return float(self._node.config.get("offsets.commit.timeout.ms")) / 1000

    def directories(self) -> "list[GroupDirectory]":
        """Of the shards that are loaded; to look at."""
        return [shard.directory for shard in self._shards.values()]

    def topic_deleted(self, name: str) -> None:
        """Its offsets go, in the shards that are loaded and can be written; the others know them by the topic's id to be old."""
        for index, shard in tuple(self._shards.items()):
            if name == CONSUMER_OFFSETS:
                self._give_up(index, shard)
            elif self.can_write(index):
                self._act_unasked(index, shard, shard.on_topic_deleted(name))

    def topics_changed(self) -> None:
        """Topics have come, gone or grown."""
        now_ms = self._now_ms()
        for index, shard in tuple(self._shards.items()):
            self._act_unasked(index, shard, shard.on_topics_changed(now_ms))

    def transaction_ended(self, index: int, producer_id: int, *, committed: bool) -> None:
        """A marker is in a partition of `__consumer_offsets`. A shard that is not loaded will read it there."""
        shard = self._shards.get(index)
        if shard is not None:
            shard.replay_marker(producer_id, committed=committed)


def _options(node: "WithConfig") -> "GroupOptions":
    from penstock.groups.options import GroupOptions

    get = node.config.get
    return GroupOptions(
        min_session_timeout_ms=get("group.min.session.timeout.ms"),
        max_session_timeout_ms=get("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=get("group.initial.rebalance.delay.ms"),
        max_size=get("group.max.size"),
        offset_metadata_max_bytes=get("offset.metadata.max.bytes"),
        offsets_retention_ms=get("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=get("offsets.retention.check.interval.ms"),
        consumer_session_timeout_ms=get("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms=get("group.consumer.heartbeat.interval.ms"),
        consumer_max_size=get("group.consumer.max.size"),
        consumer_assignors=tuple(get("group.consumer.assignors")),
        consumer_assignment_interval_ms=get("group.consumer.assignment.interval.ms"),
        consumer_migration_policy=get("group.consumer.migration.policy").upper(),
    )


def _options_of(node: "HasConfigs", options: "GroupOptions", group_id: str) -> "GroupOptions":
    """As they are now: the interval between assignments may change live. With what the group has set for itself; a stored
    value that cannot be read leaves all of that out.
    """
    interval_ms = node.config.get("group.consumer.assignment.interval.ms")
    if interval_ms != options.consumer_assignment_interval_ms:
        options = options._replace(consumer_assignment_interval_ms=interval_ms)
    overrides = node.image.overrides(GROUPS, group_id)
    if not overrides:
        return options
    value = partial(node.config.group_value, overrides)
    try:
        return options._replace(
            consumer_session_timeout_ms=value("consumer.session.timeout.ms"),
            consumer_heartbeat_interval_ms=value("consumer.heartbeat.interval.ms"),
            consumer_assignment_interval_ms=value("consumer.assignment.interval.ms"),
        )
    except ConfigError:
        return options


class _ImageTopics:
    """The cluster's topics as the groups ask about them."""

    __slots__ = ("_image",)

    def __init__(self, image: "ClusterImage") -> None:
        self._image = image

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._image.topic_name(topic_id)

    def topic_id(self, name: str) -> bytes | None:
        topic_id = self._image.topic_id(name)
        return None if topic_id == NO_ID else topic_id

    def partition_count(self, name: str) -> int:
        topic = self._image.topic(name)
        return 0 if topic is None else len(topic.partitions)

    def names(self) -> Iterable[str]:
        return self._image.topics


def _new_id(random: Random) -> str:
    """A random UUID as text, without the module of that name and what it imports."""
    raw = bytearray(random.randbytes(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
