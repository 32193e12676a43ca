"""A transaction is not committed without an output that the client refused at once: it never became part of it."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.consumer import Output
from penstock.consumer.failures import OutputNotWritten
from penstock.consumer.handling import Unit
from penstock.consumer.writing import Aborted, TransactionalWriter
from tests.unit.consumer.made_records import record


class RefusingProducer:
    """Refuses every message at once, and would commit all the same."""

    def __init__(self, failure: int) -> None:
        self._failure = failure
        self.ended: list[str] = []

    def begin_transaction(self) -> None:
        pass

    def produce(self, topic: str, **_: Any) -> None:
        raise KafkaException(KafkaError(self._failure))

    def flush(self, timeout_s: float) -> int:
        return 0

    def send_offsets_to_transaction(self, *_: Any) -> None:
        pass

    def commit_transaction(self, timeout_s: float) -> None:
        self.ended.append("committed")

    def abort_transaction(self, timeout_s: float) -> None:
        self.ended.append("aborted")


def writer_on(producer: RefusingProducer) -> TransactionalWriter:
    writer = TransactionalWriter({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, "billing-1")
    writer._producer = producer  # type: ignore[assignment]
    return writer


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (KafkaError.TOPIC_EXCEPTION, OutputNotWritten),
        (KafkaError._UNKNOWN_TOPIC, OutputNotWritten),
        (KafkaError._STATE, Aborted),
    ],
)
def test_nothing_is_committed_without_an_output(failure: int, raised: type[Exception]) -> None:
    producer = RefusingProducer(failure)
    units = [Unit([record(offset=0)], [Output("out", b"1")])]
    with pytest.raises(raised):
        writer_on(producer).write(units, {("orders", 0): 1}, object())
    assert producer.ended == ["aborted"]


def test_a_refused_output_is_found_before_the_commit() -> None:
    producer = RefusingProducer(KafkaError.MSG_SIZE_TOO_LARGE)
    writer = writer_on(producer)
    unit = Unit([record(offset=0)], [Output("out", b"1")])
    for _ in range(2):  # in company, then alone
        with pytest.raises(Aborted):
            writer.write([unit], {("orders", 0): 1}, object())
    assert producer.ended == ["aborted", "aborted"]
    assert unit.refusal is not None
