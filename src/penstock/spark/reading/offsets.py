"""Offsets in Spark's form, and the sums over them that plan a batch. Pure.

The form is that of Spark's Kafka source, in options as in checkpoints: {"orders": {"0": 23, "1": -1}}. In options -2
stands for the earliest offset and -1 for the latest. An end offset is exclusive: {"0": 23} → {"0": 25} is the records
23 and 24.

A stream's offsets also say which topics they were of, as entries without partitions: {"orders": {"0": 23}, "orders@h7…": {}}.
So a topic that was deleted and created anew under its name is told from the one that was read. Spark's own source passes
over such entries, and a checkpoint may go from it to ours and back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from penstock.model.ids import TopicPartition

EARLIEST = -2
LATEST = -1

Offsets = dict[TopicPartition, int]
OffsetsJson = dict[str, dict[str, int]]
TopicIds = dict[str, str]
ID_SEPARATOR = "@"  # in no topic's name


class OffsetRange(NamedTuple):
    """What one task reads."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    topic_id: str = ""  # if it is known

    @property
    def size(self) -> int:
        return self.end_offset - self.start_offset


class BadOffsets(ValueError):
    """A text that is not of Spark's form. The message says what is, not which option it was."""


def to_json(offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, str] | None = None) -> OffsetsJson:
    """In one order always: Spark compares checkpointed offsets as texts."""
    form: OffsetsJson = {}
    for place in sorted(offsets):
        form.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    known = topic_ids or {}
    return {**form, **{f"{topic}{ID_SEPARATOR}{known[topic]}": {} for topic in form if topic in known}}


def from_json(form: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in form.items()
        for partition, offset in partitions.items()
    }


def topic_ids_of(form: Mapping[str, Mapping[str, int]]) -> TopicIds:
    """Topic → id; checkpoints of Spark's own source have none."""
    names = [name.partition(ID_SEPARATOR) for name in form]
    return {topic: topic_id for topic, _, topic_id in names if topic_id}


def parse_offsets(text: str) -> Offsets:
    """{"topic": {"0": 23}} with numbers for partitions and offsets."""
    example = '{"topic": {"0": 23, "1": -1}}'
    form = _object(text, example)
    offsets: Offsets = {}
    for topic, partitions in form.items():
        if not isinstance(partitions, dict):
            raise BadOffsets(f"must be like {example}")
        for partition, offset in partitions.items():
            if not partition.isdigit() or not isinstance(offset, int) or isinstance(offset, bool):
                raise BadOffsets(f"must be like {example}")
            offsets[TopicPartition(topic, int(partition))] = offset
    return offsets


def parse_assignment(text: str) -> list[TopicPartition]:
    """{"topic": [0, 1]}."""
    example = '{"topic": [0, 1]}'
    places = []
    for topic, partitions in _object(text, example).items():
        if not isinstance(partitions, list):
            raise BadOffsets(f"must be like {example}")
        for partition in partitions:
            if not isinstance(partition, int) or isinstance(partition, bool) or partition < 0:
                raise BadOffsets(f"must be like {example}")
            places.append(TopicPartition(topic, partition))
    return sorted(set(places))


def _object(text: str, example: str) -> dict[str, Any]:
    try:
        form = json.loads(text)
    except ValueError:
        form = None
    if not isinstance(form, dict) or not form:
        raise BadOffsets(f"must be like {example}")
    return form


def limited(start: Offsets, end: Offsets, max_rows: int) -> Offsets:
    """Ends that take at most about `max_rows`, shared in proportion to what each partition has waiting.

    Every partition that has something moves by one at least, so none starves beside a larger one.
    """
    waiting = {place: max(0, end[place] - start.get(place, end[place])) for place in end}
    total = sum(waiting.values())
    if total <= max_rows:
        return end
    ends: Offsets = {}
    before = 0
    for place in sorted(end):
        # What all up to here may take, less what those before took: the shares add up to the limit.
        share = (before + waiting[place]) * max_rows // total - before * max_rows // total
        before += waiting[place]
        start_offset = start.get(place, end[place])
        ends[place] = start_offset + min(waiting[place], max(1, share)) if waiting[place] else end[place]
    return ends


def split(
    ranges: Iterable[OffsetRange], *, min_partitions: int = 0, max_records: int = 0
) -> list[OffsetRange]:
    """At least `min_partitions` ranges, none over `max_records`, as even as can be; 0 means "no matter".

    The same ranges always give the same parts: a batch that is replayed has to have the same tasks.
    """
    whole = list(ranges)
    total = sum(each.size for each in whole)
    parts: list[OffsetRange] = []
    for each in whole:
        count = 1
        if min_partitions > len(whole) and total:
            count = max(1, round(each.size * min_partitions / total))
        if max_records:
            count = max(count, -(-each.size // max_records))
        count = max(1, min(count, each.size))
        bounds = [each.start_offset + each.size * part // count for part in range(count + 1)]
        parts += [
            each._replace(start_offset=bounds[part], end_offset=bounds[part + 1]) for part in range(count)
        ]
    return parts


def cut(part: OffsetRange, end: Offsets) -> OffsetRange:
    """What of a range lies before its partition's end: perhaps nothing, but a range still, and so a task."""
    last = end[TopicPartition(part.topic, part.partition)]
    return part._replace(start_offset=min(part.start_offset, last), end_offset=min(part.end_offset, last))
