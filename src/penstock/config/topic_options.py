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
    Kind,
    Option,
    at_least,
    between,
    between_or,
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
        "What happens to old segments: `delete` drops them, `compact` keeps the last record of each key.",
    ),
    _option(
        "compression.gzip.level", INT, -1, between_or(1, 9, also=-1), ("compression.gzip.level",),
        "How hard gzip works where the broker itself compresses; -1 leaves it to zlib.",
    ),
    _option(
        "compression.lz4.level", INT, 9, between(1, 17), ("compression.lz4.level",),
        "How hard lz4 works where the broker itself compresses.",
    ),
    _option(
        "compression.type", STRING, "producer", one_of(*COMPRESSION_TYPES), ("compression.type",),
        "The codec batches are stored with; `producer` keeps each batch as it came.",
    ),
    _option(
        "compression.zstd.level", INT, 3, between(-131072, 22), ("compression.zstd.level",),
        "How hard zstd works where the broker itself compresses.",
    ),
    _option(
        "delete.retention.ms", LONG, 86_400_000, at_least(0), ("log.cleaner.delete.retention.ms",),
        "How long a compacted topic keeps a tombstone, so that slow readers still learn of the deletion.",
    ),
    _option(
        "file.delete.delay.ms", LONG, 60_000, at_least(0), ("log.segment.delete.delay.ms",),
        "How long the files of a dropped segment stay on disk before they are removed.",
    ),
    _option(
        "flush.messages", LONG, LONG_MAX, at_least(1), ("log.flush.interval.messages",),
        "After this many records the log is forced to disk; by default the system decides.",
    ),
    _option(
        "flush.ms", LONG, LONG_MAX, at_least(0), ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        "After this time unflushed records are forced to disk; by default the system decides.",
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
        "A record becomes due for compaction after this time at the latest.",
    ),
    _option(
        "max.message.bytes", INT, 1_048_588, at_least(0), ("message.max.bytes",),
        "The largest batch a producer may append, compressed size and header included.",
    ),
    _option(
        "message.timestamp.after.max.ms", LONG, 3_600_000, at_least(0),
        ("log.message.timestamp.after.max.ms",),
        "How far ahead of the broker's clock a record's create time may be.",
    ),
    _option(
        "message.timestamp.before.max.ms", LONG, LONG_MAX, at_least(0),
        ("log.message.timestamp.before.max.ms",),
        "How far behind the broker's clock a record's create time may be.",
    ),
    _option(
        "message.timestamp.type", STRING, "CreateTime", one_of("CreateTime", "LogAppendTime"),
        ("log.message.timestamp.type",),
        "Whether records carry the producer's time or the time of the append.",
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
        "With acks=all, an append needs this many replicas in sync.",
    ),
    _option(
        "preallocate", BOOLEAN, False, None, ("log.preallocate",),
        "Whether a new segment's file gets its full size at once.",
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
        "A partition larger than this loses its oldest segments; -1 sets no limit.",
    ),
    _option(
        "retention.ms", LONG, DEFAULT_RETENTION_MS, at_least(-1),
        ("log.retention.ms", ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)),
        "A segment whose newest record is older than this is dropped; -1 keeps it for ever.",
    ),
    _option(
        "segment.bytes", INT, 1_073_741_824, at_least(1_048_576), ("log.segment.bytes",),
        "The log starts a new segment file before this size would be passed.",
    ),
    _option(
        "segment.index.bytes", INT, 10_485_760, at_least(4), ("log.index.size.max.bytes",),
        "The largest size of a segment's offset index.",
    ),
    _option(
        "segment.jitter.ms", LONG, 0, at_least(0), ("log.roll.jitter.ms", ("log.roll.jitter.hours", HOUR_MS)),
        "A random share of this time is taken off `segment.ms`, so that partitions do not all roll at once.",
    ),
    _option(
        "segment.ms", LONG, DEFAULT_RETENTION_MS, at_least(1), ("log.roll.ms", ("log.roll.hours", HOUR_MS)),
        "A segment older than this is closed even if it is not full.",
    ),
    _option(
        "unclean.leader.election.enable", BOOLEAN, False, None, ("unclean.leader.election.enable",),
        "Whether a replica out of sync may lead when no other is left, at the price of lost records.",
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


def topic_option(name: str) -> Option | None:
    return INTERNAL_SEGMENT_BYTES if name == INTERNAL_SEGMENT_BYTES.name else TOPIC_OPTIONS.get(name)
