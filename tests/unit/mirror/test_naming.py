"""What topics are called at the target, and which are never copied."""

import pytest

from penstock.connect.errors import InvalidConfig
from penstock.mirror.naming import Naming, naming_of
from penstock.mirror.settings import SOURCE_SETTINGS

A_TO_B = Naming("A", "B")
SAME_NAMES = Naming("A", "B", is_identity=True)


def test_a_topic_gets_the_alias_of_its_source() -> None:
    assert A_TO_B.remote("orders") == "A.orders"
    assert Naming("A", "B", separator="_").remote("orders") == "A_orders"
    assert A_TO_B.upstream("A.orders") == "orders"
    assert A_TO_B.source_of("A.orders") == "A"
    assert A_TO_B.source_of("orders") is None


def test_the_identity_policy_keeps_names_but_that_of_heartbeats() -> None:
    assert SAME_NAMES.remote("orders") == "orders"
    assert SAME_NAMES.remote("heartbeats") == "A.heartbeats"
    assert not SAME_NAMES.is_loop("orders")


@pytest.mark.parametrize(
    ("topic", "is_loop"), [("orders", False), ("B.orders", True), ("C.B.orders", True), ("C.orders", False)]
)
def test_what_came_from_the_target_is_a_loop(topic: str, is_loop: bool) -> None:
    assert A_TO_B.is_loop(topic) is is_loop


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        "mm2-offsets.A.internal",
        "mm2-offset-syncs.B.internal",
        "A.checkpoints.internal",
        "x-internal",
    ],
)
def test_internal_topics_are_told_from_others(topic: str) -> None:
    assert A_TO_B.is_internal(topic)
    assert not A_TO_B.is_internal("orders.internals")


def test_internal_topics_have_the_names_of_mirror_maker() -> None:
    assert A_TO_B.checkpoints_topic() == "A.checkpoints.internal"
    assert A_TO_B.offset_syncs_topic(at_source=True) == "mm2-offset-syncs.B.internal"
    assert A_TO_B.offset_syncs_topic(at_source=False) == "mm2-offset-syncs.A.internal"
    assert A_TO_B.worker_topic("offsets") == "mm2-offsets.A.internal"
    assert Naming("A", "B", separator="_").checkpoints_topic() == "A_checkpoints_internal"
    assert (
        Naming("A", "B", separator="_", separates_internal=False).checkpoints_topic()
        == "A.checkpoints.internal"
    )


def test_heartbeats_of_others_are_heartbeats() -> None:
    assert A_TO_B.is_heartbeats("heartbeats")
    assert A_TO_B.is_heartbeats("C.heartbeats")
    assert not A_TO_B.is_heartbeats("heart")


def test_a_policy_that_there_is_not_is_refused() -> None:
    values = SOURCE_SETTINGS.parse({"source.cluster.alias": "A", "replication.policy.class": "my.Policy"})
    with pytest.raises(InvalidConfig, match=r"replication\.policy\.class: there is no Policy"):
        naming_of(values)
