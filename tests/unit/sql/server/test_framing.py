"""What a client of `/query` and `/query-stream` reads."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal

import pytest

from penstock.sql.engine.results import LIMIT_REACHED, Header, ResultRow, Results
from penstock.sql.server.framing import (
    ArrayFraming,
    DelimitedFraming,
    Framing,
    JsonArrayFraming,
    LegacyFraming,
    framed,
)
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.types import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    array,
    decimal,
    map_of,
    struct,
)

SCHEMA = Schema((), (Column("ID", STRING), Column("V", BIGINT)))


def text(framing: Framing, *rows: ResultRow, schema: Schema = SCHEMA, **ending: str) -> str:
    results = Results(Header("q1", schema), bound=10)
    for row in rows:
        assert results.put(row)
    results.end(**ending)

    async def read() -> bytes:
        return b"".join([chunk async for chunk in framed(results, framing)])

    return asyncio.run(read()).decode()


def test_the_array_has_a_header_rows_tombstones_and_an_end() -> None:
    said = text(
        ArrayFraming(), ResultRow(("a", 1)), ResultRow((None, 2), is_tombstone=True), final=LIMIT_REACHED
    )
    assert said == (
        '[{"header":{"queryId":"q1","schema":"`ID` STRING, `V` BIGINT"}},\n'
        '{"row":{"columns":["a",1]}},\n{"row":{"columns":[null,2],"tombstone":true}},\n{"finalMessage":"Limit Reached"}]'
    )
    assert len(json.loads(said)) == 4


def test_an_error_behind_rows_is_an_element() -> None:
    found = json.loads(text(ArrayFraming(), ResultRow(("a", 1)), error="it broke"))
    assert found[-1] == {
        "errorMessage": {"@type": "generic_error", "error_code": 50000, "message": "it broke"}
    }


def test_an_old_client_gets_an_object_a_line() -> None:
    lines = [
        json.loads(line)
        for line in text(LegacyFraming(), ResultRow(("a", 1)), final=LIMIT_REACHED).splitlines()
    ]
    assert lines == [
        {"row": {"columns": ["a", 1]}, "errorMessage": None, "finalMessage": None},
        {"row": None, "errorMessage": None, "finalMessage": "Limit Reached"},
    ]


def test_the_stream_has_a_line_about_itself_and_leaves_deletions_out() -> None:
    rows = (ResultRow(("a", 1)), ResultRow(("a", None), is_tombstone=True))
    head = {"queryId": "q1", "columnNames": ["ID", "V"], "columnTypes": ["STRING", "BIGINT"]}
    assert [json.loads(line) for line in text(DelimitedFraming(), *rows).splitlines()] == [head, ["a", 1]]
    assert json.loads(text(JsonArrayFraming(), *rows)) == [head, ["a", 1]]


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (decimal(4, 2), Decimal("1.50"), "1.50"),
        (DOUBLE, 10.0, "10.0"),
        (DOUBLE, float("nan"), '"NaN"'),
        (DOUBLE, float("-inf"), '"-Infinity"'),
        (BYTES, b"\0\1", '"AAE="'),
        (DATE, 1, '"1970-01-02"'),
        (DATE, 10**9, '"1000000000"'),
        (TIME, 3_723_000, '"01:02:03"'),
        (TIME, 3_723_004, '"01:02:03.004"'),
        (TIMESTAMP, 1_500, '"1970-01-01T00:00:01.500"'),
        (array(DATE), [0, None], '["1970-01-01",null]'),
        (map_of(BIGINT, TIME), {7: 0}, '{"7":"00:00:00"}'),
        (struct(("A", DATE), ("B", STRING)), {"A": 0, "B": "x"}, '{"A":"1970-01-01","B":"x"}'),
        (STRING, None, "null"),
    ],
)
def test_values_are_json_as_ksqldb_writes_it(kind: object, value: object, told: str) -> None:
    schema = Schema((), (Column("X", kind),))  # type: ignore[arg-type]
    assert text(DelimitedFraming(), ResultRow((value,)), schema=schema).splitlines()[1] == f"[{told}]"


def test_a_query_waits_for_a_slow_client_and_ends_with_it() -> None:
    stopped: list[bool] = []
    results = Results(Header("q1", SCHEMA), bound=2, stop=lambda: stopped.append(True))
    assert results.put(ResultRow(("a", 1)))
    assert results.put(ResultRow(("a", 2)))
    results.close()
    results.close()
    assert not results.put(ResultRow(("a", 3)))
    assert stopped == [True]
