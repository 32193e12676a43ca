"""Topic options: Kafka 4.3.1's names, types, defaults and checks, and the broker options each falls back to.

An option without synonyms has no broker-level default. A factor turns the synonym's unit into the option's:
`retention.ms` takes `log.retention.hours` times 3,600,000. The first synonym that is set wins.
"""

from typing import Final

from penstock.config.option import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    Check,
    ConfigError,
    Kind,
    Option,
    at_least,
    between,
    between_or,
    invalid_value,
    one_of,
    throttled_replicas,
)

MINUTE_MS = 60_000
HOUR_MS = 3_600_000

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
DEFAULT_RETENTION_MS = 7 * 24 * HOUR_MS

# For a topic whose own configs are lost: the broker's defaults could empty it, so nothing of it goes until somebody says so.
KEEP_ALL: Final = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"}


def _option(
    name: str,
    kind: Kind,
    default: object,
    check: Check | None,
    synonyms: tuple[str | tuple[str, int], ...],
    doc: str,
    *,
    honoured: bool = True,
) -> Option:
    pairs = tuple((item, 1) if isinstance(item, str) else item for item in synonyms)
    return Option(name, kind, default, check, CLUSTER_WIDE, doc, honoured=honoured, synonyms=pairs)


_TABLE = (
    _option(
        "cleanup.policy", LIST, ["delete"], one_of("compact", "delete"), ("log.cleanup.policy",),
        "What happens to old records: `delete` deletes old segments, `compact` keeps the last record of each key.",
    ),
    _option(
        "compression.gzip.level", INT, -1, between_or(1, 9, also=-1), ("compression.gzip.level",),
        "The gzip level, where the broker compresses; -1 is zlib's default.",
    ),
    _option(
        "compression.lz4.level", INT, 9, between(1, 17), ("compression.lz4.level",),
        "The lz4 level, where the broker compresses.",
    ),
    _option(
        "compression.type", STRING, "producer", one_of(*COMPRESSION_TYPES), ("compression.type",),
        "The codec that batches are stored with; `producer` stores each batch as it was sent.",
    ),
    _option(
        "compression.zstd.level", INT, 3, between(-131072, 22), ("compression.zstd.level",),
        "The zstd level, where the broker compresses.",
    ),
    _option(
        "delete.retention.ms", LONG, 86_400_000, at_least(0), ("log.cleaner.delete.retention.ms",),
        "How long a compacted topic keeps a tombstone, so that slow consumers still see the deletion.",
    ),
    _option(
        "file.delete.delay.ms", LONG, 60_000, at_least(0), ("log.segment.delete.delay.ms",),
        "How long the files of a deleted segment stay on disk before they are removed.",
    ),
    _option(
        "flush.messages", LONG, LONG_MAX, at_least(1), ("log.flush.interval.messages",),
        "The log is flushed to disk after this many records; by default the operating system decides.",
    ),
    _option(
        "flush.ms", LONG, LONG_MAX, at_least(0), ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        "Records are flushed to disk after this time; by default the operating system decides.",
    ),
    _option(
        "follower.replication.throttled.replicas", LIST, [], throttled_replicas(), (),
        "Which followers count against the replication quota, as partition:broker pairs or `*`.",
    ),
    _option(
        "index.interval.bytes", INT, 4096, at_least(0), ("log.index.interval.bytes",),
        "An index entry is written after about this many bytes of log.",
    ),
    _option(
        "leader.replication.throttled.replicas", LIST, [], throttled_replicas(), (),
        "Which leaders count against the replication quota, as partition:broker pairs or `*`.",
    ),
    _option(
        "local.retention.bytes", LONG, -2, at_least(-2), ("log.local.retention.bytes",),
        "How much of a tiered partition stays on local disk; -2 means as much as `retention.bytes`.",
        honoured=False,
    ),
    _option(
        "local.retention.ms", LONG, -2, at_least(-2), ("log.local.retention.ms",),
        "How long segments of a tiered partition stay on local disk; -2 means as long as `retention.ms`.",
        honoured=False,
    ),
    _option(
        "max.compaction.lag.ms", LONG, LONG_MAX, at_least(1), ("log.cleaner.max.compaction.lag.ms",),
        "A record is compacted after this time at the latest.",
    ),
    _option(
        "max.message.bytes", INT, 1_048_588, at_least(0), ("message.max.bytes",),
        "The largest batch a producer may append, compressed size and header included.",
    ),
    _option(
        "message.timestamp.after.max.ms", LONG, 3_600_000, at_least(0),
        ("log.message.timestamp.after.max.ms",),
        "How far a record's timestamp may be ahead of the broker's clock.",
    ),
    _option(
        "message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0),
        ("log.message.timestamp.before.max.ms",),
        "How far a record's timestamp may be behind the broker's clock.",
    ),
    _option(
        "message.timestamp.type", STRING, "CreateTime", one_of("CreateTime", "LogAppendTime"),
        ("log.message.timestamp.type",),
        "`CreateTime`: records keep the producer's timestamp. `LogAppendTime`: they get the time of the append.",
    ),
    _option(
        "min.cleanable.dirty.ratio", DOUBLE, 0.5, between(0, 1), ("log.cleaner.min.cleanable.ratio",),
        "Compaction waits until at least this share of the log is uncompacted.",
    ),
    _option(
        "min.compaction.lag.ms", LONG, 0, at_least(0), ("log.cleaner.min.compaction.lag.ms",),
        "A record stays uncompacted for at least this time.",
    ),
    _option(
        "min.insync.replicas", INT, 1, at_least(1), ("min.insync.replicas",),
        "With acks=all, this many replicas must be in sync, or the append is refused.",
    ),
    _option(
        "preallocate", BOOLEAN, False, None, ("log.preallocate",),
        "Whether the file of a new segment is allocated in full at once.",
        honoured=False,
    ),
    _option(
        "remote.log.copy.disable", BOOLEAN, False, None, (),
        "Stops copying a tiered topic's segments to remote storage.",
        honoured=False,
    ),
    _option(
        "remote.log.delete.on.disable", BOOLEAN, False, None, (),
        "Whether turning tiering off also removes what was copied.",
        honoured=False,
    ),
    _option(
        "remote.storage.enable", BOOLEAN, False, None, (),
        "Whether the topic's old segments move to remote storage.",
        honoured=False,
    ),
    _option(
        "retention.bytes", LONG, -1, None, ("log.retention.bytes",),
        "The oldest segments of a partition larger than this are deleted; -1 means no limit.",
    ),
    _option(
        "retention.ms", LONG, DEFAULT_RETENTION_MS, at_least(-1),
        ("log.retention.ms", ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)),
        "A segment whose newest record is older than this is deleted; -1 keeps it for ever.",
    ),
    _option(
        "segment.bytes", INT, 1_073_741_824, at_least(1_048_576), ("log.segment.bytes",),
        "A new segment is started before the active one becomes larger than this.",
    ),
    _option(
        "segment.index.bytes", INT, 10_485_760, at_least(4), ("log.index.size.max.bytes",),
        "The largest size of a segment's offset index.",
    ),
    _option(
        "segment.jitter.ms", LONG, 0, at_least(0), ("log.roll.jitter.ms", ("log.roll.jitter.hours", HOUR_MS)),
        "A random part of this time is subtracted from `segment.ms`, so that partitions do not all roll at once.",
    ),
    _option(
        "segment.ms", LONG, DEFAULT_RETENTION_MS, at_least(1), ("log.roll.ms", ("log.roll.hours", HOUR_MS)),
        "A segment older than this is closed even if it is not full.",
    ),
    _option(
        "unclean.leader.election.enable", BOOLEAN, False, None, ("unclean.leader.election.enable",),
        "Whether a replica that is not in sync may become the leader when no in-sync replica is left. Records can be lost.",
    ),
)  # fmt: skip

