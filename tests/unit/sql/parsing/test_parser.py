"""A text becomes statements, and what does not fit is refused with its place."""

from __future__ import annotations

from decimal import Decimal

import pytest

from penstock.sql.parsing import statements as s
from penstock.sql.parsing.parser import SyntaxRefused, parse, parse_expression
from penstock.sql.parsing.variables import parse_with, substitute
from penstock.streams.plan import expressions as e
from penstock.streams.plan.nodes import JoinKind
from penstock.streams.plan.sources import SourceKind, WindowKind
from penstock.streams.plan.types import BIGINT, DOUBLE, INTEGER, STRING, Kind, array, decimal, map_of, struct


def query(text: str) -> s.Select:
    (found,) = parse(text)
    assert isinstance(found, s.Select)
    return found


def test_each_statement_has_its_own_text_and_place() -> None:
    first, second = parse("SHOW STREAMS; -- all of them\n  show tables extended ;")
    assert (first.text, second.text) == ("SHOW STREAMS;", "show tables extended ;")
    assert second.place == e.Place(2, 3)
    assert second == s.ShowTables(extended=True)


def test_names_are_in_upper_case_unless_quoted() -> None:
    (found,) = parse(
        "CREATE STREAM foo (`bar` INT KEY, \"Baz\" STRING, qux BIGINT) WITH (kafka_topic='T', partitions=2);"
    )
    assert isinstance(found, s.CreateSource)
    assert found.name == "FOO"
    assert [(c.name, c.type, c.role) for c in found.columns] == [
        ("bar", INTEGER, s.ColumnRole.KEY),
        ("Baz", STRING, s.ColumnRole.VALUE),
        ("QUX", BIGINT, s.ColumnRole.VALUE),
    ]
    assert found.properties == (("KAFKA_TOPIC", "T"), ("PARTITIONS", 2))


def test_types_nest() -> None:
    text = "CREATE TABLE t (a ARRAY<MAP<STRING, DECIMAL(4,2)>>, b STRUCT<x INT, y address>, h BYTES HEADER('k'));"
    (found,) = parse(text)
    assert isinstance(found, s.CreateSource)
    a, b, h = found.columns
    assert a.type == array(map_of(STRING, decimal(4, 2)))
    assert b.type == struct(("X", INTEGER), ("Y", s.NamedType(Kind.STRUCT, name="ADDRESS")))
    assert (h.role, h.header) == (s.ColumnRole.HEADERS, "k")


def test_a_query_has_all_its_clauses() -> None:
    found = query(
        "SELECT a.x, count(*) AS n, b.*, s->* FROM left_ AS a LEFT OUTER JOIN right_ b WITHIN (1 MINUTE, 2 SECONDS)"
        " GRACE PERIOD 3 HOURS ON a.id = b.id WINDOW HOPPING (SIZE 1 DAY, ADVANCE BY 1 HOUR, RETENTION 2 DAYS,"
        " GRACE PERIOD 0 SECONDS) WHERE a.x > 1 GROUP BY (a.x, b.y) HAVING count(*) > 1 EMIT FINAL LIMIT 5;"
    )
    item, count, all_, fields = found.items
    assert isinstance(item, s.SelectExpression)
    assert item.expression == e.ColumnRef("X", "A")
    assert isinstance(count, s.SelectExpression)
    assert count == s.SelectExpression(e.Call("COUNT", (e.Star(),)), "N")
    assert all_ == s.SelectAll("B")
    assert fields == s.SelectFields(e.ColumnRef("S"))
    (join,) = found.joins
    assert (join.kind, join.source.alias) == (JoinKind.LEFT, "B")
    assert join.within == s.Within(60_000, 2000, 3 * 3_600_000)
    assert found.window == s.WindowClause(WindowKind.HOPPING, 86_400_000, 3_600_000, 172_800_000, 0)
    assert found.group_by == (e.ColumnRef("X", "A"), e.ColumnRef("Y", "B"))
    assert (found.emit, found.limit) == (s.Emit.FINAL, 5)


