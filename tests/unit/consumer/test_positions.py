"""Which records came before, and which only have the offset of one that came before."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.consumer.positions import Positions

PLACE = ("orders", 0)


class Client:
    """Reads a partition that ends at `end`; None: nobody answers."""

    def __init__(self, end: int | None) -> None:
        self.end = end
        self.sought: list[int] = []
        self.can_seek = True

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        if self.end is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return 0, self.end

    def seek(self, partition: TopicPartition) -> None:
        if not self.can_seek:
            raise KafkaException(KafkaError(KafkaError._STATE))
        self.sought.append(partition.offset)


class Message:
    def __init__(self, offset: int, epoch: int | None) -> None:
        self.offset = lambda: offset
        self.leader_epoch = lambda: epoch


def taken(client: Client, *messages: tuple[int, int | None]) -> list[int]:
    positions = Positions(client)  # type: ignore[arg-type]
    return [offset for offset, epoch in messages if positions.advance(PLACE, _message(offset, epoch))]


def _message(offset: int, epoch: int | None) -> Any:
    return Message(offset, epoch)


@pytest.mark.parametrize("end", [3, 10, None])
@pytest.mark.parametrize("epoch", [4, None])
def test_a_record_that_came_before_is_passed_over_and_the_partition_goes_on(
    end: int | None, epoch: int | None
) -> None:
    client = Client(end)
    assert taken(client, (1, epoch), (2, epoch), (0, epoch), (3, epoch)) == [1, 2, 3]
    assert client.sought == [3]


def test_a_record_of_an_earlier_leader_came_before_too() -> None:
    assert taken(Client(10), (1, 4), (2, 5), (1, 4), (3, 5)) == [1, 2, 3]


def test_records_of_a_log_that_was_cut_are_others() -> None:
    client = Client(10)
    assert taken(client, (1, 4), (2, 4), (1, 5), (2, 5)) == [1, 2, 1, 2]
    assert not client.sought


def test_records_of_a_topic_that_was_made_again_are_others() -> None:
    assert taken(Client(2), (1, 4), (2, 4), (0, 0), (1, 0)) == [1, 2, 0, 1]


def test_where_the_client_cannot_go_on_at_once_it_reads_up_to_there() -> None:
    client = Client(10)
    client.can_seek = False
    assert taken(client, (0, 4), (1, 4), (2, 4), (0, 4), (1, 4), (2, 4), (3, 4)) == [0, 1, 2, 3]


def test_a_partition_that_comes_back_begins_anew() -> None:
    positions = Positions(Client(10))  # type: ignore[arg-type]
    assert positions.advance(PLACE, _message(7, 4))
    positions.forget(PLACE)
    assert positions.advance(PLACE, _message(3, 4))
