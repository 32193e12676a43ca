"""A broker that is cut off from the others says what was true before. A reader does not ask it for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.client.fetching import Range, fetch
from penstock.client.options import client_options
from penstock.client.topics import LATEST, Client
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.wire.messages.fetch import FetchResponse
from penstock.wire.messages.list_offsets import ListOffsetsResponse
from penstock.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from tests.unit.client.hostile_broker import (
    END_OFFSET,
    Answer,
    HostileBroker,
    hostile_broker,
    metadata,
    offsets,
)
from tests.unit.client.test_hostile_brokers import batch_header, fetched

PATIENCE = {"default.api.timeout.ms": 10_000, "request.timeout.ms": 5_000}


@contextmanager
def two_brokers() -> Iterator[tuple[HostileBroker, HostileBroker]]:
    """The first believes that it leads; the second does."""

    def known(leader: int) -> MetadataResponse:
        answer = metadata("127.0.0.1", stale.port)
        answer.brokers.append(MetadataResponseBroker(node_id=2, host="127.0.0.1", port=leads.port))
        answer.topics[0].partitions[0].leader_id = leader
        return answer

    def refused_offsets() -> ListOffsetsResponse:
        answer = offsets()
        answer.topics[0].partitions[0].error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return answer

    def refused_fetch() -> FetchResponse:
        answer = fetched(b"")
        answer.responses[0].partitions[0].error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return answer

    of_stale: dict[ApiKey, Answer] = {
        ApiKey.METADATA: lambda _: known(1),
        ApiKey.LIST_OFFSETS: lambda _: refused_offsets(),
        ApiKey.FETCH: lambda _: refused_fetch(),
    }
    of_leader: dict[ApiKey, Answer] = {
        ApiKey.METADATA: lambda _: known(2),
        ApiKey.FETCH: lambda _: fetched(batch_header(0, END_OFFSET - 1)),
    }
    with hostile_broker(of_stale) as stale, hostile_broker(of_leader) as leads:
        yield stale, leads


def test_offsets_are_asked_of_the_leader_that_another_broker_names() -> None:
    with two_brokers() as (stale, leads):
        # One broker under two names, as where it is advertised under another than it was given by.
        client = Client(client_options(f"localhost:{stale.port}", PATIENCE))
        topic = client.topic("orders")
        assert client.offsets(topic, {0: LATEST}, isolation_level=0) == {0: END_OFFSET}
        client.close()
        assert ApiKey.LIST_OFFSETS in leads.asked


def test_records_are_fetched_from_the_leader_that_another_broker_names() -> None:
    with two_brokers() as (stale, leads):
        client = Client(client_options(stale.bootstrap, PATIENCE))
        topic = client.topic("orders")
        pieces = list(fetch(client, topic, {0: Range(0, END_OFFSET)}, isolation_level=0))
        client.close()
        assert [piece.partition for piece in pieces] == [0]
        assert ApiKey.FETCH in leads.asked
