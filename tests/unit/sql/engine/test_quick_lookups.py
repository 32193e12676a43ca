import pytest

from penstock.sql.analysis.pulling import analyze_pull
from penstock.sql.engine.quick_lookups import QuickLookups, shape_of
from penstock.sql.engine.results import Header
from penstock.sql.engine.state import State
from penstock.sql.parsing.parser import parse
from penstock.sql.parsing.statements import Select
from penstock.streams.kernel.records import Row
from tests.unit.sql.analysis.catalogs import World

WORLD = World()
WORLD.run(
    """CREATE TABLE t (k STRING PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
    CREATE TABLE n (k BIGINT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='n', VALUE_FORMAT='JSON');
    CREATE TABLE d (k DOUBLE PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='d', VALUE_FORMAT='JSON');
    CREATE TABLE m (a STRING PRIMARY KEY, b INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='m', FORMAT='JSON');
    CREATE STREAM s (k STRING KEY, v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"""
)


@pytest.fixture
def state() -> State:
    return State(sources=dict(WORLD.sources))


def remembered(state: State, text: str, properties: dict[str, str] | None = None) -> QuickLookups:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    planned = analyze_pull(statement, WORLD)
    quick = QuickLookups()
    schema = planned.lookup.schema if planned.lookup else planned.plan.schema
    quick.remember(text, properties or {}, state, planned, Header("q", schema))
    return quick


@pytest.mark.parametrize(
    ("first", "second", "key"),
    [
        (
            "SELECT * FROM t WHERE k = 'a';",
            "SELECT * FROM t WHERE k = 'b -- ? /* \"x\" ';",
            ('b -- ? /* "x" ',),
        ),
        ("SELECT v FROM t WHERE 'a' = k LIMIT 5;", "SELECT v FROM t WHERE '' = k LIMIT 5;", ("",)),
        ("SELECT * FROM n WHERE k = 5;", "SELECT * FROM n WHERE k = 123456789;", (123456789,)),
    ],
)
def test_another_key_is_another_literal(state: State, first: str, second: str, key):
    found = remembered(state, first).find(second, {}, state)
    assert found is not None
    assert found[1] == key
    lookup, _ = found
    assert lookup.project(Row(key, (7,), 1)) in ((*key, 7), (7,))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WHERE k = 'a' OR v = 5;",
        "SELECT * FROM t WHERE k = 'a' AND v = 5;",
        "SELECT * FROM t WHERE k <> 'a';",
        "SELECT * FROM t WHERE k LIKE 'a';",
        "SELECT * FROM t WHERE k IN ('a');",
        "SELECT v, 'a' FROM t;",
        "SELECT * FROM t WHERE NOT (k = 'a');",
        "SELECT * FROM t WHERE k = UCASE('a');",
        "SELECT * FROM t WHERE v = 5;",
        "SELECT * FROM n WHERE k = -5;",
        "SELECT * FROM n WHERE k + 1 = 5;",
        "SELECT * FROM d WHERE k = 5;",
        "SELECT * FROM m WHERE a = 'a';",
        "SELECT * FROM s WHERE k = 'a';",
        "SELECT k, COUNT(*) FROM t WHERE k = 'a' GROUP BY k;",
    ],
)
def test_other_conditions_are_not_remembered(state: State, text: str):
    assert remembered(state, text).find(text, {}, state) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WHERE k = 'it''s';",
        "SELECT * FROM `t'` WHERE k = 'a;",
        "SELECT * FROM t -- '\n WHERE k = '",
        "SELECT * FROM t WHERE k = '${x}';",
        "SELECT * FROM ${t} WHERE k = 'a';",
        "SELECT * FROM t WHERE k = 1 AND v = 2;",
        "SELECT * FROM t WHERE v = 1.5;",
        "SELECT * FROM t1 WHERE v = 1e5;",
        "SELECT * FROM t WHERE v = 12345678901;",
        "SELECT * FROM t WHERE k = '" + "a" * 3000 + "';",
    ],
)
def test_texts_whose_one_literal_is_not_surely_found_have_no_shape(text: str):
    assert shape_of(text) is None


def test_another_source_or_setting_is_another_matter(state: State):
    text = "SELECT * FROM t WHERE k = 'a';"
    quick = remembered(state, text, {"x": "1"})
    assert quick.find(text, {"x": "1"}, state) is not None
    assert quick.find(text, {"x": "2"}, state) is None
    state.properties["y"] = "1"
    assert quick.find(text, {"x": "1"}, state) is None
    state.properties.clear()
    state.sources.pop("T")
    assert quick.find(text, {"x": "1"}, state) is None
