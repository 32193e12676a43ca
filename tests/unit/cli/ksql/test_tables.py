"""Tables and answers as the `ksql` prompt draws them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.client.errors import BadOption
from penstock.sql.client.rendering import lines_of, type_text
from penstock.sql.client.service import SqlServer, elements
from penstock.sql.client.session import heads
from penstock.sql.client.statements import is_complete
from penstock.sql.client.tables import Grid, table


def test_a_table_is_as_wide_as_its_widest_values() -> None:
    assert table(["Stream Name", "Windowed"], [["A", True], ["ORDERS_OF_TODAY", False]]) == [
        "",
        " Stream Name     | Windowed ",
        "----------------------------",
        " A               | true     ",
        " ORDERS_OF_TODAY | false    ",
        "----------------------------",
    ]


def test_a_message_is_a_table_of_its_own() -> None:
    entity = {"@type": "currentStatus", "commandStatus": {"status": "SUCCESS", "message": "Stream created"}}
    assert lines_of(entity) == [
        "",
        " Message        ",
        "----------------",
        " Stream created ",
        "----------------",
    ]


def test_rows_fill_the_screen_and_long_values_go_on() -> None:
    grid = Grid(["ID", "NAME"], 23)
    assert grid.head() == ["+----------+----------+", "|ID        |NAME      |", "+----------+----------+"]
    assert grid.row([7, "a long name"]) == ["|7         |a long nam|", "|          |e         |"]


def test_an_entity_that_nobody_knows_is_shown_all_the_same() -> None:
    assert lines_of(
        {"@type": "new_kind", "statementText": "", "answer": 42, "warnings": [{"message": "oops"}]}
    ) == [
        "answer: 42",
        "WARNING: oops",
    ]


def test_types_are_told_as_in_ksqldb() -> None:
    text = {"type": "STRING"}
    assert type_text({"type": "ARRAY", "memberSchema": text}) == "ARRAY<VARCHAR(STRING)>"
    assert (
        type_text({"type": "MAP", "keySchema": text, "memberSchema": {"type": "BIGINT"}})
        == "MAP<STRING, BIGINT>"
    )
    assert type_text({"type": "DECIMAL", "parameters": {"precision": 4, "scale": 2}}) == "DECIMAL(4, 2)"


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("SHOW STREAMS;", True),
        ("SHOW STREAMS", False),
        ("SELECT ';' FROM s", False),
        ("SELECT ';' FROM s; -- done", True),
        ("SELECT 1 -- ;", False),
        ("/* ; */ SHOW TABLES;", True),
        ("/* ;", False),
        ("SELECT 'it''s';", True),
        ("", False),
    ],
)
def test_a_statement_is_whole_at_its_semicolon(text: str, is_whole: bool) -> None:
    assert is_complete(text) is is_whole


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_elements_are_taken_as_soon_as_they_are_whole(size: int) -> None:
    text = '[{"header":{"schema":"`A` STRING"}},\n{"row":{"columns":["}\\"{"]}},\n{"finalMessage":"x"}]'

    def chunks() -> Iterator[bytes]:
        for at in range(0, len(text), size):
            yield text[at : at + size].encode()

    assert [each[:4] for each in elements(chunks())] == ['{"he', '{"ro', '{"fi']


def test_heads_are_the_outer_names_of_a_schema() -> None:
    assert heads("`ID` STRING KEY, `S` STRUCT<`A` INTEGER, `B` MAP<STRING, BIGINT>>, `D` DECIMAL(4, 2)") == [
        "ID",
        "S",
        "D",
    ]


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://h:port"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadOption, match="is no address of a server"):
        SqlServer(url)
