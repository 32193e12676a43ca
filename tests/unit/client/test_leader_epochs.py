"""Readers tell a leader which epoch of it they know, and look again when that is not the leader's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.client.connection import BrokerConnection
from penstock.client.fetching import Range, fetch
from penstock.client.options import client_options
from penstock.client.topics import LATEST, Client
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.wire.messages.fetch import FetchRequest, FetchResponse
from penstock.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from penstock.wire.messages.metadata import MetadataResponse
from penstock.wire.schema import Message
from tests.unit.client.hostile_broker import END_OFFSET, HostileBroker, hostile_broker, metadata, offsets
from tests.unit.client.test_hostile_brokers import batch_header, fetched

OLD_EPOCH, NEW_EPOCH = 7, 8


class Sent:
    """The epochs that were sent; the broker has the newer one, and tells of it once it has refused the older."""

    def __init__(self) -> None:
        self.epochs: list[int] = []

    def note(self, request: Message) -> None:
        if isinstance(request, (FetchRequest, ListOffsetsRequest)):
            self.epochs.append(request.topics[0].partitions[0].current_leader_epoch)

    def epoch(self) -> int:
        return NEW_EPOCH if self.epochs else OLD_EPOCH

    def code(self) -> ErrorCode:
        return ErrorCode.NONE if self.epochs[-1] == NEW_EPOCH else ErrorCode.FENCED_LEADER_EPOCH


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    sent = Sent()
    send = BrokerConnection.send

    def noted(connection: BrokerConnection, request: Message, version: int) -> None:
        sent.note(request)
        send(connection, request, version)

    monkeypatch.setattr(BrokerConnection, "send", noted)
    return sent


@contextmanager
def elected_anew(sent: Sent) -> Iterator[HostileBroker]:
    def described() -> MetadataResponse:
        answer = metadata("127.0.0.1", broker.port)
        answer.topics[0].partitions[0].leader_epoch = sent.epoch()
        return answer

    def listed() -> ListOffsetsResponse:
        answer = offsets()
        answer.topics[0].partitions[0].error_code = sent.code()
        return answer

    def read() -> FetchResponse:
        answer = fetched(batch_header(0, END_OFFSET - 1) if sent.code() == ErrorCode.NONE else b"")
        answer.responses[0].partitions[0].error_code = sent.code()
        return answer

    answers = {
        ApiKey.METADATA: lambda _: described(),
        ApiKey.LIST_OFFSETS: lambda _: listed(),
        ApiKey.FETCH: lambda _: read(),
    }
    with hostile_broker(answers) as broker:
        yield broker


def test_offsets_are_asked_with_the_epoch_and_again_with_the_new_one(sent: Sent) -> None:
    with elected_anew(sent) as broker:
        client = Client(client_options(broker.bootstrap))
        found = client.offsets(client.topic("orders"), {0: LATEST}, isolation_level=0)
        client.close()
    assert found == {0: END_OFFSET}
    assert sent.epochs == [OLD_EPOCH, NEW_EPOCH]


def test_records_are_fetched_with_the_epoch_and_again_with_the_new_one(sent: Sent) -> None:
    with elected_anew(sent) as broker:
        client = Client(client_options(broker.bootstrap))
        pieces = list(fetch(client, client.topic("orders"), {0: Range(0, END_OFFSET)}, isolation_level=0))
        client.close()
    assert [piece.partition for piece in pieces] == [0]
    assert sent.epochs == [OLD_EPOCH, NEW_EPOCH]
