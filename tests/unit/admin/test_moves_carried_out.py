"""Plans carried out against a cluster whose brokers die, whose topics go, and whose throttles were left behind."""

from collections.abc import Callable

import pytest

from penstock.admin.health import PartitionState
from penstock.admin.moves.following import Plan, carry_out
from penstock.admin.moves.model import Assignment
from penstock.admin.moves.plans import Racks, with_broker_replaced, with_factor, without_broker
from penstock.admin.moves.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from penstock.admin.moves.watching import RETURN_TIMEOUT_S
from penstock.client.clients import Connection
from penstock.client.errors import UserError
from penstock.metadata.image import NO_LEADER, PartitionRegistration
from tests.unit.admin.answering_cluster import BROKER, TOPIC, AnsweringCluster

AT_REST = PartitionRegistration((1, 2), (1, 2), 1)
TO_FOUR = PartitionRegistration((1, 4, 2), (1, 2), 1, adding=(4,), removing=(2,))
LEADERLESS = PartitionRegistration((2,), (2,), NO_LEADER)

Make = Callable[..., AnsweringCluster]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Make:
    def make(*partitions: PartitionRegistration) -> AnsweringCluster:
        cluster = AnsweringCluster(*partitions)
        cluster.install(monkeypatch)
        return cluster

    return make


def run(plan: Plan, *, throttle: int | None = None, at_once: int = 50) -> int:
    return carry_out(
        Connection("host-1:1"), plan, throttle=throttle, at_once=at_once, show=lambda progress: None
    )


def drain(broker: int) -> Plan:
    return lambda states, racks: without_broker(states, racks, broker)


def replace(broker: int, substitute: int) -> Plan:
    return lambda states, racks: with_broker_replaced(states, racks, broker, substitute)


def test_a_move_to_a_broker_that_died_is_sent_to_its_substitute(made: Make) -> None:
    cluster = made(TO_FOUR)
    cluster.lose(4)
    assert run(replace(4, 3)) == 1
    assert (cluster.replicas(), cluster.moving()) == ([(1, 3)], [])


def test_a_drain_whose_destination_dies_takes_another(made: Make) -> None:
    cluster = made(*[AT_REST] * 2)
    cluster.copies = False

    def die_after_the_start() -> None:
        if cluster.moving() and 4 not in cluster.dead:
            cluster.lose(4)
            cluster.copies = True

    cluster.while_asleep = die_after_the_start
    assert run(drain(2)) == 2
    assert (cluster.replicas(), cluster.moving()) == ([(1, 3), (1, 3)], [])


def test_a_broker_that_only_restarts_is_waited_for(made: Make) -> None:
    cluster = made(TO_FOUR)
    returning = cluster.image.brokers[4]
    cluster.lose(4)

    def return_in_time() -> None:
        if cluster.now_s > RETURN_TIMEOUT_S / 2:
            cluster.dead.clear()
            cluster.image.add_broker(returning)

    cluster.while_asleep = return_in_time
    assert run(drain(2)) == 0
    assert cluster.replicas() == [(1, 4)]


def test_fewer_copies_end_a_move_that_cannot_get_on(made: Make) -> None:
    cluster = made(PartitionRegistration((1, 4), (1,), 1, adding=(4,)))
    cluster.lose(4)
    assert run(lambda states, racks: with_factor(states, racks, "orders", 1)) == 1
    assert (cluster.replicas(), cluster.moving()) == ([(1,)], [])


def test_a_stuck_move_of_no_concern_holds_nothing_up(made: Make) -> None:
    cluster = made(PartitionRegistration((1, 4), (1,), 1, adding=(4,)), PartitionRegistration((2,), (2,), 2))
    cluster.lose(4)
    assert run(drain(2)) == 1
    assert 2 not in cluster.replicas()[1]
    assert cluster.moving() == [0]


