"""What moves in a takeover, and what is refused before anything does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from penstock.admin import takeover
from penstock.admin.health import PartitionState
from penstock.admin.moves.plans import UnknownBroker
from penstock.admin.takeover import Pair, beside, check_pairs, instead, parse_pair
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import UserError
from penstock.model.ids import TopicPartition

RACKS = {1: None, 2: None, 4: None}


def state(index: int, *replicas: int) -> PartitionState:
    return PartitionState(TopicPartition("orders", index), replicas[0], list(replicas), list(replicas))


def test_copies_come_last_and_only_where_the_old_broker_has_one() -> None:
    states = [state(0, 1, 2), state(1, 2, 1), state(2, 2), state(3, 1, 4)]
    assert beside(states, RACKS, Pair(1, 4)) == {
        TopicPartition("orders", 0): [1, 2, 4],
        TopicPartition("orders", 1): [2, 1, 4],
    }


def test_the_new_broker_gets_the_old_ones_place_in_the_order() -> None:
    states = [state(0, 1, 2, 4), state(1, 2, 1, 4), state(2, 2, 1), state(3, 4, 1)]
    assert instead(states, Pair(1, 4)) == {
        TopicPartition("orders", 0): [4, 2],
        TopicPartition("orders", 1): [2, 4],
        TopicPartition("orders", 3): [4],
    }


def test_there_and_back_again_is_where_it_began() -> None:
    there = beside([state(0, 1, 2)], RACKS, Pair(1, 4))
    (replicas,) = instead([state(0, *there[TopicPartition("orders", 0)])], Pair(1, 4)).values()
    back = beside([state(0, *replicas)], RACKS, Pair(4, 1))
    (replicas,) = instead([state(0, *back[TopicPartition("orders", 0)])], Pair(4, 1)).values()
    assert replicas == [1, 2]


def test_a_broker_that_nobody_knows() -> None:
    with pytest.raises(UnknownBroker):
        beside([state(0, 1, 2)], RACKS, Pair(7, 4))


@pytest.mark.parametrize("text", ["1", "1:", ":4", "a:b", "1:1", "1:4:5", "-1:4"])
def test_a_pair_that_is_none(text: str) -> None:
    with pytest.raises(UserError, match="is no pair of brokers: 1:4 gives to broker 4 what broker 1 keeps"):
        parse_pair(text)


def test_a_broker_has_one_part_and_the_new_one_runs() -> None:
    check_pairs([Pair(1, 4), Pair(2, 5)], [1, 2, 4, 5])
    check_pairs([Pair(7, 4)], [4])  # the old one may be dead
    with pytest.raises(UserError, match="broker 4 is named twice"):
        check_pairs([Pair(1, 4), Pair(4, 5)], [1, 4, 5])
    with pytest.raises(UserError, match="broker 5 is not in the cluster: start it first"):
        check_pairs([Pair(1, 5)], [1, 4])


def test_brokers_that_refuse_at_once_are_asked_a_few_times_a_second_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, rounds = 0.0, 0

    class Refusing:
        def __init__(self, client: object, replicas: object, starts: dict[TopicPartition, int]) -> None:
            self.compared = starts

        def round(self) -> SimpleNamespace:
            nonlocal rounds, now_s
            rounds += 1
            now_s += 0.001
            return SimpleNamespace(differences=[])

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    place = TopicPartition("orders", 0)
    monkeypatch.setattr(takeover, "ReplicaVerification", Refusing)
    monkeypatch.setattr(
        takeover, "spans", lambda client, partitions: {place: SimpleNamespace(start_offset=0, end_offset=9)}
    )
    monkeypatch.setattr(takeover, "time", SimpleNamespace(monotonic=lambda: now_s, sleep=sleep))
    with pytest.raises(UserError, match="could not be compared"):
        takeover._compare(cast(ClusterClient, None), Pair(1, 2), [place])
    assert rounds < 10 * takeover.STALL_TIMEOUT_S
