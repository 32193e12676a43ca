"""The book of a worker: what there is and how it is, read by all and written by the leader.

`SharedBook` is that of a group, in topics; `OwnBook` that of a standalone worker, in memory. Both are fed by the same records.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.compacted_topics import ensure_topic
from penstock.client.errors import Unreachable
from penstock.client.properties import SECURITY_NAMES
from penstock.connect.errors import ConnectError
from penstock.connect.settings import Kind
from penstock.connect.state.configs import Change, ConfigState
from penstock.connect.state.configs import Kind as Changed
from penstock.connect.state.statuses import StatusState
from penstock.connect.state.values import Written, packed, unpacked
from penstock.connect.tasks.clients import CONSUMER, PRODUCER, settings_of
from penstock.connect.tasks.settings import WorkerSettings, value_of, with_prefix
from penstock.connect.topics.following import Following
from penstock.connect.topics.writing import ConfigWriter, StatusWriter

log = logging.getLogger("penstock.connect")

CONFIGS: Final = "config.storage.topic"
OFFSETS: Final = "offset.storage.topic"
STATUSES: Final = "status.storage.topic"
READ_BACK_S: Final = 30.0
START_S: Final = 60.0
STOP_S: Final = 5.0

OnChange = Callable[[Change], None]


class Book(Protocol):
    configs: ConfigState
    statuses: StatusState
    lock: threading.RLock
    """Held while a record is applied."""

    @property
    def problem(self) -> str | None: ...

    def open(self, on_change: OnChange) -> str:
        """Blocks until all is read; the id of the cluster. `on_change` gets what comes later, in a thread."""

    def claim(self) -> None:
        """This worker leads: from now on nobody else writes configs. All that others wrote has been read when it returns."""

    def yield_claim(self) -> None: ...

    def write(self, records: Sequence[Written]) -> None:
        """Configs; they have been read back when it returns. ConnectError; `Fenced`."""

    def tell(self, records: Sequence[Written], *, wait: bool = False) -> None:
        """Statuses."""

    def close(self) -> None: ...


class OwnBook:
    """`Book` of a standalone worker."""

    def __init__(self, connection: Connection) -> None:
        self.configs, self.statuses = ConfigState(), StatusState()
        self.lock = threading.RLock()
        self.problem: str | None = None
        self._connection = connection
        self._on_change: OnChange = lambda change: None

    def open(self, on_change: OnChange) -> str:
        self._on_change = on_change
        with ClusterClient(self._connection) as client:
            return client.metadata([]).cluster_id or ""

    def claim(self) -> None:
        pass

    def yield_claim(self) -> None:
        pass

    def write(self, records: Sequence[Written]) -> None:
        for key, value in records:
            with self.lock:
                change = self.configs.replay(key, value)
            self._on_change(change)

    def tell(self, records: Sequence[Written], *, wait: bool = False) -> None:
        with self.lock:
            for key, value in records:
                self.statuses.replay(key, unpacked(packed(value)))

    def close(self) -> None:
        pass


class SharedBook:
    """`Book` of a group of workers."""

    def __init__(self, worker: WorkerSettings) -> None:
        self.configs, self.statuses = ConfigState(), StatusState()
        self.lock = threading.RLock()
        self._worker = worker
        self._config_topic = _required(worker, CONFIGS)
        self._offset_topic = _required(worker, OFFSETS)
        self._status_topic = _required(worker, STATUSES)
        self._connection = connection_of(worker)
        self._on_change: OnChange = lambda change: None
        self._following: Following | None = None
        self._is_loaded = False
        self._writing = threading.Lock()
        producer = settings_of(worker, {}, PRODUCER)
        self._writer = ConfigWriter(producer, self._config_topic, f"connect-cluster-{worker.group_id}")
        self._producer_settings = producer
        self._status_writer: StatusWriter | None = None

    @property
    def problem(self) -> str | None:
        return "the worker is starting" if self._following is None else self._following.problem

    def open(self, on_change: OnChange) -> str:
        cluster_id = self._ensure_topics()
        self._on_change = on_change
        with ClusterClient(self._connection) as client:
            _, described = client.leaders([self._config_topic, self._status_topic])
        places = [
            (topic.name or "", partition.partition_index)
            for topic in described.topics
            for partition in topic.partitions
        ]
        self._following = Following(settings_of(self._worker, {}, CONSUMER), places, self._apply)
        self._following.start()
        if not self._following.wait_loaded(START_S):
            raise Unreachable(
                f"the topics {self._config_topic} and {self._status_topic} could not be read: {self._following.problem}"
            )
        self._is_loaded = True
        for key in (*self.configs.unknown, *self.statuses.unknown):
            log.warning("A record that this version does not know is left as it is: %s", key)
        self._status_writer = StatusWriter(self._producer_settings, self._status_topic)
        return cluster_id

    def claim(self) -> None:
        with self._writing:
            self._writer.claim()
            end = self._end()
        assert self._following is not None
        if end and not self._following.wait_for((self._config_topic, 0), end - 1, READ_BACK_S):
            raise ConnectError(f"the topic {self._config_topic} could not be read to its end")

    def yield_claim(self) -> None:
        with self._writing:
            self._writer.close()

    def write(self, records: Sequence[Written]) -> None:
        with self._writing:
            offset = self._writer.write(records)
        assert self._following is not None
        if not self._following.wait_for((self._config_topic, 0), offset, READ_BACK_S):
            raise ConnectError(
                "Request timed out. The worker has written, and could not read it back in time."
            )

    def tell(self, records: Sequence[Written], *, wait: bool = False) -> None:
        writer, following = self._status_writer, self._following
        if writer is None or following is None:
            return
        if not wait:
            writer.write(records)
            return
        for partition, offset in writer.write_and_wait(records, READ_BACK_S):
            following.wait_for((self._status_topic, partition), offset, READ_BACK_S)

    def close(self) -> None:
        self._writer.close()
        if self._status_writer is not None:
            self._status_writer.close(STOP_S)
        if self._following is not None:
            self._following.stop(STOP_S)

    def _end(self) -> int:
        from penstock.client.options import client_options
        from penstock.client.topics import LATEST, Client

        security = {
            name: text for name, text in self._connection.properties.items() if name in SECURITY_NAMES
        }
        client = Client(client_options(self._worker.bootstrap, security), is_known=True)
        try:
            topic = client.topic(self._config_topic)
            return client.offsets(topic, {0: LATEST}, isolation_level=0)[0] or 0
        finally:
            client.close()

    def _apply(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        try:
            name, said = (key or b"").decode(), unpacked(value)
        except ValueError:
            log.warning("A record of %s that is no JSON is left as it is: %r", topic, key)
            return
        with self.lock:
            if topic == self._status_topic:
                self.statuses.replay(name, said)
                return
            change = self.configs.replay(name, said)
        if self._is_loaded and change.kind is not Changed.NOTHING:
            self._on_change(change)

    def _ensure_topics(self) -> str:
        cluster_id: str | None = None
        for option, name, partitions in (
            (CONFIGS, self._config_topic, 1),
            (OFFSETS, self._offset_topic, self._worker.offsets_partitions),
            (STATUSES, self._status_topic, self._number(STATUSES, "partitions", 5)),
        ):
            prefix = option.removesuffix("topic")
            own = {"partitions", "replication.factor", "topic"}
            configs = with_prefix(self._worker.properties, prefix)
            cluster_id = ensure_topic(
                self._connection,
                name,
                option=option,
                partitions=partitions,
                is_exact=option == CONFIGS,
                replication_factor=self._number(option, "replication.factor", 3),
                configs={key: text for key, text in configs.items() if key not in own},
                timeout_s=START_S,
            )
        return cluster_id or ""

    def _number(self, option: str, name: str, default: int) -> int:
        found: int = value_of(self._worker.properties, option.removesuffix("topic") + name, Kind.INT, default)
        return found


def _required(worker: WorkerSettings, option: str) -> str:
    return str(value_of(worker.properties, option, Kind.STRING))


def connection_of(worker: WorkerSettings) -> Connection:
    security = {name: text for name, text in worker.properties.items() if name in SECURITY_NAMES}
    return Connection(worker.bootstrap, security)
