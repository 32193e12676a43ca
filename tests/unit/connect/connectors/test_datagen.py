"""Random records by a schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from penstock.connect.connectors.datagen.quickstarts import QUICKSTARTS
from penstock.connect.connectors.datagen.regexes import texts_like
from penstock.connect.connectors.datagen.source import DatagenSource, DatagenTask
from penstock.connect.connectors.datagen.values import values_of
from penstock.connect.errors import ConnectError, InvalidConfig
from tests.connect.tasks_alone import polled, source_task


def config(**more: str) -> dict[str, str]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {"kafka.topic": "t", "max.interval": "0", "iterations": "50", **given}


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_each_quickstart_makes_records_that_its_schema_allows(name: str) -> None:
    with source_task(DatagenTask, config(quickstart=name)) as task:
        found = polled(task, 50)
        assert not task.poll(), "no more than its iterations"
    for record in found:
        record.value.check()
        assert record.key == record.value[QUICKSTARTS[name].key]
        assert record.key is not None


def make(schema: Any, count: int = 200) -> list[Any]:
    made = values_of(json.dumps(schema))
    random = Random(1)
    return [made.make(random, number) for number in range(count)]


def of(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "arg.properties": properties}


def test_properties_say_what_values_look_like() -> None:
    assert set(make(of("int", options=[1, 2]))) == {1, 2}
    assert set(make(of("int", range={"min": 3, "max": 6}))) == {3, 4, 5}
    assert make(of("long", iteration={"start": 5, "step": 2}), 3) == [5, 7, 9]
    assert make(of("int", iteration={"start": 0, "restart": 5, "step": 2}), 5) == [0, 2, 4, 0, 2]
    assert make(of("int", iteration={"start": 3, "restart": 0}), 4) == [3, 2, 1, 3]
    assert make(of("string", iteration={"start": 1}), 2) == ["1", "2"]
    assert {len(text) for text in make(of("string", length={"min": 2, "max": 4}))} == {2, 3}
    assert {
        len(items) for items in make({"type": "array", "items": "int", "arg.properties": {"length": 3}})
    } == {3}
    assert all(0 <= value < 1 for value in make("double"))
    assert set(make(of("boolean", odds=1.0))) == {True}
    assert None in make(["null", "string"])
    assert (
        make({"type": "int", "logicalType": "date", "arg.properties": {"options": [0]}}, 1)[0].isoformat()
        == "1970-01-01"
    )
    assert set(make({"type": "enum", "name": "e", "symbols": ["A", "B"]})) == {"A", "B"}
    assert len(make({"type": "fixed", "name": "f", "size": 4}, 1)[0]) == 4
    assert make({"type": "map", "values": "int", "arg.properties": {"length": 1}}, 1)[0].keys()


@pytest.mark.parametrize(
    "pattern",
    [
        r"User_[1-9]\d{0,2}",
        r"(a|bc)+x?",
        r"[^a-z]{3}",
        r"\w+@\w+\.(com|org)",
        r"^Page_\d\d$",
        "",
        r"a.c",
        r"[\d-]{4}",
    ],
)
def test_texts_are_what_their_expression_matches(pattern: str) -> None:
    like, random = texts_like(pattern), Random(2)
    for _ in range(100):
        assert re.fullmatch(pattern, like(random))


def test_the_same_seed_gives_the_same_records_and_a_restart_goes_on() -> None:
    given = config(quickstart="orders", random_seed="7", iterations="2500")
    with source_task(DatagenTask, given) as task:
        whole = polled(task, 2500)
    with source_task(DatagenTask, given, [({"task.id": 0}, whole[1233].source_offset)]) as task:
        rest = polled(task, 2500 - 1234)
    assert [record.value for record in rest] == [record.value for record in whole[1234:]]


def test_an_even_rate_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.connect.connectors.datagen import source

    clock = [100.0]
    monkeypatch.setattr(source.time, "monotonic", lambda: clock[0])
    with source_task(
        DatagenTask, config(quickstart="users", iterations="-1", penstock_records_per_second="10")
    ) as task:
        counts = []
        for _ in range(5):
            counts.append(len(task.poll() or ()))
            clock[0] += 0.5
        assert sum(counts) == 21
        clock[0] += 1000
        assert len(task.poll()) <= 1000


def test_mistakes_are_told(tmp_path: Path) -> None:
    def told(**more: str) -> dict[str, Any]:
        return dict(DatagenSource.check(config(**more)))

    assert told(quickstart="users") == {}
    assert "there are: clickstream" in told(quickstart="nothing")["quickstart"][0]
    assert "Exactly one" in told()["quickstart"][0]
    file = tmp_path / "s.avsc"
    assert "cannot be read" in told(schema_filename=str(file))["schema.filename"][0]
    file.write_text('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}')
    assert told(schema_filename=str(file), schema_keyfield="a") == {}
    assert "no field b" in told(schema_filename=str(file), schema_keyfield="b")["schema.filename"][0]
    for wrong in (
        "{",
        '"nothing"',
        '{"a": 1}',
        '["int", "string"]',
        '{"type": "string", "arg.properties": {"regex": "("}}',
    ):
        assert told(schema_string=wrong).keys() == {"schema.string"}
    with pytest.raises(InvalidConfig):
        texts_like(r"(?=a)")
    with pytest.raises(ConnectError):
        DatagenSource().alter_offsets({}, {"p": {"x": 1}})
