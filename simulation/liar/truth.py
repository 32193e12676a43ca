"""The broker behind the liar, asked directly: what is in its topics, and what its groups have committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from penstock.client.connection import BrokerConnection
from penstock.client.topics import EARLIEST
from penstock.model.endpoints import Address
from penstock.model.errors import ErrorCode
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.wire.messages.fetch import FetchResponse
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from simulation.liar.stage import HOST
from simulation.seeds.consumers import fetch_request, take

TIMEOUT_S: Final = 30.0
TIMEOUT_MS: Final = 30_000
_FETCH_VERSION: Final = 12
_OFFSET_FETCH_VERSION: Final = 7

Row = tuple[int, int, bytes]
"""Partition, offset, value."""


class NotTrue(Exception):
    """The broker itself refuses: nothing can be judged then."""


class Truth:
    def __init__(self, broker_port: int) -> None:
        self._connection = BrokerConnection(
            Address(HOST, broker_port), client_id="truth", timeout_s=TIMEOUT_S
        )

    def close(self) -> None:
        self._connection.close()

    def create(self, topic: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        wanted = CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()],
        )
        answer = self._connection.ask(
            CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS), CreateTopicsResponse
        )
        _check(answer.topics[0].error_code, topic)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        """Moves the start of the log."""
        asked = DeleteRecordsTopic(
            name=topic,
            partitions=[DeleteRecordsPartition(partition_index=partition, offset=before_offset)],
        )
        answer = self._connection.ask(
            DeleteRecordsRequest(topics=[asked], timeout_ms=TIMEOUT_MS), DeleteRecordsResponse
        )
        _check(answer.topics[0].partitions[0].error_code, topic)

    def rows(self, topic: str, partitions: Iterable[int], *, committed: bool = True) -> list[Row]:
        """Everything that a reader is to see now, in order within each partition."""
        return [
            (partition, offset, value)
            for partition in partitions
            for offset, value in self._partition(topic, partition, committed=committed)
        ]

    def values(self, topic: str, partitions: int) -> list[bytes]:
        return [value for _, _, value in self.rows(topic, range(partitions))]

    def committed(self, group: str, topic: str, partitions: int) -> dict[int, int]:
        """Partition → offset; without those that have none."""
        asked = OffsetFetchRequestTopic(name=topic, partition_indexes=list(range(partitions)))
        answer = self._connection.ask(
            OffsetFetchRequest(group_id=group, topics=[asked]),
            OffsetFetchResponse,
            version=_OFFSET_FETCH_VERSION,
        )
        _check(answer.error_code, group)
        return {
            one.partition_index: one.committed_offset
            for told in answer.topics
            for one in told.partitions
            if one.committed_offset >= 0
        }

    def delete_group(self, group: str) -> None:
        """As the cluster does with one that nobody has used for long."""
        answer = self._connection.ask(DeleteGroupsRequest(groups_names=[group]), DeleteGroupsResponse)
        if answer.results[0].error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            _check(answer.results[0].error_code, group)

    def _first_offset(self, topic: str, partition: int) -> int:
        asked = ListOffsetsTopic(
            name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=EARLIEST)]
        )
        answer = self._connection.ask(ListOffsetsRequest(replica_id=-1, topics=[asked]), ListOffsetsResponse)
        found = answer.topics[0].partitions[0]
        _check(found.error_code, topic)
        return found.offset

    def _partition(self, topic: str, partition: int, *, committed: bool) -> list[tuple[int, bytes]]:
        position = self._first_offset(topic, partition)
        found: list[tuple[int, bytes]] = []
        while True:
            request = fetch_request((topic, partition), position, -1, committed=committed, max_wait_ms=0)
            answer = self._connection.ask(request, FetchResponse, version=_FETCH_VERSION)
            data = answer.responses[0].partitions[0]
            _check(data.error_code, topic)
            before = position
            position, records = take(data, position, committed=committed)
            found += [(offset, value) for offset, value in records if offset >= before]
            end = data.last_stable_offset if committed else data.high_watermark
            if position >= end or position == before:
                return found


def _check(error_code: int, what: str) -> None:
    if error_code:
        raise NotTrue(f"{what}: {ErrorCode(error_code).name}")
