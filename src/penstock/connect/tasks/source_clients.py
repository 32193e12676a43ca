"""The clients of a source task: who writes its records, who its offsets, and where those are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError

from penstock.connect.errors import InvalidConfig
from penstock.connect.tasks.boundaries import BY_INTERVAL, POLL, Boundary
from penstock.connect.tasks.clients import (
    BOOTSTRAP,
    CONSUMER,
    PRODUCER,
    make_admin,
    properties_of,
    settings_of,
)
from penstock.connect.tasks.fencing import transactional_id
from penstock.connect.tasks.frame import Frame
from penstock.connect.tasks.offset_file import FileOffsets
from penstock.connect.tasks.offsets import BothOffsets, OffsetStore, TopicOffsets
from penstock.connect.tasks.settings import WorkerSettings
from penstock.connect.tasks.source_offsets import SourceOffsets
from penstock.connect.tasks.topics import make_topic
from penstock.connect.tasks.writing import NotWritten, TransactionalWriter, Writer

OFFSETS_TOPIC: Final = "offsets.storage.topic"
LONG_LINGER_MS: Final = 5


class SourceClients:
    def __init__(
        self,
        frame: Frame,
        boundary: Boundary | None,
        on_failure: Callable[[Any, KafkaError], None],
        *,
        tells_all: bool,
    ) -> None:
        """InvalidConfig."""
        self._frame = frame
        worker, config = frame.worker, frame.config
        settings = settings_of(worker, config, PRODUCER)
        settings.setdefault("client.id", f"connector-producer-{frame.name}")
        self._admin: Any = None
        self.writer: Writer
        if boundary is None:
            self.writer = Writer(
                settings, on_failure, frame.check, frame.control.progress, tells_all=tells_all
            )
        else:
            if "linger.ms" not in properties_of(worker, config, PRODUCER):
                # The end of a transaction does not wait for company, and with each poll there is one.
                settings["linger.ms"] = 0 if boundary.name == POLL else LONG_LINGER_MS
            self.writer = TransactionalWriter(
                settings,
                on_failure,
                frame.check,
                frame.control.progress,
                transactional_id=transactional_id(worker, frame.connector, frame.task),
                interval_s=boundary.interval_s if boundary.name == BY_INTERVAL else 0.0,
            )
        self._is_transactional = boundary is not None
        own = config.get(OFFSETS_TOPIC) or None
        self.store: OffsetStore
        self.store, is_own_cluster = self._store(own)
        self.offsets_topic = own or worker.offsets_topic or ""
        self._offsets_writer = self.writer
        if not is_own_cluster and worker.offsets_topic is not None:
            plain = settings_of(worker, _without_overrides(config), PRODUCER)
            self._offsets_writer = Writer(plain, _fail, frame.check, frame.control.progress)

    def admin(self) -> Any:
        if self._admin is None:
            self._admin = make_admin(self._frame.worker, self._frame.config)
        return self._admin

    def keep(self, offsets: SourceOffsets, timeout_s: float) -> bool:
        """What was seen is kept when this returns True: everything behind it is delivered, or is so in one transaction with
        it."""
        writer = self.writer
        if self._is_transactional:
            if not isinstance(self.store, FileOffsets) and offsets.has_news:
                writer.begin()
            written = offsets.write(self._send)
            writer.commit()
            offsets.forget(written)
            return True
        if not writer.flush(timeout_s):
            return False
        if not offsets.has_news:
            return True
        written = offsets.write(self._send)
        if not self._offsets_writer.flush(timeout_s):
            return False
        offsets.forget(written)
        return True

    def close(self) -> None:
        self.writer.close()
        if self._offsets_writer is not self.writer:
            self._offsets_writer.close()
        self._admin = None

    def _send(self, topic: str, key: bytes, value: bytes | None) -> None:
        self._offsets_writer.send(topic, key, value)

    def _store(self, own: str | None) -> tuple[OffsetStore, bool]:
        """And whether it is a topic of the cluster that the records go to."""
        worker, config = self._frame.worker, self._frame.config
        if own is None and not self._is_transactional:
            return worker_store(worker, self._frame.check), is_same_cluster(worker, config)
        topic = own or worker.offsets_topic
        if topic is None:
            raise InvalidConfig("offset.storage.topic: exactly-once sources need a topic for their offsets")
        store: OffsetStore = TopicOffsets(
            topic,
            properties_of(worker, config, CONSUMER) | self._reached(),
            settings_of(worker, config, CONSUMER) | self._reached(),
            self._frame.check,
        )
        if own is not None or not is_same_cluster(worker, config):
            make_topic(
                self.admin(),
                topic,
                worker.offsets_partitions,
                worker.offsets_replication,
                {"cleanup.policy": "compact"},
            )
        if own is not None and (worker.offsets_topic or worker.offsets_file) and own != worker.offsets_topic:
            store = BothOffsets(store, worker_store(worker, self._frame.check))  # type: ignore[arg-type]
        return store, True

    def _reached(self) -> dict[str, str]:
        """The cluster of the producer, whatever the consumer's settings say."""
        return {BOOTSTRAP: properties_of(self._frame.worker, self._frame.config, PRODUCER)[BOOTSTRAP]}


def worker_store(worker: WorkerSettings, check: Callable[[], None] = lambda: None) -> OffsetStore:
    """Of all connectors that have none of their own. InvalidConfig."""
    if worker.offsets_file is not None:
        return FileOffsets.at(worker.offsets_file)
    if worker.offsets_topic is None:
        raise InvalidConfig(
            "offset.storage.topic or offset.storage.file.filename must say where offsets are kept"
        )
    return TopicOffsets(
        worker.offsets_topic, properties_of(worker, {}, CONSUMER), settings_of(worker, {}, CONSUMER), check
    )


def is_same_cluster(worker: WorkerSettings, config: Any) -> bool:
    return properties_of(worker, config, PRODUCER)[BOOTSTRAP] == worker.bootstrap


def _without_overrides(config: Any) -> dict[str, str]:
    return {name: value for name, value in config.items() if ".override." not in name}


def _fail(message: Any, error: KafkaError) -> None:
    raise NotWritten(f"offsets cannot be written to {message.topic()}: {error.str()}")
