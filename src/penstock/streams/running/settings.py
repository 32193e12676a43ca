"""How librdkafka reads for a running plan."""

from __future__ import annotations

import base64
import struct
from typing import Any, Final

from penstock.streams.running.layout import Layout
from penstock.streams.running.options import EARLIEST, RunOptions

CONSUMER_SETTINGS: Final[dict[str, Any]] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "check.crcs": True,
    "fetch.wait.max.ms": 500,
    "fetch.min.bytes": 1,
    "fetch.queue.backoff.ms": 10,
    "fetch.error.backoff.ms": 100,
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 16 * 1024,
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.max.ms": 1000,
    "allow.auto.create.topics": False,
}


def begins_early(topic: str, layout: Layout, options: RunOptions) -> bool:
    """Whether a partition without a committed offset is read from its beginning. What the plan itself wrote always is."""
    return options.auto_offset_reset == EARLIEST or any(each.name == topic for each in layout.internal)


_TIME: Final = struct.Struct(">bq")
_TIME_VERSION: Final = 1


def metadata_of(stream_time: int) -> str:
    """What is committed with an offset, as Kafka Streams does: base 64 of a version and the stream time."""
    return base64.b64encode(_TIME.pack(_TIME_VERSION, stream_time)).decode()


def time_of(metadata: str | None) -> int:
    """-1: it says nothing, or was committed by somebody else."""
    try:
        version, time = _TIME.unpack_from(base64.b64decode(metadata or "", validate=True))
    except (ValueError, struct.error):
        return -1
    return int(time) if version == _TIME_VERSION else -1