TOPIC_OPTIONS: dict[str, Option] = {option.name: option for option in _TABLE}

# Kafka accepts one name more, and describes it only where it is set: a segment size without a floor.
INTERNAL_SEGMENT_BYTES = Option(
    "internal.segment.bytes",
    INT,
    None,
    None,
    CLUSTER_WIDE,
    "`segment.bytes` without its floor.",
    internal=True,
)

SUBJECT_NAME_STRATEGIES: Final = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")


def _strategy() -> Check:
    """By the name of Confluent's class, or its last word."""

    def refusal(name: str, value: str) -> ConfigError | None:
        if value.rpartition(".")[2] in SUBJECT_NAME_STRATEGIES:
            return None
        why = f"String must end with one of: {', '.join(SUBJECT_NAME_STRATEGIES)}"
        return invalid_value(name, value=value, why=why)

    return Check(f"one of {', '.join(SUBJECT_NAME_STRATEGIES)}", refusal)


def _schema_options(what: str) -> tuple[Option, ...]:
    return (
        Option(
            f"confluent.{what}.schema.validation", BOOLEAN, False, None, CLUSTER_WIDE,
            f"Whether records are refused whose {what} does not begin with the id of a schema that the schema registry has for "
            "the topic's subject. Null passes.", internal=True,
        ),
        Option(
            f"confluent.{what}.subject.name.strategy", STRING,
            "io.confluent.kafka.serializers.subject.TopicNameStrategy", _strategy(), CLUSTER_WIDE,
            f"Which subject the schema of a {what} belongs to.", internal=True,
        ),
    )  # fmt: skip


SCHEMA_OPTIONS: Final = {option.name: option for what in ("key", "value") for option in _schema_options(what)}
"""Of Confluent's brokers; described only where they are set, as Kafka has none of them."""
INTERNAL_OPTIONS: Final = {INTERNAL_SEGMENT_BYTES.name: INTERNAL_SEGMENT_BYTES, **SCHEMA_OPTIONS}


def topic_option(name: str) -> Option | None:
    return INTERNAL_OPTIONS.get(name) or TOPIC_OPTIONS.get(name)
