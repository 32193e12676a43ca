"""Consumers: they follow the leaders and remember at which offset they saw what."""

from asyncio import sleep
from collections.abc import Iterator
from typing import Final

from penstock.model.errors import ErrorCode
from penstock.records.batch import BatchHeader, iterate_headers
from penstock.records.marker import marker_of
from penstock.records.walk import iterate_records
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from simulation.seeds.client import Client
from simulation.seeds.history import History, Place
from simulation.seeds.producers import RETRIABLE
from simulation.seeds.wire import Unanswered

FETCH_VERSION: Final = 12
MAX_WAIT_MS: Final = 500
MAX_BYTES: Final = 64 * 1024
READ_COMMITTED: Final = 1


class Consumer:
    """Reads partitions from their beginning."""

    def __init__(self, client: Client, history: History, *, committed: bool) -> None:
        self._client = client
        self._history = history
        self._committed = committed
        self.positions: dict[Place, int] = {}

    async def run(self, place: Place) -> None:
        """Without an end: whoever wants one cancels it."""
        while True:
            data = await self.fetch(place, self.positions.get(place, 0))
            if data is None:
                await self._client.pause()
                continue
            position, records = take(data, self.positions.get(place, 0), committed=self._committed)
            for offset, value in records:
                self._history.was_seen(place, offset, value, committed=self._committed)
            self.positions[place] = position
            if not records:
                await sleep(0.05)

    async def fetch(
        self, place: Place, offset: int, *, max_wait_ms: int = MAX_WAIT_MS
    ) -> PartitionData | None:
        """What the leader has from there on; None when it must be asked again."""
        address, epoch = await self._client.leader(place)
        request = fetch_request(place, offset, epoch, committed=self._committed, max_wait_ms=max_wait_ms)
        try:
            answer = await self._client.ask(address, request, FetchResponse, FETCH_VERSION)
        except Unanswered:
            self._client.forget_leader(place)
            return None
        if not answer.responses:
            return None
        data = answer.responses[0].partitions[0]
        if data.error_code == ErrorCode.NONE:
            return data
        self._client.forget_leader(place)
        if data.error_code not in RETRIABLE:
            self._history.violated(
                f"{place[0]}-{place[1]}: {self._client.name} read up to offset {offset} and was then told "
                f"{ErrorCode(data.error_code).name}"
            )
            await sleep(1.0)
        return None


def fetch_request(
    place: Place, offset: int, epoch: int, *, committed: bool, max_wait_ms: int = MAX_WAIT_MS
) -> FetchRequest:
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=MAX_BYTES,
        isolation_level=READ_COMMITTED if committed else 0,
        topics=[
            FetchTopic(
                topic=place[0],
                partitions=[
                    FetchPartition(
                        partition=place[1],
                        current_leader_epoch=epoch,
                        fetch_offset=offset,
                        partition_max_bytes=MAX_BYTES,
                    )
                ],
            )
        ],
    )


def take(data: PartitionData, position: int, *, committed: bool) -> tuple[int, list[tuple[int, bytes]]]:
    """The position after an answer and its records from the position on; when `committed`, without those of aborted
    transactions, which the consumer itself has to leave out.
    """
    aborted = sorted(data.aborted_transactions or (), key=lambda one: one.first_offset)
    open_aborted: set[int] = set()
    records = []
    for batch, header in _batches(bytes(data.records or b"")):
        while aborted and aborted[0].first_offset <= header.last_offset:
            open_aborted.add(aborted.pop(0).producer_id)
        position = max(position, header.last_offset + 1)
        if header.is_control:
            marker = marker_of(batch, header)
            if marker is not None and not marker.committed:
                open_aborted.discard(header.producer_id)
            continue
        if committed and header.is_transactional and header.producer_id in open_aborted:
            continue
        records += [(record.offset, record.value or b"") for record in iterate_records(batch, header)]
    return position, records


def _batches(data: bytes) -> Iterator[tuple[bytes, BatchHeader]]:
    for at, header in iterate_headers(data):
        yield data[at : at + header.size_bytes], header


def batches_of(data: PartitionData) -> list[tuple[int, int]]:
    """First and last offset of each whole batch in an answer."""
    return [
        (header.base_offset, header.last_offset) for _, header in iterate_headers(bytes(data.records or b""))
    ]
