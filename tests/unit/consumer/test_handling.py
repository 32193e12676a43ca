from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from penstock.client.errors import Unreachable
from penstock.consumer import Backoff, HandlerFailed, Output, Poison, Record
from penstock.consumer.dead_letters import parse
from penstock.consumer.handling import Handling, Unit
from tests.unit.consumer.made_records import record


class World:
    """What a handling asks of the outside."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.stops_after: int | None = None
        self.lost: set[int] = set()
        self.now_ms = 1000

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now_ms += int(seconds * 1000)
        return self.stops_after is None or len(self.waits) < self.stops_after

    def owns(self, one: Record) -> bool:
        return one.offset not in self.lost


@pytest.fixture
def world() -> World:
    return World()


def handling(world: World, handler: Callable[[Any], object], **options: Any) -> Handling:
    defaults: dict[str, Any] = {
        "group": "billing",
        "retries": 2,
        "backoff": Backoff(0.5, factor=2.0, jitter=0.0),
        "dead_letter_topic": lambda topic: f"{topic}.dlq",
        "deserializers": (None, None),
    }
    return Handling(
        handler,
        **{**defaults, **options},
        wait=world.wait,
        owns=world.owns,
        chance=lambda: 0.5,
        now_ms=lambda: world.now_ms,
    )


def offsets(units: list[Unit] | None) -> list[tuple[list[int], bool]]:
    assert units is not None
    return [([one.offset for one in unit.records], unit.is_dead_letter) for unit in units]


class FailsFor:
    """Fails for the given offsets, the given number of times."""

    def __init__(self, *bad: int, times: int = 1000) -> None:
        self.bad, self.times = bad, times
        self.calls: list[list[int]] = []

    def __call__(self, given: Record | list[Record]) -> Output:
        numbers = [one.offset for one in (given if isinstance(given, list) else [given])]
        self.calls.append(numbers)
        if self.times and any(number in self.bad for number in numbers):
            self.times -= 1
            raise RuntimeError(f"failed with {numbers}")
        return Output("out", str(numbers))


def test_what_a_handler_returns_is_the_outputs_of_the_unit(world: World) -> None:
    outputs = [Output("a", b"1"), Output("b", b"2")]
    for returned, expected in ((None, []), (outputs[0], outputs[:1]), (iter(outputs), outputs)):
        unit = handling(world, lambda _, it=returned: it).handle_record(record())  # type: ignore[misc]
        assert unit is not None
        assert unit.outputs == expected


@pytest.mark.parametrize("returned", ["text", b"bytes", 7, [Output("a"), None]])
def test_a_handler_that_returns_something_else_has_failed(world: World, returned: object) -> None:
    unit = handling(world, lambda _: returned).handle_record(record())
    assert unit is not None
    assert unit.is_dead_letter
    letter = parse(list(unit.outputs[0].headers))  # type: ignore[arg-type]
    assert letter is not None
    assert letter.failure.cause == "TypeError"


def test_waits_grow_between_attempts_and_the_letter_tells_when_it_failed(world: World) -> None:
    unit = handling(world, FailsFor(0)).handle_record(record())
    assert world.waits == [0.5, 1.0]
    assert unit is not None
    letter = parse(list(unit.outputs[0].headers))  # type: ignore[arg-type]
    assert letter is not None
    assert (letter.failure.attempts, letter.failure.first_failure_ms, letter.failure.last_failure_ms) == (
        3,
        1000,
        2500,
    )


def test_a_record_is_given_back_when_we_stop(world: World) -> None:
    world.stops_after = 1
    assert handling(world, FailsFor(0)).handle_record(record()) is None
    assert handling(world, FailsFor(0)).handle_batch([record()]) is None


def test_a_record_whose_partition_was_taken_away_is_given_back(world: World) -> None:
    world.lost = {0}
    handler = FailsFor(0)
    assert handling(world, handler).handle_record(record()) is None
    assert len(handler.calls) == 1


def test_without_a_dead_letter_topic_it_ends(world: World) -> None:
    with pytest.raises(HandlerFailed, match=r"orders-3@0.*1 attempt"):
        handling(world, FailsFor(0), retries=0, dead_letter_topic=None).handle_record(record())


def test_poison_is_given_up_at_once(world: World) -> None:
    def handler(_: Record) -> None:
        raise Poison("never")

    unit = handling(world, handler).handle_record(record())
    assert unit is not None
    assert unit.is_dead_letter
    assert world.waits == []


def test_an_end_of_the_program_is_not_a_failure_of_the_record(world: World) -> None:
    def handler(_: Record) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        handling(world, handler).handle_record(record())


def test_a_batch_that_succeeds_later_is_one_unit(world: World) -> None:
    handler = FailsFor(1, times=2)
    units = handling(world, handler).handle_batch([record(offset=number) for number in range(3)])
    assert offsets(units) == [([0, 1, 2], False)]
    assert len(handler.calls) == 3


def test_a_batch_that_fails_for_good_is_tried_record_by_record(world: World) -> None:
    handler = FailsFor(1)
    units = handling(world, handler, retries=1).handle_batch([record(offset=number) for number in range(3)])
    assert offsets(units) == [([0], False), ([1], True), ([2], False)]
    assert handler.calls == [[0, 1, 2], [0, 1, 2], [0], [1], [2]]


def test_what_was_taken_away_during_a_back_off_is_left_out_of_the_next_attempt(world: World) -> None:
    handler = FailsFor(1, times=1)
    world.lost = {0, 1}
    units = handling(world, handler).handle_batch([record(offset=number) for number in range(3)])
    assert handler.calls == [[0, 1, 2], [2]]
    assert offsets(units) == [([2], False)]


def test_unreadable_records_never_reach_the_handler_of_a_batch(world: World) -> None:
    seen: list[Any] = []
    records = [record(b"1"), record(b"?", offset=1), record(None, offset=2)]
    units = handling(
        world, lambda batch: seen.extend(one.value for one in batch), deserializers=(None, json.loads)
    ).handle_batch(records)
    assert seen == [1, None]
    assert offsets(units) == [([1], True), ([0, 2], False)]


class Away:
    """A deserializer whose registry does not answer for so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, data: bytes) -> Any:
        if self.times:
            self.times -= 1
            raise Unreachable("cannot reach the schema registry")
        return json.loads(data)


