"""Where replicas go when a broker leaves or is replaced, and when there shall be more or fewer copies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.admin.health import PartitionState
from penstock.admin.moves.plans import with_broker_replaced, with_factor, without_broker
from penstock.client.errors import UserError
from penstock.model.ids import TopicPartition

NO_RACKS = dict.fromkeys(range(1, 5))


def state(topic: str, index: int, *replicas: int, isr: list[int] | None = None) -> PartitionState:
    in_sync = list(replicas) if isr is None else isr
    return PartitionState(TopicPartition(topic, index), in_sync[0], list(replicas), in_sync)


def test_a_drained_broker_gives_its_replicas_to_those_that_have_fewest() -> None:
    states = [state("a", 0, 1, 2), state("a", 1, 2, 3), state("a", 2, 3, 1)]
    plan = without_broker(states, NO_RACKS, 1)
    assert plan == {TopicPartition("a", 0): [4, 2], TopicPartition("a", 2): [3, 4]}


def test_the_others_of_a_partition_keep_their_places() -> None:
    plan = without_broker([state("a", 0, 3, 1, 2)], NO_RACKS, 1)
    assert plan == {TopicPartition("a", 0): [3, 4, 2]}


def test_a_rack_that_the_partition_does_not_use_comes_first() -> None:
    racks = {1: "x", 2: "y", 3: "y", 4: "x"}
    states = [state("a", 0, 1, 2), *(state("b", index, 4) for index in range(5))]
    assert without_broker(states, racks, 1) == {TopicPartition("a", 0): [4, 2]}


def test_a_broker_cannot_be_drained_where_too_few_others_are_left() -> None:
    with pytest.raises(
        UserError, match="a-0 has 3 replicas, and without broker 3 only 2 brokers would be left"
    ):
        without_broker([state("a", 0, 1, 2, 3)], dict.fromkeys([1, 2, 3]), 3)


def test_the_substitute_takes_the_place_of_a_dead_broker() -> None:
    racks = dict.fromkeys([1, 2, 4])
    states = [state("a", 0, 3, 1, isr=[1]), state("a", 1, 1, 2)]
    assert with_broker_replaced(states, racks, 3, 4) == {TopicPartition("a", 0): [4, 1]}


def test_a_third_broker_helps_where_the_substitute_has_the_partition_already() -> None:
    assert with_broker_replaced([state("a", 0, 3, 4)], NO_RACKS, 3, 4) == {TopicPartition("a", 0): [1, 4]}
    with pytest.raises(UserError, match="there is no third broker"):
        with_broker_replaced([state("a", 0, 3, 4)], dict.fromkeys([3, 4]), 3, 4)


def test_a_substitute_must_be_there() -> None:
    with pytest.raises(UserError, match="broker 9 is not in the cluster: start it first"):
        with_broker_replaced([state("a", 0, 1)], NO_RACKS, 1, 9)


def test_a_broker_does_not_take_its_own_place() -> None:
    with pytest.raises(UserError, match="broker 2 cannot take its own place"):
        with_broker_replaced([state("a", 0, 2, 1)], NO_RACKS, 2, 2)


def test_a_broker_that_nobody_knows_is_an_error() -> None:
    states = [state("a", 0, 1, 8, isr=[1])]
    for broker in (9, 99):
        with pytest.raises(UserError, match=f"there is no broker {broker}"):
            without_broker(states, NO_RACKS, broker)
        with pytest.raises(UserError, match=f"there is no broker {broker}"):
            with_broker_replaced(states, NO_RACKS, broker, 2)
    assert without_broker(states, NO_RACKS, 4) == {}
    assert without_broker(states, NO_RACKS, 8) == {TopicPartition("a", 0): [1, 2]}


def test_more_replicas_are_added_at_the_end() -> None:
    states = [state("a", 0, 1), state("a", 1, 2), state("b", 0, 3)]
    plan = with_factor(states, NO_RACKS, "a", 2)
    assert plan == {TopicPartition("a", 0): [1, 4], TopicPartition("a", 1): [2, 1]}


def test_fewer_replicas_leave_out_the_dead_and_those_behind_first() -> None:
    states = [
        state("a", 0, 9, 1, 2, isr=[1, 2]),
        state("a", 1, 1, 2, 3, isr=[1, 3]),
        state("a", 2, 1, 2, 3),
    ]
    plan = with_factor(states, NO_RACKS, "a", 2)
    assert list(plan.values()) == [[1, 2], [1, 3], [1, 2]]


def test_there_cannot_be_more_replicas_than_brokers() -> None:
    with pytest.raises(UserError, match="5 replicas need 5 brokers, and there are 4"):
        with_factor([state("a", 0, 1)], NO_RACKS, "a", 5)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[PartitionState], dict[int, str | None], int]:
    brokers = draw(st.integers(3, 8))
    racks = {broker: draw(st.sampled_from([None, "x", "y"])) for broker in range(1, brokers + 1)}
    factor = draw(st.integers(1, brokers - 1))
    states = [
        state("t", index, *draw(st.permutations(list(racks)))[:factor])
        for index in range(draw(st.integers(0, 20)))
    ]
    return states, racks, draw(st.sampled_from(sorted(racks)))


@given(clusters())
def test_a_drained_broker_is_empty_and_every_partition_has_as_many_copies_as_before(
    cluster: tuple[list[PartitionState], dict[int, str | None], int],
) -> None:
    states, racks, broker = cluster
    plan = without_broker(states, racks, broker)
    after = [
        one._replace(replicas=plan.get(one.partition, one.replicas), isr=[], leader=-1) for one in states
    ]
    for before, one in zip(states, after, strict=True):
        assert broker not in one.replicas
        assert len(set(one.replicas)) == len(before.replicas)
        assert len(set(one.replicas) & set(before.replicas)) >= len(before.replicas) - 1
    assert without_broker(after, racks, broker) == {}
