"""MirrorHeartbeatConnector: a record in the target's topic `heartbeats` at every interval.

Flows copy that topic, so that it comes along wherever a flow is alive, and its age says how late that flow is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import penstock
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.connect.data.schema import BYTES
from penstock.connect.errors import ConnectError
from penstock.connect.interface import Config, SourceConnector, SourceTask
from penstock.connect.records import SourceRecord
from penstock.mirror.clusters import TARGET, connection_of, make_internal_topic
from penstock.mirror.formats import Heartbeat
from penstock.mirror.naming import HEARTBEATS
from penstock.mirror.settings import HEARTBEAT_SETTINGS, SOURCE_ALIAS, TARGET_ALIAS

_OFFSET: Final = {"offset": 0}


class MirrorHeartbeatTask(SourceTask):
    version = penstock.__version__
    settings = HEARTBEAT_SETTINGS
    java_names = ("org.apache.kafka.connect.mirror.MirrorHeartbeatTask",)

    def start(self) -> None:
        self._source, self._target = self.values[SOURCE_ALIAS], self.values[TARGET_ALIAS]
        self._interval_s = float(self.values["emit.heartbeats.interval.seconds"])
        self._due_s = time.monotonic()
        self._partition = {"sourceClusterAlias": self._source, "targetClusterAlias": self._target}

    def poll(self) -> Sequence[SourceRecord] | None:
        left_s = self._due_s - time.monotonic()
        if left_s > 0:
            self.context.wait(left_s)
            return None
        self._due_s = time.monotonic() + self._interval_s
        now_ms = int(time.time() * 1000)
        beat = Heartbeat(self._source, self._target, now_ms)
        return [
            SourceRecord(
                self._partition, _OFFSET, HEARTBEATS, beat.value(), key=beat.key(), key_schema=BYTES,
                value_schema=BYTES, partition=0, timestamp_ms=now_ms,
            )
        ]  # fmt: skip


class MirrorHeartbeat(SourceConnector):
    version = penstock.__version__
    settings = HEARTBEAT_SETTINGS
    java_names = ("org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",)
    task_class = MirrorHeartbeatTask

    def start(self) -> None:
        if self._beats:
            factor = self.values["heartbeats.topic.replication.factor"]
            try:
                make_internal_topic(connection_of(self.given, TARGET), HEARTBEATS, replication_factor=factor)
            except (Refused, Unreachable, UserError) as error:
                raise ConnectError(str(error)) from error

    def task_configs(self, max_tasks: int) -> list[Config]:
        return [dict(self.given)] if self._beats else []

    @property
    def _beats(self) -> bool:
        return (
            bool(self.values["emit.heartbeats.enabled"])
            and int(self.values["emit.heartbeats.interval.seconds"]) > 0
        )
