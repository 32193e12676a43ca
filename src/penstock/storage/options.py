"""The options of one log: its topic's configuration, as far as the storage needs it."""

from typing import NamedTuple

NEVER = 2**63 - 1
CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"


class SchemaValidation(NamedTuple):
    """Which parts of a record must begin with the id of a schema, and the strategies that name their subjects. None: not this."""

    key_strategy: str | None
    value_strategy: str | None


class LogOptions:
    """Kafka's topic-level options with Kafka's defaults. Replace the whole object to change them live."""

    __slots__ = (
        "compacted",
        "compression_codec",
        "compression_level",
        "delete_enabled",
        "delete_retention_ms",
        "earliest_roll_ms",
        "file_delete_delay_ms",
        "flush_messages",
        "flush_ms",
        "index_interval_bytes",
        "least_bytes_of_full_index",
        "max_compaction_lag_ms",
        "max_message_bytes",
        "message_timestamp_type",
        "min_cleanable_dirty_ratio",
        "min_compaction_lag_ms",
        "opens_batches",
        "producer_id_expiration_ms",
        "retention_bytes",
        "retention_ms",
        "schema_validation",
        "segment_bytes",
        "segment_index_bytes",
        "segment_jitter_ms",
        "segment_ms",
        "timestamp_after_max_ms",
        "timestamp_before_max_ms",
    )

    def __init__(
        self,
        *,
        segment_bytes: int = 1 << 30,
        segment_ms: int = 7 * 24 * 3600 * 1000,
        segment_jitter_ms: int = 0,
        segment_index_bytes: int = 10 * 1024 * 1024,
        index_interval_bytes: int = 4096,
        max_message_bytes: int = 1024 * 1024 + 12,
        retention_bytes: int = -1,
        retention_ms: int = 7 * 24 * 3600 * 1000,
        flush_messages: int = NEVER,
        flush_ms: int = NEVER,
        file_delete_delay_ms: int = 60_000,
        message_timestamp_type: str = CREATE_TIME,
        timestamp_before_max_ms: int = NEVER,
        timestamp_after_max_ms: int = 3_600_000,
        compression_codec: int | None = None,
        compression_level: int | None = None,
        compacted: bool = False,
        delete_enabled: bool = True,
        delete_retention_ms: int = 86_400_000,
        min_cleanable_dirty_ratio: float = 0.5,
        min_compaction_lag_ms: int = 0,
        max_compaction_lag_ms: int = NEVER,
        producer_id_expiration_ms: int = 86_400_000,
        schema_validation: SchemaValidation | None = None,
    ) -> None:
        self.segment_bytes = segment_bytes
        if compacted:
            # A record becomes cleanable only in a closed segment, and must within max.compaction.lag.ms.
            segment_ms = min(segment_ms, max_compaction_lag_ms)
        self.segment_ms = segment_ms
        self.segment_jitter_ms = segment_jitter_ms
        self.segment_index_bytes = segment_index_bytes
        self.index_interval_bytes = index_interval_bytes
        self.max_message_bytes = max_message_bytes
        self.retention_bytes = retention_bytes
        self.retention_ms = retention_ms
        self.flush_messages = flush_messages
        self.flush_ms = flush_ms
        self.file_delete_delay_ms = file_delete_delay_ms
        self.message_timestamp_type = message_timestamp_type
        self.timestamp_before_max_ms = timestamp_before_max_ms
        self.timestamp_after_max_ms = timestamp_after_max_ms
        self.compression_codec = compression_codec  # None: as the producer sent it
        self.compression_level = compression_level  # None: the codec's default
        self.compacted = compacted
        self.schema_validation = schema_validation
        # Each record is to be checked.
        self.opens_batches = compacted or timestamp_before_max_ms != NEVER or schema_validation is not None
        self.delete_enabled = delete_enabled
        self.delete_retention_ms = delete_retention_ms
        self.min_cleanable_dirty_ratio = min_cleanable_dirty_ratio
        self.min_compaction_lag_ms = min_compaction_lag_ms
        self.max_compaction_lag_ms = max_compaction_lag_ms
        self.producer_id_expiration_ms = producer_id_expiration_ms
        # Two bounds that spare an append the exact questions: no segment rolls by time before the first, and
        # none has a full index before the second (an entry needs index_interval_bytes of log; a time index
        # entry takes 12 bytes).
        self.earliest_roll_ms = segment_ms - min(segment_jitter_ms, segment_ms)
        self.least_bytes_of_full_index = max(segment_index_bytes // 12 - 1, 0) * index_interval_bytes
