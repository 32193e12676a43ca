from penstock.controller.balance import imbalanced, preferred_leaders
from penstock.metadata.image import PartitionRegistration
from tests.unit.controller.clusters import after, cluster

HOME = PartitionRegistration((1, 2), (1, 2), 1)
AWAY = PartitionRegistration((1, 2), (1, 2), 2)


def test_a_broker_gets_its_leaders_back_when_more_than_the_threshold_are_elsewhere() -> None:
    image = cluster(AWAY, *[HOME] * 9)
    assert imbalanced(image, threshold_percent=10) == []
    assert imbalanced(image, threshold_percent=9) == [("orders", 0)]


def test_each_broker_is_counted_by_itself() -> None:
    image = cluster(AWAY, HOME, *[PartitionRegistration((2, 1), (2, 1), 2)] * 98)
    assert imbalanced(image, threshold_percent=40) == [("orders", 0)]


def test_only_leaders_that_could_go_back_now_are_named() -> None:
    out_of_sync, away_for_good = AWAY._replace(isr=(2,)), PartitionRegistration((4, 2), (4, 2), 2)
    image = cluster(AWAY, out_of_sync, away_for_good)
    assert imbalanced(image, threshold_percent=10) == [("orders", 0)]
    assert imbalanced(image, threshold_percent=10, leaving={1}) == []


def test_preferred_leaders_lead_again_in_a_new_epoch() -> None:
    image = cluster(AWAY, HOME, AWAY._replace(isr=(2,)))
    decision = preferred_leaders(image, [("orders", n) for n in (0, 0, 1, 2, 9)])
    assert after(image, decision) == [
        PartitionRegistration((1, 2), (1, 2), 1, 1, 1),
        HOME,
        AWAY._replace(isr=(2,)),
    ]
    assert len(decision.ops) == 1