def test_a_record_waits_while_what_its_deserializer_asks_does_not_answer(world: World) -> None:
    seen: list[Any] = []
    one = handling(world, lambda each: seen.append(each.value), retries=0, deserializers=(None, Away(4)))
    assert one.handle_record(record(b"1")) is not None
    assert (seen, world.waits) == ([1], [0.5, 1.0, 2.0, 4.0])
    batch = handling(
        world, lambda all: seen.extend(each.value for each in all), deserializers=(None, Away(2))
    )
    assert offsets(batch.handle_batch([record(b"2"), record(b"3", offset=1)])) == [([0, 1], False)]
    assert seen == [1, 2, 3]


def test_records_that_cannot_be_read_now_are_given_back(world: World) -> None:
    world.lost = {0}
    units = handling(world, lambda _: None, deserializers=(None, Away(1))).handle_batch(
        [record(b"1"), record(b"2", offset=1)]
    )
    assert offsets(units) == [([1], False)]
    world.stops_after = len(world.waits) + 1
    for given_back in ("handle_record", "handle_batch"):
        one = handling(world, lambda _: None, deserializers=(None, Away(9)))
        given = record(b"1", offset=1) if given_back == "handle_record" else [record(b"1", offset=1)]
        assert getattr(one, given_back)(given) is None


def test_poison_that_names_no_record_of_the_batch_has_each_tried_alone(world: World) -> None:
    def handler(batch: list[Record]) -> None:
        if any(one.offset == 1 for one in batch):
            raise Poison("one of them", record=record(offset=1))

    units = handling(world, handler).handle_batch([record(offset=number) for number in range(3)])
    assert offsets(units) == [([0], False), ([1], True), ([2], False)]
    assert world.waits == []


def test_a_batch_handler_may_empty_the_list_that_it_gets(world: World) -> None:
    records = [record(offset=0), record(offset=1)]

    def handler(batch: list[Record]) -> list[Output]:
        outputs = [Output("out", one.raw_value) for one in batch]
        batch.clear()
        return outputs

    (unit,) = handling(world, handler).handle_batch(records) or []
    assert [one.offset for one in unit.records] == [0, 1]
    assert len(unit.outputs) == 2


@pytest.mark.parametrize("failure", [ValueError("no"), Poison("no")])
def test_with_at_most_once_no_record_of_a_failing_batch_is_handled_again(
    world: World, failure: Exception
) -> None:
    seen: list[int] = []

    def handler(batch: list[Record]) -> None:
        seen.extend(one.offset for one in batch)
        raise failure

    units = handling(world, handler, retries=0, only_once=True).handle_batch(
        [record(offset=0), record(offset=1)]
    )
    assert seen == [0, 1]
    assert offsets(units) == [([0], True), ([1], True)]
