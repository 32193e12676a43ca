"""The transforms of a configuration: their order, their predicates, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.connect import InvalidConfig, SinkRecord
from penstock.connect.interface import Configured, Transformation
from penstock.connect.transforms.chain import Chain, mistakes
from penstock.connect.transforms.filter import Filter
from penstock.connect.transforms.hoist_field import HoistFieldValue
from penstock.connect.transforms.insert_field import InsertFieldValue
from penstock.connect.transforms.mask_field import MaskFieldValue
from penstock.connect.transforms.predicates import RecordIsTombstone, TopicNameMatches
from penstock.connect.transforms.regex_router import RegexRouter

CLOSED: list[str] = []


class Closing(Transformation):
    def apply(self, record: SinkRecord) -> SinkRecord:
        return record

    def close(self) -> None:
        CLOSED.append("closed")
        raise OSError("cannot")


CLASSES: dict[str, type[Configured]] = {
    "filter": Filter, "hoist": HoistFieldValue, "insert": InsertFieldValue, "mask": MaskFieldValue, "route": RegexRouter,
    "tombstone": RecordIsTombstone, "topic": TopicNameMatches, "closing": Closing,
}  # fmt: skip


def chain(config: Mapping[str, str]) -> Chain:
    return Chain.from_config(config, CLASSES.__getitem__)


def record(value: object, topic: str = "orders") -> SinkRecord:
    return SinkRecord(topic, 0, 1, value)


def test_transforms_are_applied_in_their_order() -> None:
    made = chain({
        "transforms": "first, second",
        "transforms.first.type": "hoist", "transforms.first.field": "a",
        "transforms.second.type": "hoist", "transforms.second.field": "b",
    })  # fmt: skip
    assert len(made) == 2
    assert made.apply(record(1)).value == {"b": {"a": 1}}


def test_a_record_that_is_left_out_is_seen_by_no_later_transform() -> None:
    made = chain(
        {
            "transforms": "out,in",
            "transforms.out.type": "filter",
            "transforms.in.type": "mask",
            "transforms.in.fields": "x",
        }
    )
    assert made.apply(record("no map, which a mask refuses")) is None


@pytest.mark.parametrize(("negate", "left_out"), [("false", None), ("true", {"a": 1})])
def test_a_predicate_says_for_which_records_a_transform_is(negate: str, left_out: object) -> None:
    made = chain({
        "transforms": "out", "transforms.out.type": "filter", "transforms.out.predicate": "empty",
        "transforms.out.negate": negate, "predicates": "empty", "predicates.empty.type": "tombstone",
    })  # fmt: skip
    kept = [made.apply(record(value)) for value in (None, {"a": 1})]
    assert [each is None for each in kept] == [negate == "false", negate == "true"]


def test_without_transforms_records_stay_as_they_are() -> None:
    given = record(1)
    assert chain({}).apply(given) is given


MASK = {"transforms": "m", "transforms.m.type": "mask", "transforms.m.fields": "a"}


@pytest.mark.parametrize(
    ("config", "name", "words"),
    [
        ({"transforms": "a"}, "transforms.a.type",
         'Missing required configuration "transforms.a.type" which has no default value.'),
        (
            {"transforms": "a", "transforms.a.type": "nope.Nope"},
            "transforms.a.type",
            "Invalid value nope.Nope for configuration transforms.a.type: Class nope.Nope could not be found.",
        ),
        (
            {"transforms": "a", "transforms.a.type": "tombstone"},
            "transforms.a.type",
            "Class class tombstone does not implement the Transformation interface",
        ),
        ({"transforms": "a,a"}, "transforms", "Invalid value [a, a] for configuration transforms: Duplicate alias provided."),
        (
            MASK | {"transforms.m.negate": "true"},
            "transforms.m.type",
            "Config 'transforms.m.negate' was provided but there is no config 'transforms.m.predicate' defining a predicate to "
            "be negated.",
        ),
        (
            MASK | {"transforms.m.predicate": "p"},
            "transforms.m.predicate",
            "Invalid value p for configuration transforms.m.predicate: 'predicates' names no predicate p",
        ),
        (
            MASK | {"transforms.m.predicate": "p", "predicates": "p"},
            "predicates.p.type",
            'Missing required configuration "predicates.p.type" which has no default value.',
        ),
        (
            MASK | {"transforms.m.replacement": ""},
            "transforms.m.replacement",
            "Invalid value  for configuration replacement: String must be non-empty",
        ),
        (
            MASK | {"transforms.m.predicate": "p", "transforms.m.negate": "maybe", "predicates": "p",
                    "predicates.p.type": "tombstone"},
            "transforms.m.negate",
            "Invalid value maybe for configuration transforms.m.negate: Expected value to be either true or false",
        ),
        ({"transforms": "i", "transforms.i.type": "insert"}, "transforms.i.type", "No field insertion configured"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_kafka_s_words_at_their_settings(
    config: dict[str, str], name: str, words: str
) -> None:
    assert mistakes(config, CLASSES.__getitem__) == {name: [words]}
    with pytest.raises(InvalidConfig) as refused:
        chain(config)
    assert str(refused.value) == words


def test_all_mistakes_are_told_at_once() -> None:
    found = mistakes(
        {
            "transforms": "m,r",
            "transforms.m.type": "mask",
            "transforms.r.type": "route",
            "transforms.r.regex": "(a",
        },
        CLASSES.__getitem__,
    )
    assert sorted(found) == ["transforms.m.fields", "transforms.r.regex", "transforms.r.replacement"]


def test_all_are_closed_also_when_one_of_them_cannot() -> None:
    CLOSED.clear()
    made = chain({"transforms": "a,b", "transforms.a.type": "closing", "transforms.b.type": "closing"})
    with pytest.raises(OSError, match="cannot"):
        made.close()
    assert CLOSED == ["closed", "closed"]


def test_a_topic_is_matched_as_a_whole() -> None:
    predicate = TopicNameMatches()
    predicate.configure({"pattern": "order"})
    assert not predicate.test(record(1, topic="orders"))
    assert predicate.test(record(1, topic="order"))