def test_emit_is_no_alias_and_may_be_one() -> None:
    assert query("SELECT * FROM x EMIT CHANGES;").source.alias == "X"
    assert query("SELECT * FROM x EMIT;").source.alias == "EMIT"
    assert query("SELECT * FROM x PARTITION BY (a) EMIT CHANGES;").partition_by == (e.ColumnRef("A"),)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a OR b AND NOT c", "a OR (b AND (NOT c))"),
        ("a + b * -c / 2 - 1", "(a + ((b * (-c)) / 2)) - 1"),
        ("a || b + c", "a || (b + c)"),
        ("NOT a = b", "NOT (a = b)"),
        ("x->y[1]->z", "((x->y)[1])->z"),
        ("a BETWEEN 1 AND 2 AND b", "(a BETWEEN 1 AND 2) AND b"),
    ],
)
def test_operators_bind_as_they_should(text: str, meant: str) -> None:
    assert parse_expression(text) == parse_expression(meant)


def test_numbers_have_the_smallest_type_that_fits() -> None:
    assert parse_expression("-2147483648") == e.Literal(-2147483648, INTEGER)
    assert parse_expression("2147483648") == e.Literal(2147483648, BIGINT)
    assert parse_expression("0.01") == e.Literal(Decimal("0.01"), decimal(3, 2))
    assert parse_expression("12.50") == e.Literal(Decimal("12.50"), decimal(4, 2))
    assert parse_expression("1E3") == e.Literal(1000.0, DOUBLE)
    assert parse_expression("'it''s'") == e.Literal("it's", STRING)


def test_lambdas_know_their_parameters() -> None:
    assert parse_expression("reduce(a, 0, (s, x) => s + x + y)") == e.Call(
        "REDUCE",
        (
            e.ColumnRef("A"),
            e.Literal(0, INTEGER),
            e.Lambda(
                ("S", "X"),
                e.Arithmetic(
                    "+", e.Arithmetic("+", e.LambdaVariable("S"), e.LambdaVariable("X")), e.ColumnRef("Y")
                ),
            ),
        ),
    )


def test_constructors_and_functions_of_the_same_name() -> None:
    assert parse_expression("MAP('a' := 1)") == e.MakeMap(((e.Literal("a", STRING), e.Literal(1, INTEGER)),))
    assert parse_expression("STRUCT(f := 1)") == e.MakeStruct((("F", e.Literal(1, INTEGER)),))
    assert parse_expression("ARRAY[]") == e.MakeArray(())
    assert parse_expression("DATE('x')") == e.Call("DATE", (e.Literal("x", STRING),))
    assert parse_expression("DATEADD(DAYS, 1, day)") == e.Call(
        "DATEADD", (e.TimeUnit("DAYS"), e.Literal(1, INTEGER), e.ColumnRef("DAY"))
    )


def test_a_function_in_python_keeps_its_program() -> None:
    (found,) = parse(
        "CREATE FUNCTION twice(x INT) RETURNS INT LANGUAGE PYTHON AS $$\ndef twice(x): return x; x\n$$;"
    )
    assert isinstance(found, s.CreateFunction)
    assert (found.kind, found.parameters, found.source.strip()) == (
        "SCALAR",
        (("X", INTEGER),),
        "def twice(x): return x; x",
    )


