"""INSERT VALUES makes one record; a pull query says which keys it looks up."""

from __future__ import annotations

from decimal import Decimal

import pytest

from penstock.sql.analysis.inserting import insert_values
from penstock.sql.analysis.planned import InsertedRow
from penstock.sql.analysis.pulling import Bounds, Lookup, analyze_pull
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.parsing.parser import parse
from penstock.sql.parsing.statements import InsertValues, Select
from tests.unit.sql.analysis.catalogs import World

WORLD = World()
WORLD.run(
    """CREATE STREAM s (k STRING KEY, i BIGINT, d DECIMAL(4, 2), a ARRAY<INT>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
    CREATE TABLE t (k STRING PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
    CREATE TABLE w (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION');
    CREATE TABLE m (a INT PRIMARY KEY, b STRING PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='m', FORMAT='JSON');"""
)


def inserted(text: str) -> InsertedRow:
    (statement,) = parse(text)
    assert isinstance(statement, InsertValues)
    return insert_values(statement, WORLD)


def lookup(text: str) -> Lookup:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    found = analyze_pull(statement, WORLD).lookup
    assert found is not None
    return found


def test_values_get_the_types_of_their_columns() -> None:
    row = inserted("INSERT INTO s (ROWTIME, k, i, d, a) VALUES (7, 'x', 1 + 1, 1.5, ARRAY[1, 2]);")
    assert (row.key, row.value, row.timestamp) == (("x",), (2, Decimal("1.50"), [1, 2]), 7)
    assert inserted("INSERT INTO s VALUES ('x', 1, 0.1, NULL);").value == (1, Decimal("0.10"), None)
    assert inserted("INSERT INTO s (i) VALUES (1);") == InsertedRow(WORLD.sources["S"], None, (1, None, None))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO s (k, i) VALUES ('x');", "Expected number columns and values to match: 2, 1"),
        ("INSERT INTO s VALUES ('x');", "Expected a value for each column."),
        ("INSERT INTO s (k, nope) VALUES ('x', 1);", "Column name `NOPE` does not exist."),
        ("INSERT INTO s (k, i) VALUES ('x', 'y');", "Expected type BIGINT for field `I` but got STRING(y)"),
        (
            "INSERT INTO s (k, ROWOFFSET) VALUES ('x', 1);",
            "Inserting into column `ROWOFFSET` is not allowed.",
        ),
        ("INSERT INTO t (v) VALUES (1);", "Value for primary key column(s) K is required for tables"),
        ("INSERT INTO w VALUES (1, 1);", "Cannot insert values into windowed stream/table!"),
        (
            "INSERT INTO `s` VALUES (1);",
            "Did you mean S? Hint: try removing double quotes from the source name.",
        ),
        ("INSERT INTO s (k) VALUES (foo.bar);", "'FOO' is not a valid stream/table name or alias."),
    ],
)
def test_values_that_do_not_fit_are_refused(text: str, message: str) -> None:
    with pytest.raises(StatementRefused) as refused:
        inserted(text)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("k = 'a'", (("a",),)),
        ("'a' = k AND v > 1", (("a",),)),
        ("k = 'a' OR k = 'b'", (("a",), ("b",))),
        ("k IN ('a', 'b') AND v = 1", (("a",), ("b",))),
        ("k = 'a' OR v = 1", None),
        ("k = CAST(NULL AS STRING)", ()),
        ("k > 'a'", None),
        ("k + 'b' = 'ab'", None),
    ],
)
def test_where_says_which_keys_can_match(where: str, keys: tuple[tuple[str, ...], ...] | None) -> None:
    assert lookup(f"SELECT * FROM t WHERE {where};").keys == keys


def test_keys_of_several_columns_and_windows_are_found() -> None:
    found = lookup("SELECT v FROM m WHERE (a = 1 OR a = 2) AND b IN ('x', 'y');")
    assert found.keys == ((1, "x"), (1, "y"), (2, "x"), (2, "y"))
    found = lookup(
        "SELECT * FROM w WHERE k = 1 AND WINDOWSTART >= 10 AND '1970-01-01T00:00:00.020' > WINDOWEND;"
    )
    assert (found.keys, found.starts, found.ends) == (((1,),), Bounds(10), Bounds(None, 20))
    assert [column.name for column in found.schema.value] == ["K", "WINDOWSTART", "WINDOWEND", "V"]
    assert lookup("SELECT v FROM t WHERE k >= 'a' AND k < 'c';").key_range == ("a", "c")


def test_other_queries_are_plans_that_run_to_the_end() -> None:
    (statement,) = parse("SELECT v, COUNT(*) FROM t GROUP BY v;")
    assert isinstance(statement, Select)
    found = analyze_pull(statement, WORLD)
    assert found.lookup is None
    assert found.plan is not None
    assert found.reads == ("T",)


def test_conditions_with_very_many_alternatives_leave_the_key_open() -> None:
    pairs = " AND ".join(f"(k = 'a{number}' OR k = 'b{number}')" for number in range(60))
    assert lookup(f"SELECT * FROM t WHERE {pairs};").keys is None
    listed = ", ".join(map(str, range(900)))
    texts = ", ".join(f"'{number}'" for number in range(900))
    assert lookup(f"SELECT * FROM m WHERE a IN ({listed}) AND b IN ({texts});").keys is None
