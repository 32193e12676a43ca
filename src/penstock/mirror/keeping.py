"""How far a lane has come: kept in the worker's place for offsets, in the form of MirrorMaker 2, and pairs of offsets beside it.

The key is `["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"orders"}]`, the value `{"offset":9}`: the last record
that was copied. Ours has `slot` besides, the number of the next pair, and with transactions `pairs`, those that may not have
been told yet: after a crash they are told again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.connect.tasks.clients import BOOTSTRAP
from penstock.connect.tasks.offset_file import FileOffsets
from penstock.connect.tasks.offsets import OffsetStore, TopicOffsets, place_text
from penstock.connect.tasks.settings import WorkerSettings
from penstock.mirror.batches import Outgoing
from penstock.mirror.clusters import TARGET, librdkafka_of, properties_of
from penstock.mirror.formats import OffsetSync
from penstock.mirror.translation import Tracking
from penstock.mirror.writing import BatchWriter, Sending
from penstock.model.ids import TopicPartition
from penstock.records.build import build_batch
from penstock.streams.functions.murmur import murmur2

OFFSET: Final = "offset"
SLOT: Final = "slot"
PAIRS: Final = "pairs"
OWN_TOPIC: Final = "offsets.storage.topic"
MAX_RECORDS: Final = 500  # of one batch of our own


def source_partition(cluster: str, place: TopicPartition) -> dict[str, Any]:
    """In the order in which Java's worker writes it: it looks for the bytes."""
    return {"cluster": cluster, "partition": place.partition, "topic": place.topic}


def store_of(worker: WorkerSettings, given: Mapping[str, str]) -> tuple[OffsetStore, str | None]:
    """And the topic of the target cluster, or None where it is a file."""
    topic = given.get(OWN_TOPIC) or worker.offsets_topic
    if not given.get(OWN_TOPIC) and worker.offsets_file is not None:
        return FileOffsets.at(worker.offsets_file), None
    properties = properties_of(given, TARGET)
    settings = {**librdkafka_of(given, TARGET, "consumer"), BOOTSTRAP: properties[BOOTSTRAP]}
    return TopicOffsets(topic or "connect-offsets", properties, settings), topic


class Kept:
    """The offsets of one lane's partitions."""

    def __init__(self, store: OffsetStore, connector: str, cluster: str) -> None:
        self._store, self._connector, self._cluster = store, connector, cluster

    def load(
        self, places: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[int, int, list[OffsetSync]]]:
        """The next offset, the next slot, and pairs to be told again, of those that something is known of."""
        known = self._store.load(self._connector)
        found = {}
        for place in places:
            value = known.get(self._store.spell(self._connector, source_partition(self._cluster, place)))
            if value is None or not isinstance(value.get(OFFSET), int):
                continue
            pairs = [OffsetSync(*place, *each) for each in value.get(PAIRS, ())]
            found[place] = value[OFFSET] + 1, int(value.get(SLOT, 0)), pairs
        return found

    def records(
        self, reached: Mapping[TopicPartition, int], tracking: Mapping[TopicPartition, Tracking],
        pairs: Mapping[TopicPartition, list[OffsetSync]],
    ) -> list[tuple[str, bytes, bytes | None]]:  # fmt: skip
        """Topic, key, value of what is to be written. A file is written at once."""
        found: list[tuple[str, bytes, bytes | None]] = []
        offsets: dict[str, str | None] = {}
        for place, next_offset in reached.items():
            value: dict[str, Any] = {OFFSET: next_offset - 1, SLOT: tracking[place].slot}
            if pairs.get(place):
                value[PAIRS] = [[one.upstream, one.downstream, one.slot] for one in pairs[place]]
            text = self._store.spell(self._connector, source_partition(self._cluster, place))
            offsets[text] = place_text(value)
        self._store.write(self._connector, offsets, lambda *record: found.append(record))
        return found


def write_records(writer: BatchWriter, records: Iterable[tuple[str, bytes, bytes | None]]) -> None:
    """Few of them, into topics of our own, each in the partition of its key."""
    now_ms = int(time.time() * 1000)
    by_place: dict[TopicPartition, list[Any]] = {}
    for topic, key, value in records:
        number = (murmur2(key) & 0x7FFFFFFF) % writer.partition_count(topic)
        by_place.setdefault(TopicPartition(topic, number), []).append((key, value, (), now_ms))
    sendings = []
    for place, found in by_place.items():
        for at in range(0, len(found), MAX_RECORDS):
            part = found[at : at + MAX_RECORDS]
            sendings.append(Sending(place, Outgoing(build_batch(part), len(part), 0, ())))
    if sendings:
        writer.write(sendings)
