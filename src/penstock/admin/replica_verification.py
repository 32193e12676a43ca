"""Whether all replicas of partitions hold the same: what each broker has is fetched from that broker and compared.

A round fetches from every replica from the same offset on, and compares batch by batch (last offset and CRC) as far as
all of them go; the next round goes on behind that. Only what is committed is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.client.cluster_client import BrokerNode, ClusterClient
from penstock.client.errors import Refused, Unreachable
from penstock.model.ids import TopicPartition
from penstock.records.batch import InvalidRecord, iterate_headers
from penstock.wire.fetch import DEBUGGING_CONSUMER_ID
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

MAX_BY_NAME_VERSION = 12
_MIN_BYTES = 1


class _Batch(NamedTuple):
    last_offset: int
    crc: int


class _Fetched(NamedTuple):
    high_watermark: int
    batches: list[_Batch]


class Difference(NamedTuple):
    """Two replicas that do not hold the same."""

    partition: TopicPartition
    first_replica: int
    other_replica: int
    first_offset: int
    other_offset: int
    first_crc: int
    other_crc: int

    @property
    def is_of_offsets(self) -> bool:
        """True: one has a batch that the other has not. False: the same batch has another content."""
        return self.first_offset != self.other_offset


class Round(NamedTuple):
    differences: list[Difference]
    missing: dict[TopicPartition, list[int]]
    """Replicas that did not answer, or not for this partition."""
    max_lag: int
    """How many committed records of one partition are not compared yet, in the partition that has the most of them."""
    partition: TopicPartition
    offset: int
    """How far that partition is compared."""


class ReplicaVerification:
    """`offsets` says where each partition begins; `replicas` which brokers have it."""

    def __init__(
        self,
        client: ClusterClient,
        replicas: Mapping[TopicPartition, Iterable[int]],
        offsets: Mapping[TopicPartition, int],
        *,
        fetch_bytes: int = 1024 * 1024,
        max_wait_ms: int = 1000,
    ) -> None:
        self._client = client
        self._replicas = {partition: list(brokers) for partition, brokers in replicas.items()}
        self._offsets = dict(offsets)
        self._fetch_bytes = fetch_bytes
        self._max_wait_ms = max_wait_ms

    @property
    def compared(self) -> dict[TopicPartition, int]:
        """Up to which offset each partition is compared."""
        return dict(self._offsets)

    def round(self) -> Round:
        """Compares what comes next. A broker that does not answer now is asked again in the next round."""
        fetched = self._fetch_all()
        differences: list[Difference] = []
        missing: dict[TopicPartition, list[int]] = {}
        worst = (-1, next(iter(self._replicas)))
        for partition, brokers in self._replicas.items():
            found = {
                broker: fetched[broker, partition] for broker in brokers if (broker, partition) in fetched
            }
            absent = [broker for broker in brokers if broker not in found]
            if absent:
                missing[partition] = absent
            else:
                differences += self._compare(partition, found)
            high_watermark = max((one.high_watermark for one in found.values()), default=-1)
            lag = max(0, high_watermark - self._offsets[partition])
            if lag > worst[0]:
                worst = (lag, partition)
        return Round(differences, missing, *worst, self._offsets[worst[1]])

    def _compare(self, partition: TopicPartition, found: dict[int, _Fetched]) -> list[Difference]:
        """Goes on behind the last batch that all of them have, though it differs: the next ones are looked at, too."""
        differences = []
        (first, reference), *others = found.items()
        for number, batch in enumerate(reference.batches):
            if any(number >= len(other.batches) for _, other in others):
                break
            for replica, other in others:
                theirs = other.batches[number]
                if theirs != batch:
                    differences.append(
                        Difference(
                            partition,
                            first,
                            replica,
                            batch.last_offset,
                            theirs.last_offset,
                            batch.crc,
                            theirs.crc,
                        )
                    )
            self._offsets[partition] = batch.last_offset + 1
            if any(one.is_of_offsets for one in differences):
                break  # from here on they would be compared with what stands beside them
        return differences

    def _fetch_all(self) -> dict[tuple[int, TopicPartition], _Fetched]:
        """Of those brokers that answer. Only the first is waited for: the others have it by then, or in the next round."""
        nodes = {node.node_id: node for node in self._client.nodes()}
        fetched: dict[tuple[int, TopicPartition], _Fetched] = {}
        wait_ms = self._max_wait_ms
        for broker in sorted({broker for brokers in self._replicas.values() for broker in brokers}):
            held = [partition for partition, brokers in self._replicas.items() if broker in brokers]
            if broker in nodes:
                try:
                    for partition, one in self._fetch(nodes[broker], held, wait_ms).items():
                        fetched[broker, partition] = one
                    wait_ms = 0
                except (Unreachable, Refused):
                    continue
        return fetched

    def _fetch(
        self, node: BrokerNode, partitions: list[TopicPartition], wait_ms: int
    ) -> dict[TopicPartition, _Fetched]:
        topics: dict[str, list[FetchPartition]] = {}
        for one in partitions:
            wanted = FetchPartition(
                partition=one.partition,
                fetch_offset=self._offsets[one],
                partition_max_bytes=self._fetch_bytes,
            )
            topics.setdefault(one.topic, []).append(wanted)
        request = FetchRequest(
            replica_id=DEBUGGING_CONSUMER_ID,
            max_wait_ms=wait_ms,
            min_bytes=_MIN_BYTES,
            topics=[FetchTopic(topic=name, partitions=wanted) for name, wanted in topics.items()],
        )
        answer = self._client.ask_node(node, request, FetchResponse, max_version=MAX_BY_NAME_VERSION)
        return {
            TopicPartition(topic.topic, one.partition_index): _Fetched(
                one.high_watermark, _batches(one.records)
            )
            for topic in answer.responses
            for one in topic.partitions
            if not one.error_code
        }


def _batches(records: bytes | None) -> list[_Batch]:
    batches = []
    try:
        for _, header in iterate_headers(memoryview(records or b"")):
            batches.append(_Batch(header.last_offset, header.crc))
    except InvalidRecord:
        pass  # a damaged batch ends what can be compared; it stays behind, as a lag
    return batches
