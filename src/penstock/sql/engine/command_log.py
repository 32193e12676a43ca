"""The log of commands: what the server was told and what lasts, in a topic with one partition that all servers of a
service id read.

A command is written, read back, and only then applied, by every server in the same order. So a server that starts again,
and one that
stands by, come to the same sources and queries.

    key    {"command": "stream/ORDERS/create", "sequence": 7, "unique": "5b1c…"}
    value  {"version": 1, "statement": "CREATE STREAM …;", "queryId": "CSAS_ORDERS_7", "properties": {…}}

The topic is compacted, and keys differ, also those of two servers that are told the same at one time, so that nothing goes. A
record that cannot be read is kept, told and left out.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from penstock.admin.cluster import Cluster
from penstock.client.clients import Connection, translated
from penstock.client.errors import Refused, Unreachable, UserError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

log = logging.getLogger("penstock.sql")

VERSION: Final = 1
POLL_S: Final = 0.2
WRITE_TIMEOUT_S: Final = 30.0
PARTITION: Final = 0


@dataclass(frozen=True, slots=True)
class Command:
    """`id` names the entity and what is done to it, as in `stream/ORDERS/create`."""

    id: str
    statement: str
    query_id: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    offset: int = -1
    version: int = VERSION

    def value(self) -> bytes:
        return json.dumps(
            {
                "version": self.version,
                "statement": self.statement,
                "queryId": self.query_id,
                "properties": self.properties,
            }
        ).encode()


Apply = Callable[[Command], None]


class CommandLog:
    """`apply` is called in the log's own thread, for each command in order, and must not raise."""

    def __init__(self, connection: Connection, topic: str, *, replicas: int) -> None:
        self._connection = connection
        self.topic = topic
        self._replicas = replicas
        self._stopped = threading.Event()
        self._moved = threading.Condition()
        self._applied = 0  # offsets below are applied
        self._producer: Any = None
        self.problem: str | None = "the topic of commands has not been read yet"
        self._thread: threading.Thread | None = None

    def open(self, cluster: Cluster) -> None:
        """Makes the topic where it is not there. UserError for one that cannot be used."""
        configs = {"cleanup.policy": "compact", "retention.ms": "-1", "min.insync.replicas": "1"}
        replicas = min(self._replicas, max(1, len(cluster.brokers.list())))
        cluster.topics.create(
            self.topic, partitions=1, replication_factor=replicas, configs=configs, exist_ok=True
        )
        partitions = len(cluster.topics.partitions(self.topic))
        if partitions != 1:
            raise UserError(f"the topic {self.topic} has {partitions} partitions, and must have one")
        self._producer = self._connection.producer(
            {"enable.idempotence": "true", "linger.ms": "0", "message.timeout.ms": "30000"}
        )

    def follow(self, apply: Apply) -> None:
        """Reads what is there before it returns, and goes on behind."""
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        consumer = self._connection.consumer(
            {
                "group.id": self.topic,
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": "100",
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([TopicPartition(self.topic, PARTITION, OFFSET_BEGINNING)])
        place = TopicPartition(self.topic, PARTITION)
        start, end = consumer.get_watermark_offsets(place, timeout=WRITE_TIMEOUT_S)
        if start >= end:
            self._applied = end  # of a topic that somebody has emptied nothing comes
        while self.position(consumer) < end and not self._stopped.is_set():
            self._take(consumer.poll(POLL_S), apply, consumer)
        self.problem = None
        self._thread = threading.Thread(
            target=self._run, args=(consumer, apply), name="penstock-commands", daemon=True
        )
        self._thread.start()

    def position(self, consumer: Consumer) -> int:
        from confluent_kafka import TopicPartition

        found: int = consumer.position([TopicPartition(self.topic, PARTITION)])[0].offset
        return max(found, self._applied)

    def append(self, command: Command, *, sequence: int) -> Command:
        """Written by all in-sync replicas, and applied here; the command with its offset."""
        from confluent_kafka import KafkaException

        told: list[Any] = []
        key = new_key(command, sequence)

        def report(error: Any, message: Any) -> None:
            told.append(error if error is not None else message.offset())

        try:
            self._producer.produce(
                self.topic, value=command.value(), key=key, partition=PARTITION, on_delivery=report
            )
        except KafkaException as error:
            raise translated(error) from None
        self._producer.flush(WRITE_TIMEOUT_S)
        if not told:
            raise Unreachable(f"the topic {self.topic} could not be written within {WRITE_TIMEOUT_S:.0f} s.")
        if not isinstance(told[0], int):
            raise Refused(f"the command could not be written: {told[0].str()}", code=told[0].code())
        offset: int = told[0]
        with self._moved:
            if not self._moved.wait_for(
                lambda: self._applied > offset or self._stopped.is_set(), WRITE_TIMEOUT_S
            ):
                raise Unreachable(
                    f"the command was written, and not read back within {WRITE_TIMEOUT_S:.0f} s."
                )
        return Command(command.id, command.statement, command.query_id, command.properties, offset)

    def has_stopped_within(self, seconds: float) -> bool:
        """Waits; earlier when the log is closed."""
        return self._stopped.wait(seconds)

    @property
    def next_offset(self) -> int:
        return self._applied

    def close(self) -> None:
        self._stopped.set()
        with self._moved:
            self._moved.notify_all()
        if self._thread is not None:
            self._thread.join(WRITE_TIMEOUT_S)

    def _run(self, consumer: Consumer, apply: Apply) -> None:
        try:
            while not self._stopped.is_set():
                self._take(consumer.poll(POLL_S), apply, consumer)
        finally:
            consumer.close()

    def _take(self, message: Message | None, apply: Apply, consumer: Consumer) -> None:
        if message is None:
            return
        failure = message.error()
        if failure is not None:
            if failure.str() != self.problem:
                log.warning("Reading %s: %s", self.topic, failure.str())
            self.problem = failure.str()
            return
        self.problem = None
        command = read(message.key(), message.value(), message.offset() or 0)
        if command is not None:
            apply(command)
        with self._moved:
            self._applied = (message.offset() or 0) + 1
            self._moved.notify_all()


def new_key(command: Command, sequence: int) -> bytes:
    """One that no other record has, or compaction would keep only the last of them."""
    return json.dumps({"command": command.id, "sequence": sequence, "unique": secrets.token_hex(8)}).encode()


def read(key: bytes | None, value: bytes | None, offset: int) -> Command | None:
    """None for what is no command of a form that we know."""
    if value is None:
        return None
    try:
        name = json.loads(key or b"")["command"]
        document = json.loads(value)
        version = int(document["version"])
        if version > VERSION:
            raise ValueError(f"version {version} is newer than this server")
        return Command(
            str(name), str(document["statement"]), document.get("queryId"),
            {str(each): str(text) for each, text in (document.get("properties") or {}).items()}, offset, version,
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        log.error("The record at offset %d of the commands is left out, it cannot be read: %s", offset, error)
        return None
