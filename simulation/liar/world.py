"""What the seeds of one process share: a real broker, ways to fill its topics, and topics that are only read."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from simulation.liar.truth import NotTrue, Truth

BROKER_OPTIONS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "log.cleaner.backoff.ms": "50",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "false",
}
PARTITIONS: Final = 3
RECORDS: Final = 240
PRODUCE_TIMEOUT_S: Final = 30.0
SEGMENT_MS: Final = 100
COMPACTION_TIMEOUT_S: Final = 120.0
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


class Written(NamedTuple):
    """A topic that nobody changes any more."""

    name: str
    partitions: int


class World:
    """Topics have a new name for each seed."""

    def __init__(self, directory: Path | None = None) -> None:
        self._temporary = None if directory else tempfile.TemporaryDirectory(prefix="penstock-liar-")
        where = directory or Path(self._temporary.name if self._temporary else "")
        self.broker = PenstockBroker(where, options=BROKER_OPTIONS)
        self.truth: Final = Truth(self.broker.port)
        self._producers: dict[str, Producer] = {}

    def close(self) -> None:
        self.truth.close()
        self.broker.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fill(
        self, topic: str, rows: Iterable[tuple[int, bytes | None, bytes]], *, codec: str = "none"
    ) -> None:
        """(partition, key, value) of each, in small batches."""
        producer = self._producer(codec)
        for partition, key, value in rows:
            producer.produce(topic, value, key, partition=partition)
        _flush(producer)

    def _producer(self, codec: str) -> Producer:
        if codec not in self._producers:
            self._producers[codec] = Producer(
                self._settings({"compression.type": codec, "batch.num.messages": 7})
            )
        return self._producers[codec]

    def _settings(self, more: dict[str, Any]) -> dict[str, Any]:
        return {"bootstrap.servers": self.broker.bootstrap, "linger.ms": 0, "log_level": 0, **more}

    @cached_property
    def library(self) -> list[Written]:
        """Topics with plain, compressed, compacted and transactional records, and one whose first records are gone."""
        return [self._plain(), self._compressed(), self._trimmed(), self._transactional(), self._compacted()]

    def _plain(self) -> Written:
        topic = self._created("plain")
        self.fill(topic.name, numbered(topic.name, RECORDS))
        return topic

    def _compressed(self) -> Written:
        topic = self._created("compressed")
        for codec in CODECS:
            self.fill(topic.name, numbered(f"{codec}", RECORDS // len(CODECS)), codec=codec)
        return topic

    def _trimmed(self) -> Written:
        topic = self._created("trimmed")
        self.fill(topic.name, numbered(topic.name, RECORDS))
        for partition in range(PARTITIONS):
            self.truth.delete_records(topic.name, partition, 11 * (partition + 1))
        return topic

    def _transactional(self) -> Written:
        """Committed and aborted transactions side by side with plain records; the last one stays open."""
        topic = self._created("transactional")
        chance = random.Random("transactional")
        producers = [
            Producer(self._settings({"transactional.id": f"library-{number}"})) for number in range(3)
        ]
        for producer in producers:
            producer.init_transactions(PRODUCE_TIMEOUT_S)
        for number in range(12):
            begun = chance.sample(producers[:2], chance.randint(1, 2))
            for producer in begun:
                producer.begin_transaction()
            for _ in range(chance.randint(1, 4)):
                for producer in begun:
                    for partition, key, value in numbered(f"transaction {number}", chance.randint(1, 9)):
                        producer.produce(topic.name, value, key, partition=partition)
                    _flush(producer)
            self.fill(topic.name, numbered(f"between {number}", 3))
            for producer in begun:
                end = producer.commit_transaction if chance.random() < 0.6 else producer.abort_transaction
                end(PRODUCE_TIMEOUT_S)
        producers[2].begin_transaction()
        producers[2].produce(topic.name, b"open", partition=0)
        _flush(producers[2])
        self.fill(topic.name, numbered("behind", 6))
        self._open = producers[2]  # else it would be aborted
        return topic

    def _compacted(self) -> Written:
        configs = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.001",
            "segment.ms": f"{SEGMENT_MS}",
        }
        topic = self._created("compacted", configs)
        for part in range(4):
            rows = (
                (number % PARTITIONS, b"%d" % (number % 17), b"compacted %d-%d" % (part, number))
                for number in range(RECORDS // 4)
            )
            self.fill(topic.name, rows)
            time.sleep(1.5 * SEGMENT_MS / 1000)  # the next record begins a new segment
        deadline_s = time.monotonic() + COMPACTION_TIMEOUT_S
        wanted = [f"compacted {topic.name}-{partition} " for partition in range(PARTITIONS)]
        while not all(line in self.broker.log_path.read_text() for line in wanted):
            if time.monotonic() > deadline_s:
                raise NotTrue(f"{topic.name} was not compacted in {COMPACTION_TIMEOUT_S:.0f} s")
            time.sleep(0.05)
        return topic

    def _created(self, name: str, configs: dict[str, str] | None = None) -> Written:
        topic = Written(f"library-{name}", PARTITIONS)
        self.truth.create(topic.name, topic.partitions, configs)
        return topic


def numbered(name: str, count: int, partitions: int = PARTITIONS) -> Iterable[tuple[int, bytes, bytes]]:
    """Rows that are all different, as long as the name is."""
    for number in range(count):
        padding = b"." * (number * 37 % 150)
        yield number % partitions, b"%d" % (number % 10), b"%s %d%s" % (name.encode(), number, padding)


def _flush(producer: Producer) -> None:
    if producer.flush(PRODUCE_TIMEOUT_S):
        raise NotTrue("the broker does not take what is written for a scenario")
