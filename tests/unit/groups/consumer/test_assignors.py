"""Assignors: every partition goes to one subscriber, evenly, and stays where it is if it can."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.groups.consumer.assignors import ASSIGNORS, MemberSpec, offered_assignors

Targets = Mapping[str, Mapping[bytes, frozenset[int]]]

topics = st.sampled_from([b"a", b"b", b"c", b"d"])
counts = st.dictionaries(topics, st.integers(1, 7), min_size=1)
names = st.sampled_from(["m1", "m2", "m3", "m4", "m5"])


def members_of(
    subscriptions: Mapping[str, set[bytes]], counts: Mapping[bytes, int], targets: Targets | None = None
) -> dict[str, MemberSpec]:
    return {
        name: MemberSpec(None, frozenset(topics & counts.keys()), (targets or {}).get(name, {}))
        for name, topics in subscriptions.items()
    }


def subscribed_counts(members: Mapping[str, MemberSpec], counts: Mapping[bytes, int]) -> dict[bytes, int]:
    wanted = set().union(*(spec.topic_ids for spec in members.values())) if members else set()
    return {topic: count for topic, count in counts.items() if topic in wanted}


def assign(assignor: str, members: Mapping[str, MemberSpec], counts: Mapping[bytes, int]) -> Targets:
    return ASSIGNORS[assignor](members, subscribed_counts(members, counts))


def places_of(targets: Targets) -> dict[str, set[tuple[bytes, int]]]:
    return {
        name: {(topic, index) for topic, indexes in target.items() for index in indexes}
        for name, target in targets.items()
    }


def loads_of(targets: Targets) -> list[int]:
    return sorted(len(places) for places in places_of(targets).values())


@pytest.mark.parametrize("assignor", ASSIGNORS)
@settings(max_examples=150)
@given(counts=counts, subscriptions=st.dictionaries(names, st.sets(topics), min_size=1), old=st.data())
def test_every_partition_goes_to_one_of_its_subscribers(
    assignor: str, counts: dict[bytes, int], subscriptions: dict[str, set[bytes]], old: st.DataObject
) -> None:
    before = assign(assignor, members_of(old.draw(st.dictionaries(names, st.sets(topics))), counts), counts)
    members = members_of(subscriptions, counts, before)
    targets = assign(assignor, members, counts)
    given_out = Counter(place for places in places_of(targets).values() for place in places)
    assert given_out == {
        (topic, index): 1
        for topic, count in subscribed_counts(members, counts).items()
        for index in range(count)
    }
    assert targets.keys() == members.keys()
    for name, target in targets.items():
        assert target.keys() <= members[name].topic_ids
        assert all(target.values())


@pytest.mark.parametrize("assignor", ASSIGNORS)
@settings(max_examples=50)
@given(counts=counts, subscriptions=st.dictionaries(names, st.sets(topics), min_size=2))
def test_the_order_of_the_members_does_not_matter(
    assignor: str, counts: dict[bytes, int], subscriptions: dict[str, set[bytes]]
) -> None:
    members = members_of(subscriptions, counts)
    backwards = dict(reversed(members.items()))
    assert assign(assignor, members, counts) == assign(assignor, backwards, counts)


@settings(max_examples=150)
@given(counts=counts, before=st.sets(names, min_size=1), after=st.sets(names, min_size=1))
def test_uniform_is_even_and_moves_no_more_than_it_must_when_all_want_the_same(
    counts: dict[bytes, int], before: set[str], after: set[str]
) -> None:
    first = assign("uniform", members_of({name: set(counts) for name in before}, counts), counts)
    members = members_of({name: set(counts) for name in after}, counts, first)
    second = assign("uniform", members, counts)
    loads = loads_of(second)
    assert loads[-1] - loads[0] <= 1
    old, new = places_of(first), places_of(second)
    moved = sum(len(old.get(name, set()) - new[name]) for name in after)
    share, extra = divmod(sum(counts.values()), len(after))
    # Whoever stays keeps as much as may be kept: the richest `extra` of them one more than the others.
    richest = sorted((len(old.get(name, set())) for name in after), reverse=True)
    quotas = [share + 1] * extra + [share] * (len(after) - extra)
    least = sum(max(had - quota, 0) for had, quota in zip(richest, quotas, strict=True))
    assert moved == least


@settings(max_examples=150)
@given(counts=counts, subscriptions=st.dictionaries(names, st.sets(topics), min_size=2), old=st.data())
def test_uniform_leaves_no_move_that_would_make_it_more_even(
    counts: dict[bytes, int], subscriptions: dict[str, set[bytes]], old: st.DataObject
) -> None:
    before = assign("uniform", members_of(old.draw(st.dictionaries(names, st.sets(topics))), counts), counts)
    members = members_of(subscriptions, counts, before)
    targets = assign("uniform", members, counts)
    loads = {name: len(places) for name, places in places_of(targets).items()}
    for giver, target in targets.items():
        for topic in target:
            takers = [name for name, spec in members.items() if topic in spec.topic_ids]
            assert loads[giver] - min(loads[name] for name in takers) <= 1


@pytest.mark.parametrize(
    "subscriptions", [{"m1": {b"a", b"b"}, "m2": {b"a", b"b"}}, {"m1": {b"a"}, "m2": {b"a", b"b"}}]
)
def test_uniform_keeps_an_assignment_that_is_even(subscriptions: dict[str, set[bytes]]) -> None:
    counts = {b"a": 4, b"b": 2}
    first = assign("uniform", members_of(subscriptions, counts), counts)
    assert assign("uniform", members_of(subscriptions, counts, first), counts) == first


def test_uniform_lets_go_of_partitions_that_are_gone() -> None:
    held = {"m1": {b"a": frozenset({0, 1, 2}), b"gone": frozenset({0})}}
    members = members_of({"m1": {b"a"}, "m2": {b"a"}}, {b"a": 2}, held)
    assert loads_of(assign("uniform", members, {b"a": 2})) == [1, 1]


def test_range_gives_runs_of_partitions_in_the_order_of_the_members() -> None:
    members = members_of({"m2": {b"a", b"b"}, "m1": {b"a", b"b"}, "m3": {b"a"}}, {b"a": 7, b"b": 3})
    assert assign("range", members, {b"a": 7, b"b": 3}) == {
        "m1": {b"a": frozenset({0, 1, 2}), b"b": frozenset({0, 1})},
        "m2": {b"a": frozenset({3, 4}), b"b": frozenset({2})},
        "m3": {b"a": frozenset({5, 6})},
    }


def test_range_puts_static_members_first_by_their_instance() -> None:
    wants = frozenset({b"a"})
    members = {
        "m1": MemberSpec(None, wants, {}),
        "x": MemberSpec("i2", wants, {}),
        "y": MemberSpec("i1", wants, {}),
    }
    assert assign("range", members, {b"a": 3}) == {
        "y": {b"a": frozenset({0})},
        "x": {b"a": frozenset({1})},
        "m1": {b"a": frozenset({2})},
    }


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_nobody_and_nothing_are_fine(assignor: str) -> None:
    assert ASSIGNORS[assignor]({}, {}) == {}
    assert ASSIGNORS[assignor]({"m1": MemberSpec(None, frozenset(), {})}, {}) == {"m1": {}}


def test_a_large_group_is_assigned_in_reasonable_time() -> None:
    counts = {b"%03d" % index: 10 for index in range(100)}
    wants = [set(counts), set(list(counts)[:50])]
    members = members_of({f"m{index:04}": wants[index % 2] for index in range(400)}, counts)
    loads = loads_of(assign("uniform", members, counts))
    assert sum(loads) == 1000
    assert loads[-1] - loads[0] <= 1


def test_assignors_may_be_named_as_kafka_names_their_classes() -> None:
    kafka = "org.apache.kafka.coordinator.group.assignor"
    assert offered_assignors([f"{kafka}.RangeAssignor", "range", "uniform"]) == ["range", "uniform"]
    assert offered_assignors(["com.example.OwnAssignor"]) == ["uniform", "range"]
