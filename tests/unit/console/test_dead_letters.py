"""What dead letters say of themselves, by the headers of Connect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.admin.dead_letters.reading import Letter
from penstock.console.access.masking import MaskingRule
from penstock.console.access.roles import ADMIN, VIEWER
from penstock.console.actions.dead_letters import Progress, ReplayStopped
from penstock.console.dead_letters import CONNECT, Why, is_named_so, mask_of, topics_of, why_of


def letter(**said: bytes) -> Letter:
    headers = [(CONNECT + name.replace("_", "."), value) for name, value in said.items()]
    message: Any = SimpleNamespace(headers=lambda: headers)
    return Letter(message, None)


def test_letters_of_a_sink_say_where_they_came_from_and_why() -> None:
    found = why_of(
        letter(
            topic=b"orders", partition=b"2", offset=b"17", connector_name=b"to-db", exception_message=b"no"
        )
    )
    assert (found.topic, found.partition, found.offset, found.by, found.message) == (
        "orders",
        2,
        17,
        "to-db",
        "no",
    )


def test_what_a_source_says_of_its_place_is_no_number() -> None:
    assert why_of(letter(partition=b'{"file": 1}', offset=b"\xff")).offset == -1


def test_a_record_without_such_headers_says_nothing() -> None:
    assert why_of(letter()) == Why()


@pytest.mark.parametrize("name", ["orders.dlq", "ORDERS-DLQ", "dead-letters", "pay_dead_letter"])
def test_names_of_dead_letter_topics(name: str) -> None:
    assert is_named_so(name)


def test_topics_that_connectors_write_to_are_among_them() -> None:
    assert topics_of(["a", "b.dlq", "odd"], ["odd", "gone"]) == ["b.dlq", "odd"]


def test_rules_of_the_letters_own_topic_and_of_its_origin_both_hold() -> None:
    rules = [MaskingRule(topics=("orders",), fields=("card",), except_roles=("admin",))]
    assert mask_of(rules, [VIEWER], "orders.dlq", "orders") is not None
    assert mask_of(rules, [VIEWER], "orders.dlq", "other") is None
    assert mask_of(rules, [ADMIN], "orders.dlq", "orders") is None


def test_a_replay_that_is_stopped_ends_at_its_next_word() -> None:
    progress = Progress()
    progress.tell(1, 10)
    assert (progress.seen, progress.total) == (1, 10)
    progress.stop()
    with pytest.raises(ReplayStopped, match="stopped after 2 of 10"):
        progress.tell(2, 10)
