"""The settings of the three connectors: Kafka's names and defaults."""

from __future__ import annotations

from typing import Final

from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least, one_of
from penstock.mirror.naming import DEFAULT_POLICY, SEPARATOR

SOURCE_ALIAS: Final = "source.cluster.alias"
TARGET_ALIAS: Final = "target.cluster.alias"
PLACES: Final = "task.assigned.partitions"
GROUPS: Final = "task.assigned.groups"
EXCLUDED_TOPICS: Final = [r"mm2.*\.internal", r".*\.replica", "__.*"]
EXCLUDED_GROUPS: Final = ["console-consumer-.*", "connect-.*", "__.*"]
EXCLUDED_CONFIGS: Final = [
    r"follower\.replication\.throttled\.replicas", r"leader\.replication\.throttled\.replicas",
    r"message\.timestamp\.difference\.max\.ms", r"log\.message\.timestamp\.before\.max\.ms",
    r"log\.message\.timestamp\.after\.max\.ms", r"message\.timestamp\.type", r"unclean\.leader\.election\.enable",
    r"min\.insync\.replicas",
]  # fmt: skip


def _flag(name: str, doc: str, *, default: bool = True) -> Setting:
    return Setting(name, Kind.BOOLEAN, doc, default=default, importance=LOW)


def _seconds(name: str, doc: str, default: int) -> Setting:
    return Setting(name, Kind.LONG, doc, default=default, importance=LOW)


_COMMON: Final = Settings(
    Setting(SOURCE_ALIAS, Kind.STRING, "The alias of the source cluster.", importance=HIGH),
    Setting(TARGET_ALIAS, Kind.STRING, "The alias of the target cluster.", default="target", importance=HIGH),
    _flag("enabled", "Whether this flow is copied."),
    Setting("replication.policy.class", Kind.STRING, "What topics are called at the target: DefaultReplicationPolicy "
            "(with the alias before it) or IdentityReplicationPolicy (the same).", default=DEFAULT_POLICY, importance=LOW),
    Setting("replication.policy.separator", Kind.STRING, "Between the alias and the name.", default=SEPARATOR, importance=LOW),
    _flag("replication.policy.internal.topic.separator.enabled", "Whether internal topics have that separator, too."),
)  # fmt: skip
_TOPICS: Final = (
    Setting("topics", Kind.LIST, "The topics that are copied: names and patterns.", default=[".*"], importance=HIGH),
    Setting("topics.exclude", Kind.LIST, "Those that are not: names and patterns.", default=EXCLUDED_TOPICS, importance=HIGH),
)  # fmt: skip
_LOCATION: Final = Setting(
    "offset-syncs.topic.location", Kind.STRING, "In which cluster pairs of offsets are kept: source or target.",
    default="source", check=one_of("source", "target"), importance=LOW,
)  # fmt: skip

SOURCE_SETTINGS: Final = _COMMON | Settings(
    *_TOPICS,
    Setting("config.properties.exclude", Kind.LIST, "Configs of topics that are not copied: names and patterns.",
            default=EXCLUDED_CONFIGS, importance=HIGH),
    _flag("refresh.topics.enabled", "Whether it is looked for new topics and partitions."),
    _seconds("refresh.topics.interval.seconds", "How often.", 600),
    _flag("sync.topic.configs.enabled", "Whether configs of topics are copied."),
    _seconds("sync.topic.configs.interval.seconds", "How often.", 600),
    _flag("sync.topic.acls.enabled", "Whether rules about who may read topics are copied."),
    _seconds("sync.topic.acls.interval.seconds", "How often.", 600),
    Setting("replication.factor", Kind.INT, "Of topics that are made at the target.", default=2, importance=LOW),
    Setting("offset-syncs.topic.replication.factor", Kind.SHORT, "Of the topic of pairs of offsets.", default=3, importance=LOW),
    Setting("offset.lag.max", Kind.LONG, "How far MirrorMaker 2 may be behind with pairs of offsets. No effect: ours are exact.",
            default=100, check=at_least(0), importance=LOW),
    _LOCATION,
    _flag("emit.offset-syncs.enabled", "Whether pairs of offsets are kept, from which those of groups are translated."),
    _flag("heartbeats.replication.enabled", "Whether topics of heartbeats are copied whatever `topics` says."),
    Setting("offset.flush.interval.ms", Kind.LONG, "How often it is kept how far we are.", default=1000, check=at_least(1),
            importance=LOW),
    Setting("transaction.boundary.interval.ms", Kind.LONG, "How long a transaction lasts while records flow.", default=1000,
            check=at_least(1), importance=LOW),
)  # fmt: skip
CHECKPOINT_SETTINGS: Final = _COMMON | Settings(
    *_TOPICS,
    Setting("groups", Kind.LIST, "The groups whose offsets are translated: names and patterns.", default=[".*"], importance=HIGH),
    Setting("groups.exclude", Kind.LIST, "Those whose offsets are not.", default=EXCLUDED_GROUPS, importance=HIGH),
    _flag("refresh.groups.enabled", "Whether it is looked for new groups."),
    _seconds("refresh.groups.interval.seconds", "How often.", 600),
    _flag("emit.checkpoints.enabled", "Whether translated offsets are told in the topic of checkpoints."),
    _seconds("emit.checkpoints.interval.seconds", "How often.", 60),
    _flag("sync.group.offsets.enabled", "Whether groups at the target that are not active get the translated offsets.",
          default=False),
    _seconds("sync.group.offsets.interval.seconds", "How often.", 60),
    Setting("checkpoints.topic.replication.factor", Kind.SHORT, "Of the topic of checkpoints.", default=3, importance=LOW),
    _LOCATION,
)  # fmt: skip
HEARTBEAT_SETTINGS: Final = _COMMON | Settings(
    _flag("emit.heartbeats.enabled", "Whether heartbeats are written."),
    _seconds("emit.heartbeats.interval.seconds", "How often.", 1),
    Setting("heartbeats.topic.replication.factor", Kind.SHORT, "Of the topic of heartbeats.", default=3, importance=LOW),
)  # fmt: skip