def test_partitions_without_a_leader_are_left_out_and_named(made: Make) -> None:
    cluster = made(LEADERLESS, AT_REST)
    cluster.lose(2)
    with pytest.raises(UserError, match=r"not moved: orders-0; start broker 2, or let kafka-leader-election"):
        run(drain(2))
    assert cluster.replicas() == [(2,), (1, 4)]
    assert cluster.moving() == []


def test_a_dead_broker_that_keeps_nothing_after_the_run_is_no_error_of_it(made: Make) -> None:
    cluster = made(AT_REST, TO_FOUR)
    cluster.lose(2)
    assert run(replace(2, 3)) == 1
    assert cluster.replicas() == [(1, 3), (1, 4)]
    with pytest.raises(UserError, match="there is no broker 2"):
        run(replace(2, 3))


THROTTLED = {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:4"}
RATES = {LEADER_RATE: "5000", FOLLOWER_RATE: "5000"}


def test_a_throttle_is_set_for_the_moves_and_gone_afterwards(made: Make) -> None:
    cluster = made(AT_REST)
    seen: list[dict[tuple[int, str], dict[str, str]]] = []
    cluster.before_alter = lambda: seen.append({key: dict(value) for key, value in cluster.settings.items()})
    assert run(drain(2), throttle=5000) == 1
    (throttles,) = seen
    assert throttles[TOPIC, "orders"] == {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:3"}
    assert throttles[BROKER, "3"] == RATES
    assert cluster.settings == {}


def test_a_throttle_of_an_interrupted_run_is_cleared_by_the_next_although_nothing_is_left_to_move(
    made: Make,
) -> None:
    cluster = made(PartitionRegistration((1, 3), (1, 3), 1))
    cluster.settings = {(TOPIC, "orders"): dict(THROTTLED), (BROKER, "1"): dict(RATES)}
    assert run(drain(2)) == 0
    assert cluster.settings == {}
    cluster.settings = {(BROKER, "3"): dict(RATES)}
    assert run(drain(2)) == 0
    assert cluster.settings == {}


def test_a_topic_that_is_slowed_down_for_good_stays_so(made: Make) -> None:
    cluster = made(PartitionRegistration((1, 3), (1, 3), 1))
    cluster.settings = {(TOPIC, "orders"): {LEADER_REPLICAS: "*"}}
    assert run(drain(2)) == 0
    assert cluster.settings == {(TOPIC, "orders"): {LEADER_REPLICAS: "*"}}


def test_what_the_controller_refuses_is_told_and_leaves_no_throttle(made: Make) -> None:
    cluster = made(AT_REST)
    cluster.leaving = {3, 4}
    with pytest.raises(UserError, match="cannot be moved: orders-0: "):
        run(drain(2), throttle=5000)
    assert cluster.settings == {}


def test_a_plan_that_fails_on_the_way_leaves_no_throttle(made: Make) -> None:
    cluster = made(*[AT_REST] * 2)
    plans = iter([without_broker])

    def plan(states: list[PartitionState], racks: Racks) -> Assignment:
        for first in plans:
            return first(states, racks, 2)
        raise UserError("no more brokers")

    with pytest.raises(UserError, match="no more brokers"):
        run(plan, throttle=5000, at_once=1)
    assert cluster.settings == {}


@pytest.mark.parametrize("throttle", [None, 5000])
def test_a_topic_that_is_deleted_while_it_moves_is_done(made: Make, throttle: int | None) -> None:
    cluster = made(*[AT_REST] * 4)
    cluster.copies = False
    cluster.while_asleep = cluster.delete_topic
    assert run(drain(2), throttle=throttle, at_once=2) == 2
    cluster = made(*[AT_REST] * 4)
    cluster.before_alter = cluster.delete_topic
    assert run(drain(2), throttle=throttle) == 0


def test_a_move_that_stalls_is_named_with_the_way_out(made: Make) -> None:
    cluster = made(TO_FOUR)
    cluster.copies = False
    with pytest.raises(
        UserError, match=r"orders-0 waits for 4 to be in sync.*kafka-reassign-partitions --cancel"
    ):
        run(drain(2))
