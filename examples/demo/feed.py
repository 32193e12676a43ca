"""Workers, measurements, uploads and log lines into their topics, with an ordinary client."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Self

from confluent_kafka import Producer

from examples.demo import topics
from examples.demo.day import Upload
from examples.demo.population import Population
from examples.demo.way import Way

FLUSH_TIMEOUT_S = 60.0
POLL_EVERY = 500


class Feed:
    def __init__(self, way: Way) -> None:
        self._producer = Producer(
            {
                **way.librdkafka,
                "compression.type": "lz4",
                "partitioner": "murmur2_random",  # the Java client's: what the pipelines write lies where this does
                "linger.ms": 5,
                "acks": "all",
                "enable.metrics.push": False,  # a slow answer to it would be logged in the middle of the screen
            }
        )

    def send_workers(self, people: Population) -> None:
        for worker, record in people.history:
            value = None if record is None else json.dumps(record, ensure_ascii=False)
            self._producer.produce(topics.WORKERS, key=worker, value=value)
        self.log(f"{len(people.workers)} workers, {len(people.gone)} have left")
        self._flush()

    def send_upload(self, upload: Upload) -> None:
        """Returns when the broker has everything."""
        for number, measurement in enumerate(upload.measurements, 1):
            self._producer.produce(
                topics.MEASUREMENTS,
                key=measurement.key,
                value=measurement.value,
                headers={"lote": upload.upload},  # what cannot be decoded still says where it belongs
            )
            if number % POLL_EVERY == 0:
                self._producer.poll(0)
        count = len(upload.measurements)
        summary = {"upload": upload.upload, "begin": upload.begin.isoformat(), "measurements": count}
        self._producer.produce(topics.UPLOADS, key=upload.upload, value=json.dumps(summary))
        self.log(f"{upload.upload} with {count} measurements")
        self._flush()

    def log(self, text: str) -> None:
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "source": "demo", "text": text}
        self._producer.produce(topics.LOG, value=json.dumps(line, ensure_ascii=False))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            self._flush()
        self._producer.close()

    def _flush(self) -> None:
        if left := self._producer.flush(FLUSH_TIMEOUT_S):
            raise RuntimeError(f"the broker did not take {left} records within {FLUSH_TIMEOUT_S:.0f} s")
