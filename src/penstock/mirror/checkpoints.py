"""MirrorCheckpointConnector: offsets of the source's groups, translated.

They are told in `A.checkpoints.internal`, and with `sync.group.offsets.enabled` set at the target for idle groups.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import penstock
from penstock.admin import Cluster
from penstock.client.errors import ReadFailed, Refused, Unreachable, UserError
from penstock.connect.data.schema import BYTES
from penstock.connect.errors import ConnectError, RetriableError
from penstock.connect.interface import Config, SourceConnector, SourceTask
from penstock.connect.records import SourceRecord
from penstock.mirror.clusters import (
    SOURCE,
    TARGET,
    cluster_of,
    connection_of,
    make_internal_topic,
    options_of,
)
from penstock.mirror.filters import Filter
from penstock.mirror.formats import Checkpoint
from penstock.mirror.group_offsets import dealt_groups, groups_of, set_offsets, translated
from penstock.mirror.naming import naming_of
from penstock.mirror.scheduling import Schedule
from penstock.mirror.settings import CHECKPOINT_SETTINGS, GROUPS
from penstock.mirror.sync_log import SyncLog
from penstock.model.ids import TopicPartition

log = logging.getLogger("penstock.mirror")

WAIT_S = 0.5
BEHIND_S = 5.0


class MirrorCheckpointTask(SourceTask):
    version = penstock.__version__
    settings = CHECKPOINT_SETTINGS
    java_names = ("org.apache.kafka.connect.mirror.MirrorCheckpointTask",)

    def start(self) -> None:
        values, given = self.values, self.given
        self._naming = naming_of(values)
        self._topics = Filter(values["topics"], values["topics.exclude"], "topics")
        self._groups = [one for one in given.get(GROUPS, "").split(",") if one]
        self._source, self._target = cluster_of(given, SOURCE), cluster_of(given, TARGET)
        side = values["offset-syncs.topic.location"]
        self._log = SyncLog(
            options_of(given, side, "consumer"), self._naming.offset_syncs_topic(at_source=side == SOURCE)
        )
        self._emits = values["emit.checkpoints.enabled"]
        self._emit_s = float(values["emit.checkpoints.interval.seconds"])
        self._syncs = values["sync.group.offsets.enabled"]
        self._sync_s = float(values["sync.group.offsets.interval.seconds"])
        self._emit_due_s = self._sync_due_s = time.monotonic()
        self._told: dict[tuple[str, str, int], Checkpoint] = {}
        self._topic = self._naming.checkpoints_topic()
        self._is_behind = False

    def poll(self) -> Sequence[SourceRecord] | None:
        now_s = time.monotonic()
        emits = self._emits and now_s >= self._emit_due_s
        syncs = self._syncs and now_s >= self._sync_due_s
        if not emits and not syncs:
            due = [
                at
                for at, is_on in ((self._emit_due_s, self._emits), (self._sync_due_s, self._syncs))
                if is_on
            ]
            self.context.wait(max(0.001, min(WAIT_S, min(due, default=now_s + WAIT_S) - now_s)))
            return None
        try:
            found = self._translated()
            if syncs:
                for group, checkpoints in found.items():
                    self._set(group, checkpoints)
        except (Unreachable, ReadFailed) as error:
            raise RetriableError(str(error)) from error
        except Refused as error:
            raise ConnectError(str(error)) from error
        now_s = time.monotonic()
        if syncs:
            self._sync_due_s = now_s + self._pause_s(self._sync_s)
        if not emits:
            return None
        self._emit_due_s = now_s + self._pause_s(self._emit_s)
        return [
            self._record(one) for checkpoints in found.values() for one in checkpoints if self._is_new(one)
        ]

    def stop(self) -> None:
        for name in ("_log", "_source", "_target"):
            opened = getattr(self, name, None)
            if opened is not None:
                opened.close()

    def _translated(self) -> dict[str, list[Checkpoint]]:
        self._log.catch_up()
        self._is_behind = False
        found = {}
        for group in self._groups:
            places, unknown = translated(
                self._source, group, self._log.offsets, wants=self._wants, remote=self._naming.remote
            )
            self._is_behind |= bool(unknown) or not all(one.is_exact for one in places.values())
            found[group] = [
                Checkpoint(group, *place, one.upstream, one.downstream) for place, one in places.items()
            ]
        return found

    def _pause_s(self, interval_s: float) -> float:
        """What is not copied yet will be soon."""
        return min(interval_s, BEHIND_S) if self._is_behind else interval_s

    def _wants(self, topic: str) -> bool:
        naming = self._naming
        return self._topics.passes(topic) and not naming.is_internal(topic) and not naming.is_loop(topic)

    def _set(self, group: str, checkpoints: list[Checkpoint]) -> None:
        wanted = {TopicPartition(one.topic, one.partition): one.downstream for one in checkpoints}
        try:
            done = set_offsets(self._target, group, wanted)
        except Refused as error:
            log.warning("the offsets of the group %s cannot be set: %s", group, error)
            return
        if done:
            log.info("the group %s is set in %d partitions", group, len(done))

    def _is_new(self, one: Checkpoint) -> bool:
        key = one.group, one.topic, one.partition
        if self._told.get(key) == one:
            return False
        self._told[key] = one
        return True

    def _record(self, one: Checkpoint) -> SourceRecord:
        return SourceRecord(
            {"partition": one.partition, "topic": one.topic, "group": one.group},
            {"offset": 0},
            self._topic,
            one.value(),
            key=one.key(),
            key_schema=BYTES,
            value_schema=BYTES,
            partition=0,
            timestamp_ms=int(time.time() * 1000),
        )


class MirrorCheckpoint(SourceConnector):
    version = penstock.__version__
    settings = CHECKPOINT_SETTINGS
    java_names = ("org.apache.kafka.connect.mirror.MirrorCheckpointConnector",)
    task_class = MirrorCheckpointTask

    def start(self) -> None:
        """ConnectError."""
        values, given = self.values, self.given
        self._schedule = Schedule("checkpoints")
        self._groups: list[str] = []
        self._source: Cluster | None = None
        if not values["enabled"] or not (
            values["emit.checkpoints.enabled"] or values["sync.group.offsets.enabled"]
        ):
            return
        naming = naming_of(values)
        self._filter = Filter(values["groups"], values["groups.exclude"], "groups")
        self._source = cluster_of(given, SOURCE)
        try:
            make_internal_topic(
                connection_of(given, TARGET),
                naming.checkpoints_topic(),
                replication_factor=values["checkpoints.topic.replication.factor"],
            )
            self._groups = groups_of(self._source, self._filter.passes)
        except (Refused, Unreachable, UserError) as error:
            raise ConnectError(str(error)) from error
        if values["refresh.groups.enabled"]:
            self._schedule.every(values["refresh.groups.interval.seconds"], self._refresh)
        self._schedule.start()

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [{**self.given, GROUPS: ",".join(groups)} for groups in dealt_groups(self._groups, max_tasks)]

    def stop(self) -> None:
        self._schedule.stop()
        if self._source is not None:
            self._source.close()

    def _refresh(self) -> None:
        assert self._source is not None
        found = groups_of(self._source, self._filter.passes)
        if found != self._groups:
            self._groups = found
            self.context.request_reconfiguration()
