"""MirrorSourceConnector: the topics of one cluster, with their records, at another one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import penstock
from penstock.admin import Cluster
from penstock.client.errors import ReadFailed, Refused, Unreachable, UserError
from penstock.connect.data.schema import OPTIONAL_BYTES
from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.interface import Config, SourceConnector, SourcePlace, SourceTask
from penstock.connect.records import Header, SourceRecord
from penstock.connect.tasks.settings import WorkerSettings
from penstock.mirror.batches import outgoing
from penstock.mirror.clusters import (
    SOURCE,
    TARGET,
    begins_at_end,
    cluster_of,
    connection_of,
    is_read_committed,
    make_internal_topic,
    options_of,
)
from penstock.mirror.copying import Copying, dealt
from penstock.mirror.following import EARLIEST, LATEST, Follower
from penstock.mirror.keeping import OFFSET, source_partition
from penstock.mirror.lane import Lane
from penstock.mirror.naming import naming_of
from penstock.mirror.scheduling import Schedule
from penstock.mirror.settings import PLACES, SOURCE_SETTINGS
from penstock.model.ids import TopicPartition
from penstock.records.walk import iterate_records

BURST_S: Final = 0.5
"""So long a poll goes on while there is something to be moved."""
_BYTES: Final = "ByteArrayConverter"


def places_of(text: str) -> list[TopicPartition]:
    """`orders-0,pay-3`."""
    found = []
    for word in filter(None, text.split(",")):
        topic, _, number = word.rpartition("-")
        found.append(TopicPartition(topic, int(number)))
    return found


class MirrorSourceTask(SourceTask):
    version = penstock.__version__
    settings = SOURCE_SETTINGS
    java_names = ("org.apache.kafka.connect.mirror.MirrorSourceTask",)

    def start(self) -> None:
        values = self.values
        self._naming = naming_of(values)
        self._places = places_of(self.given.get(PLACES, ""))
        self._lane: Lane | None = None
        self._follower: Follower | None = None
        worker: WorkerSettings = self.context.worker  # type: ignore[attr-defined]
        if copies_bytes(self.given, worker.properties):
            self._lane = Lane(
                given=self.given,
                values=values,
                worker=worker,
                connector=self.context.connector,
                task=self.context.task,
                places=self._places,
                naming=self._naming,
                is_stopping=self.context.is_stopping,
            )
            self._lane.open()
            return
        self._follow()

    def poll(self) -> Sequence[SourceRecord] | None:
        if self._lane is None:
            return self._records()
        until_s = time.monotonic() + BURST_S
        while self._lane.step() and time.monotonic() < until_s and not self.context.is_stopping():
            pass
        return None

    def commit(self) -> None:
        if self._lane is not None:
            self._lane.keep()

    def stop(self) -> None:
        lane, self._lane = getattr(self, "_lane", None), None
        if lane is not None:
            lane.close()
        follower, self._follower = getattr(self, "_follower", None), None
        if follower is not None:
            follower.close()

    # One by one: for transforms and converters.

    def _follow(self) -> None:
        given = self.given
        partitions = [source_partition(self._naming.source, place) for place in self._places]
        start = LATEST if begins_at_end(given) else EARLIEST
        offsets = {}
        for place, found in zip(self._places, self.context.offsets(partitions), strict=True):
            offsets[place] = found[OFFSET] + 1 if found and isinstance(found.get(OFFSET), int) else start
        self._partitions = dict(zip(self._places, partitions, strict=True))
        self._follower = Follower(
            options_of(given, SOURCE, "consumer"),
            offsets,
            isolation_level=1 if is_read_committed(given) else 0,
            reset_to=start,
        )

    def _records(self) -> list[SourceRecord] | None:
        assert self._follower is not None
        try:
            answer = self._follower.next(BURST_S)
        except ReadFailed as error:
            raise ConnectError(str(error)) from error
        if answer is None:
            return None
        found = []
        try:
            for piece in answer.pieces:
                remote = self._naming.remote(piece.place.topic)
                fetched = outgoing(piece.records, piece.start_offset, piece.aborted)
                for batch in fetched.batches:
                    upstreams = (first + number for first, _, count in batch.runs for number in range(count))
                    for offset, record in zip(upstreams, iterate_records(batch.data), strict=True):
                        found.append(
                            SourceRecord(
                                self._partitions[piece.place],
                                {OFFSET: offset},
                                remote,
                                record.value,
                                key=record.key,
                                key_schema=OPTIONAL_BYTES,
                                value_schema=OPTIONAL_BYTES,
                                partition=piece.place.partition,
                                timestamp_ms=record.timestamp,
                                headers=[
                                    Header(name, value, OPTIONAL_BYTES) for name, value in record.headers
                                ],
                            )
                        )
        finally:
            self._follower.give_back(answer)
        return found


class MirrorSource(SourceConnector):
    version = penstock.__version__
    settings = SOURCE_SETTINGS
    java_names = ("org.apache.kafka.connect.mirror.MirrorSourceConnector",)
    task_class = MirrorSourceTask

    def start(self) -> None:
        """ConnectError."""
        values = self.values
        self._schedule = Schedule("source")
        self._topics: dict[str, int] = {}
        self._clusters: list[Cluster] = []
        if not values["enabled"]:
            return
        try:
            self._begin(values)
        except (Refused, Unreachable, UserError) as error:
            raise ConnectError(str(error)) from error
        self._schedule.start()

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [
            {**self.given, PLACES: ",".join(map(str, places))} for places in dealt(self._topics, max_tasks)
        ]

    def stop(self) -> None:
        self._schedule.stop()
        for cluster in self._clusters:
            cluster.close()

    def exactly_once_support(self, given: Mapping[str, str]) -> bool | None:
        return True

    def alter_offsets(self, given: Mapping[str, str], offsets: Mapping[Any, SourcePlace | None]) -> bool:
        for partition, offset in offsets.items():
            if offset is None:
                continue
            if not isinstance(partition, Mapping) or partition.keys() != {"cluster", "partition", "topic"}:
                raise ConnectError(
                    "a source partition of mirroring has the fields cluster, topic and partition"
                )
            place = offset.get(OFFSET)
            if isinstance(place, bool) or not isinstance(place, int) or place < 0:
                raise ConnectError(
                    "the offset must be the number of the last record that counts as copied, from 0"
                )
        return True

    def _begin(self, values: Mapping[str, Any]) -> None:
        given = self.given
        naming = naming_of(values)
        source, target = cluster_of(given, SOURCE), cluster_of(given, TARGET)
        self._clusters = [source, target]
        self._copying = Copying(source, target, naming, values)
        if values["emit.offset-syncs.enabled"]:
            side = values["offset-syncs.topic.location"]
            make_internal_topic(
                connection_of(given, side),
                naming.offset_syncs_topic(at_source=side == SOURCE),
                replication_factor=values["offset-syncs.topic.replication.factor"],
            )
        self._topics = self._copying.found()
        self._copying.make(self._topics)
        schedule = self._schedule
        if values["refresh.topics.enabled"]:
            schedule.every(values["refresh.topics.interval.seconds"], self._refresh)
        if values["sync.topic.configs.enabled"]:
            self._copying.copy_configs(self._topics)
            schedule.every(values["sync.topic.configs.interval.seconds"], self._copy_configs)
        if values["sync.topic.acls.enabled"]:
            self._copying.copy_acls(self._topics)
            schedule.every(values["sync.topic.acls.interval.seconds"], self._copy_acls)

    def _refresh(self) -> None:
        found = self._copying.found()
        self._copying.make(found)
        if found != self._topics:
            self._topics = found
            self.context.request_reconfiguration()

    def _copy_configs(self) -> None:
        self._copying.copy_configs(self._topics)

    def _copy_acls(self) -> None:
        self._copying.copy_acls(self._topics)

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for side in (SOURCE, TARGET):
            try:
                connection_of(given, side)
            except (InvalidConfig, UserError) as error:
                found[f"{side}.cluster.bootstrap.servers"] = [str(error)]
        return found


def copies_bytes(given: Mapping[str, str], worker: Mapping[str, str]) -> bool:
    """Nobody wants to see single records."""
    if given.get("transforms", "").strip():
        return False
    for name in ("key.converter", "value.converter"):
        chosen = given.get(name) or worker.get(name, "")
        if chosen.strip().rpartition(".")[2].removesuffix("Converter") != _BYTES.removesuffix("Converter"):
            return False
    return (given.get("header.converter") or _BYTES).strip().endswith(_BYTES)
