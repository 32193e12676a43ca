"""Where the boxes of a drawing are."""

from __future__ import annotations

from penstock.console.pages.parts.flow import placed


def test_what_is_made_from_something_is_to_the_right_of_it() -> None:
    found = placed(["c", "a", "b"], [("a", "b"), ("b", "c"), ("a", "c")])
    assert {name: column for name, (column, _) in found.items()} == {"a": 0.0, "b": 1.0, "c": 2.0}


def test_no_two_boxes_are_at_one_place() -> None:
    nodes = [f"n{number}" for number in range(30)]
    found = placed(nodes, [("n0", each) for each in nodes[1:]])
    assert len(set(found.values())) == len(nodes)


def test_a_circle_and_a_name_that_is_not_there_end_nothing() -> None:
    found = placed(["a", "b"], [("a", "b"), ("b", "a"), ("a", "a"), ("a", "gone")])
    assert set(found) == {"a", "b"}
