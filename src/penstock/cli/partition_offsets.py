"""Where partitions begin and end, by librdkafka's ListOffsets."""

from typing import Any, NamedTuple

from penstock.cli.clients import admin_types, result
from penstock.model.ids import TopicPartition


class Span(NamedTuple):
    start_offset: int
    end_offset: int


def spans(admin: Any, partitions: list[TopicPartition]) -> dict[TopicPartition, Span]:
    import confluent_kafka

    if not partitions:
        return {}
    spec = admin_types().OffsetSpec
    asked = [confluent_kafka.TopicPartition(topic, number) for topic, number in partitions]
    starts = admin.list_offsets({one: spec.earliest() for one in asked})
    ends = admin.list_offsets({one: spec.latest() for one in asked})
    return {
        TopicPartition(one.topic, one.partition): Span(result(starts[one]).offset, result(ends[one]).offset)
        for one in asked
    }