def test_other_statements() -> None:
    text = """TERMINATE CSAS_x_1; PAUSE ALL; EXPLAIN SELECT * FROM x; EXPLAIN q_1; SET 'a' = 'b'; DEFINE x = 'y';
    INSERT INTO x (a, b) VALUES (1, 'c'); DROP TABLE IF EXISTS t DELETE TOPIC; ALTER STREAM x ADD COLUMN a INT, ADD b STRING;
    PRINT 'Topic' FROM BEGINNING LIMIT 3; ASSERT NOT EXISTS TOPIC foo TIMEOUT 3 SECONDS; DESCRIBE tables;
    CREATE SOURCE CONNECTOR c WITH ("a.b" = 'c'); LIST SOURCE CONNECTORS;"""
    found = parse(text)
    assert found[0] == s.Terminate(query_id="CSAS_x_1")
    assert found[1] == s.Pause(query_id=None)
    assert isinstance(found[2], s.Explain)
    assert found[2].statement is not None
    assert found[2].statement.text == "SELECT * FROM x;"
    assert found[3] == s.Explain(query_id="Q_1")
    assert found[6] == s.InsertValues(
        name="X", columns=("A", "B"), values=(e.Literal(1, INTEGER), e.Literal("c", STRING))
    )
    assert found[7] == s.Drop(name="T", kind=SourceKind.TABLE, if_exists=True, delete_topic=True)
    assert found[8] == s.AlterSource(
        name="X", kind=SourceKind.STREAM, columns=(("A", INTEGER), ("B", STRING))
    )
    assert found[9] == s.Print(topic="Topic", from_beginning=True, limit=3)
    assert found[10] == s.AssertTopic(topic="foo", timeout_ms=3000, exists=False)
    assert found[11] == s.DescribeTables()
    assert found[12] == s.CreateConnector(name="C", kind="SOURCE", properties=(("a.b", "c"),))
    assert found[13] == s.ShowConnectors(kind="SOURCE")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELEC * FROM x;", "line 1:1: Syntax Error\nUnknown statement 'SELEC'\nDid you mean 'SELECT'?"),
        ("SELECT * FROM x", "line 1:16: Syntax Error\nmissing ';' at '<EOF>'"),
        ("SELECT *\nFROM ;", "line 2:6: Syntax Error\nSyntax error at or near ';' at line 2:6"),
        ("SELECT CAST(a AS NULL) FROM x;", "Syntax error at or near 'NULL' at line 1:18"),
        ("SELECT a FROM x GROUP BY (a, b), (c);", "line 1:28: Syntax Error\nmissing ')' at ','"),
        ("CREATE STREAM s (from INT);", '"from" is a reserved keyword'),
        ("SELECT 9223372036854775808 FROM x;", "Invalid numeric literal: 9223372036854775808"),
        (
            "CREATE TABLE t AS SELECT * FROM x LIMIT 1;",
            "CREATE TABLE AS SELECT statements don't support LIMIT clause.",
        ),
        ("CREATE STREAM s (a DECIMAL(2, 3));", "DECIMAL precision must be >= scale: DECIMAL(2,3)"),
        (
            "CREATE STREAM s (a STRUCT<x INT, x STRING>);",
            "names found in STRUCT: '`X` INTEGER' and '`X` STRING'",
        ),
        ("RUN SCRIPT 'x';", "Unknown statement 'RUN'"),
        ("SELECT " + "(" * 2000 + "1;", "nested too deeply"),
        ("SELECT 'open FROM x;", "Syntax error at or near ''' at line 1:8"),
    ],
)
def test_a_text_that_is_no_statement_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SyntaxRefused) as refused:
        parse(text)
    assert message in str(refused.value)


def test_scripts_are_for_the_prompt() -> None:
    assert parse("RUN SCRIPT 'x.sql';", scripts=True) == [s.RunScript(path="x.sql")]


def test_variables_stand_for_names_literals_and_within_texts() -> None:
    variables = {"name": "orders", "count": "3", "text": "'a''b'", "topic": "it's", "bad": "x; DROP STREAM y"}
    text = "CREATE STREAM ${name} (a INT) WITH (kafka_topic='${topic}', partitions=${count}, x=${text}, y='${other}');"
    assert substitute(text, variables) == (
        "CREATE STREAM orders (a INT) WITH (kafka_topic='it''s', partitions=3, x='a''b', y='${other}');"
    )
    with pytest.raises(SyntaxRefused, match="Illegal argument at Line: 1, Col: 8"):
        substitute("SELECT ${bad} FROM x;", variables)


def test_variables_that_are_defined_count_for_the_statements_behind() -> None:
    text = "DEFINE t = 'a;b';\nDEFINE u = '${T}!'; PRINT '${u}'; UNDEFINE T;\n  PRINT '${t}';"
    found = parse_with(text, {"other": "1"})
    assert found[2] == s.Print(topic="a;b!")
    assert found[4] == s.Print(topic="${t}")
    assert found[4].place == e.Place(3, 3)
    assert [each.text for each in found[:2]] == ["DEFINE t = 'a;b';", "DEFINE u = 'a;b!';"]
