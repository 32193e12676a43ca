"""Copying records of a topic, all of a range or chosen ones, to a topic of the same cluster: also to the same one again.

Keys, values and headers stay as they are, byte by byte. The range is fixed when the copy begins, so a topic can be
copied into itself. Each record is written once unless the copy is stopped or fails; then those that were acknowledged
are there, and no others are counted. In order within each partition of the source where partitions are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.client.clients import Connection, translated
from penstock.client.errors import Refused
from penstock.client.fetching import Range
from penstock.client.topics import Topic
from penstock.console.messages.columns import raws
from penstock.console.messages.matching import Matcher
from penstock.console.messages.model import Copy, Progress, Source
from penstock.console.messages.produce import SETTINGS, NewRecord, send_record
from penstock.console.messages.reading import Reader
from penstock.console.messages.scan import ranges_of
from penstock.console.messages.wanted import Wanted

FLUSH_STEP_S: Final = 0.1
POLL_EVERY: Final = 500


class Copying:
    """`run` blocks: call it in a thread. `stopped` ends it: what was handed to the producer is waited for, or given up."""

    def __init__(self, source: Source, copy: Copy, stopped: threading.Event) -> None:
        self._source = source
        self._copy = copy
        self._stopped = stopped
        self._matcher = Matcher(Wanted() if copy.chosen is not None else copy.search.wanted, _no_document)
        self.progress = Progress()
        self.written = 0
        """Acknowledged by the cluster."""
        self._sent = 0
        self._failure: Any = None

    def use_documents(self, matcher: Matcher) -> None:
        """For conditions on values with schemas."""
        self._matcher = matcher

    def run(self) -> None:
        """UserError, Refused, Unreachable."""
        from confluent_kafka import KafkaException

        copy = self._copy
        with Reader(
            self._source.bootstrap,
            self._source.properties,
            committed=copy.search.committed,
            stopped=self._stopped,
        ) as reader:
            self.progress.counts = reader.counts
            topic = reader.topic(copy.search.topic)
            partitions = len(reader.topic(copy.target).leaders)
            ranges = list(self._ranges(reader, topic))
            self.progress.total = sum(
                one.end_offset - one.start_offset for each in ranges for one in each.values()
            )
            producer = Connection(self._source.bootstrap, dict(self._source.properties)).producer(
                dict(SETTINGS)
            )
            try:
                for each in ranges:
                    for batch in reader.batches(topic, each):
                        if isinstance(batch, list) or not self._send(producer, batch, partitions):
                            continue
                        if self._is_over():
                            break
                    if self._is_over():
                        break
                self._finish(producer)
            except KafkaException as error:
                raise translated(error) from None
        self._check()

    def _is_over(self) -> bool:
        limit = self._copy.limit
        return (
            self._stopped.is_set() or self._failure is not None or (limit is not None and self._sent >= limit)
        )

    def _send(self, producer: Any, batch: pa.RecordBatch, partitions: int) -> bool:
        copy = self._copy
        mask = self._matcher.mask(batch)
        for record in raws(batch, np.arange(batch.num_rows) if mask is None else np.flatnonzero(mask)):
            if self._is_over():
                break
            keeps = copy.keeps_partitions and record.partition < partitions
            send_record(
                producer, copy.target,
                NewRecord(
                    record.key, record.value, record.headers, record.partition if keeps else None,
                    record.timestamp_ms if copy.keeps_timestamps and record.timestamp_ms >= 0 else None,
                ),
                self._delivered,
            )  # fmt: skip
            self._sent += 1
            self.progress.matched = self._sent
            if self._sent % POLL_EVERY == 0:
                producer.poll(0)
        return True

    def _finish(self, producer: Any) -> None:
        while producer.flush(FLUSH_STEP_S):
            if self._stopped.is_set() or self._failure is not None:
                producer.purge()
        producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.written += 1
        elif not self._stopped.is_set() and self._failure is None:
            self._failure = error

    def _check(self) -> None:
        if self._failure is not None:
            why = self._failure.str().removeprefix("Broker: ").removeprefix("Local: ")
            raise Refused(
                f"{self.written} records were copied, then {self._copy.target} refused one: {why}",
                code=self._failure.code(),
            )

    def _ranges(self, reader: Reader, topic: Topic) -> Iterator[dict[int, Range]]:
        """Chosen places become ranges, of each partition one at a time."""
        if self._copy.chosen is None:
            yield ranges_of(reader, topic, self._copy.search)
            return
        runs: dict[int, list[Range]] = {}
        for partition, offset in sorted(set(self._copy.chosen)):
            own = runs.setdefault(partition, [])
            if own and own[-1].end_offset == offset:
                own[-1] = Range(own[-1].start_offset, offset + 1)
            else:
                own.append(Range(offset, offset + 1))
        while runs:
            yield {partition: own.pop(0) for partition, own in runs.items()}
            runs = {partition: own for partition, own in runs.items() if own}


def _no_document(data: bytes) -> Any:
    import json

    return json.loads(data)
