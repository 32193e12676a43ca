"""Records whose time is 0, the first moment of 1970.

librdkafka takes a timestamp of 0 for none, and writes the present time. Event times of 0 are real to a plan: clocks that were not
set, and counters that are used as times. So those few records are written here, one request for each: slow, and right. In a
transaction they cannot be: it belongs to librdkafka's producer. There they get the time 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.client.error_names import error_name, refused
from penstock.client.leaders import NO_LEADER
from penstock.client.options import client_options
from penstock.client.patience import Retriable
from penstock.client.properties import SECURITY_NAMES
from penstock.client.topics import Client, Topic
from penstock.model.errors import RETRIABLE
from penstock.records.build import build_batch
from penstock.streams.kernel.partitioner import partition_of
from penstock.streams.kernel.records import OutputRecord
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

BY_NAME: Final = 12  # the last version that names topics by their names
ALL_IN_SYNC: Final = -1
TIMEOUT_MS: Final = 30_000


class FirstMomentWriter:
    """`send` returns when all in-sync replicas have the record. Refused, ReadFailed and Unreachable come out of it."""

    def __init__(self, bootstrap: str, properties: Mapping[str, Any]) -> None:
        given = {name: str(value) for name, value in properties.items() if name in SECURITY_NAMES}
        self._client = Client(client_options(bootstrap, {**given, "client.id": "penstock-streams"}))

    def send(self, record: OutputRecord) -> None:
        batch = bytes(build_batch([(record.key, record.value, record.headers, record.timestamp)]))
        self._client.patiently(lambda: self._attempt(record, batch))

    def close(self) -> None:
        self._client.close()

    def _attempt(self, record: OutputRecord, batch: bytes) -> None:
        topic = self._client.topic(record.topic)
        partition = _partition(record, topic)
        node_id = topic.leaders.get(partition, NO_LEADER).node_id
        code, said = self._asked(node_id, record.topic, partition, batch)
        if code in RETRIABLE:
            raise Retriable(error_name(code))
        if code:
            raise refused(code, said)

    def _asked(self, node_id: int, topic: str, partition: int, batch: bytes) -> tuple[int, str | None]:
        data = TopicProduceData(
            name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)]
        )
        request = ProduceRequest(acks=ALL_IN_SYNC, timeout_ms=TIMEOUT_MS, topic_data=[data])
        answer = self._client.ask(node_id, request, ProduceResponse, highest=BY_NAME)
        found = answer.responses[0].partition_responses[0]
        return found.error_code, found.error_message


def _partition(record: OutputRecord, topic: Topic) -> int:
    if record.partition is not None:
        return record.partition
    return 0 if record.key is None else partition_of(record.key, len(topic.leaders))
