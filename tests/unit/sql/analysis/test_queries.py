"""What a SELECT becomes: names of columns, keys, nodes, formats."""

from __future__ import annotations

import pytest

from penstock.sql.analysis.refusals import StatementRefused
from penstock.streams.kernel.driver import Driver
from penstock.streams.plan import nodes as n
from penstock.streams.plan.expressions import ColumnRef
from penstock.streams.plan.sources import Format, Source, WindowKind
from tests.unit.sql.analysis.catalogs import World

STREAMS = """
CREATE STREAM s (k INT KEY, v INT, w STRING, p STRUCT<x INT, v INT>, l ARRAY<INT>) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE STREAM s2 (k INT KEY, v INT, z STRING) WITH (KAFKA_TOPIC='s2', VALUE_FORMAT='JSON');
CREATE TABLE t (k INT PRIMARY KEY, v INT, f STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE t2 (id STRING PRIMARY KEY, n STRING) WITH (KAFKA_TOPIC='t2', VALUE_FORMAT='JSON');
"""


def world() -> World:
    made = World()
    made.run(STREAMS)
    return made


def schema_of(text: str) -> str:
    return str(world().query(text).sink.schema)


def kinds(node: n.Node) -> list[str]:
    return [type(each).__name__ for each in n.Plan((node,)).nodes()]


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("CREATE STREAM o AS SELECT * FROM s2;", "`K` INTEGER KEY, `V` INTEGER, `Z` STRING"),
        (
            "CREATE STREAM o AS SELECT k AS id, v + 1, v FROM s;",
            "`ID` INTEGER KEY, `KSQL_COL_0` INTEGER, `V` INTEGER",
        ),
        ("CREATE STREAM o AS SELECT k, p->x, p->v FROM s;", "`K` INTEGER KEY, `X` INTEGER, `V_1` INTEGER"),
        ("CREATE STREAM o AS SELECT k, p->* FROM s;", "`K` INTEGER KEY, `X` INTEGER, `V` INTEGER"),
        ("CREATE STREAM o AS SELECT k, AS_VALUE(k) AS c FROM s;", "`K` INTEGER KEY, `C` INTEGER"),
        ("CREATE STREAM o AS SELECT * FROM s2 PARTITION BY z;", "`Z` STRING KEY, `V` INTEGER, `K` INTEGER"),
        (
            "CREATE STREAM o AS SELECT v + 1 AS key, k FROM s PARTITION BY v + 1;",
            "`KEY` INTEGER KEY, `K` INTEGER",
        ),
        ("CREATE STREAM o AS SELECT k, v FROM s PARTITION BY NULL;", "`K` INTEGER, `V` INTEGER"),
        ("CREATE STREAM o AS SELECT k, EXPLODE(l) AS e FROM s;", "`K` INTEGER KEY, `E` INTEGER"),
        (
            "CREATE TABLE o AS SELECT w, COUNT(*), SUM(v) AS sum FROM s GROUP BY w;",
            "`W` STRING KEY, `KSQL_COL_0` BIGINT, `SUM` INTEGER",
        ),
        (
            "CREATE TABLE o WITH (KEY_FORMAT='JSON') AS SELECT w, v, COUNT(*) AS n, WINDOWEND AS e FROM s"
            " WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY v, w;",
            "`V` INTEGER KEY, `W` STRING KEY, `N` BIGINT, `E` BIGINT",
        ),
        (
            "CREATE STREAM o AS SELECT * FROM s2 a JOIN t b ON a.v = b.k;",
            "`A_V` INTEGER KEY, `A_K` INTEGER, `A_Z` STRING, `B_K` INTEGER, `B_V` INTEGER, `B_F` STRING",
        ),
        (
            "CREATE STREAM o AS SELECT b.k, z, f FROM s2 a LEFT JOIN t b ON a.v = b.k;",
            "`B_K` INTEGER KEY, `Z` STRING, `F` STRING",
        ),
        (
            "CREATE STREAM o AS SELECT ROWKEY AS id, w, z FROM s FULL JOIN s2 WITHIN 1 HOUR ON s.k = s2.k;",
            "`ID` INTEGER KEY, `W` STRING, `Z` STRING",
        ),
        (
            "CREATE TABLE o AS SELECT k, n FROM t JOIN t2 ON t.f = t2.id;",
            "`K` INTEGER KEY, `N` STRING",
        ),
    ],
)
def test_columns_have_ksqldbs_names(text: str, schema: str) -> None:
    assert schema_of(text) == schema


def test_a_row_goes_from_source_to_sink_in_few_steps() -> None:
    planned = world().query("CREATE STREAM o AS SELECT k, v + 1 AS x FROM s WHERE v > 1;")
    (sink,) = planned.plan.sinks
    assert kinds(sink) == ["Read", "Filter", "Project", "Write"]
    assert (planned.sink.topic, planned.sink_partitions, planned.sink_configs) == (
        "O",
        4,
        (("cleanup.policy", "delete"),),
    )
    assert planned.reads == ("S",)


def test_a_grouping_by_another_column_goes_through_a_topic_and_carries_little() -> None:
    planned = world().query(
        "CREATE TABLE o AS SELECT w, SUM(v) FROM s WHERE k > 1 GROUP BY w HAVING COUNT(*) > 1;"
    )
    (sink,) = planned.plan.sinks
    assert kinds(sink) == [
        "Read",
        "Filter",
        "SelectKey",
        "Repartition",
        "Aggregate",
        "Filter",
        "Project",
        "Write",
    ]
    repartition = next(each for each in planned.plan.nodes() if isinstance(each, n.Repartition))
    assert str(repartition.schema) == "`W` STRING KEY, `V` INTEGER"
    assert dict(planned.sink_configs) == {"cleanup.policy": "compact"}


def test_a_grouping_by_the_key_stays_where_it_is() -> None:
    (sink,) = world().query("CREATE TABLE o AS SELECT k, COUNT(*) FROM s GROUP BY k;").plan.sinks
    assert kinds(sink) == ["Read", "Aggregate", "Project", "Write"]


def test_a_table_is_grouped_by_its_changes() -> None:
    (sink,) = world().query("CREATE TABLE o AS SELECT f, COUNT(*) FROM t GROUP BY f;").plan.sinks
    assert kinds(sink) == ["Read", "RegroupTable", "Repartition", "Aggregate", "Project", "Write"]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE o AS SELECT k, MAX(ROWTIME) FROM s GROUP BY k;",
        "CREATE TABLE o AS SELECT w, MAX(ROWTIME) FROM s GROUP BY w;",
        "CREATE STREAM o AS SELECT k, EXPLODE(ARRAY[ROWOFFSET, ROWTIME]) FROM s;",
    ],
)
def test_the_time_of_rows_may_be_aggregated_and_exploded(text: str) -> None:
    driver = Driver(world().query(text).plan)
    driver.pipe("s", key=b"\0\0\0\1", value=b'{"W":"a"}', timestamp=7)
    assert driver.outputs("O")[-1].value == b'{"KSQL_COL_0":7}'


def test_a_window_and_emit_final_are_in_the_plan() -> None:
    planned = world().query(
        "CREATE TABLE o AS SELECT w, COUNT(*) FROM s WINDOW HOPPING (SIZE 2 HOURS, ADVANCE BY 1 HOUR, RETENTION 3 HOURS,"
        " GRACE PERIOD 0 SECONDS) GROUP BY w EMIT FINAL;"
    )
    aggregate = next(each for each in planned.plan.nodes() if isinstance(each, n.Aggregate))
    assert aggregate.window is not None
    assert (aggregate.window.kind, aggregate.window.size_ms, aggregate.window.advance_ms) == (
        WindowKind.HOPPING,
        7_200_000,
        3_600_000,
    )
    assert any(isinstance(each, n.Suppress) for each in planned.plan.nodes())
    assert planned.sink.window == aggregate.window
    assert dict(planned.sink_configs)["retention.ms"] == "10800000"


def test_both_sides_of_a_join_have_its_key() -> None:
    planned = world().query(
        "CREATE STREAM o AS SELECT a.v, a.w, b.z, b.ROWTIME FROM s a JOIN s2 b WITHIN 1 DAY ON a.v = b.k;"
    )
    join = next(each for each in planned.plan.nodes() if isinstance(each, n.StreamStreamJoin))
    assert join.left.schema.key == join.right.schema.key == join.schema.key
    assert isinstance(join.left, n.Repartition)
    assert isinstance(join.right, n.Project)
    assert ColumnRef("ROWTIME") in join.right.items
    assert str(planned.sink.schema) == "`A_V` INTEGER KEY, `W` STRING, `Z` STRING, `B_ROWTIME` BIGINT"


def test_three_sources_are_joined_on_one_key_without_topics_between() -> None:
    planned = world().query(
        "CREATE STREAM o AS SELECT s2.k, t.f, s.w FROM s2 JOIN t ON s2.k = t.k JOIN s WITHIN 1 HOUR ON s.k = s2.k;"
    )
    assert not any(isinstance(each, n.Repartition) for each in planned.plan.nodes())
    assert str(planned.sink.schema) == "`S2_K` INTEGER KEY, `F` STRING, `W` STRING"


def test_a_foreign_key_names_the_right_tables_key() -> None:
    planned = world().query("CREATE TABLE o AS SELECT k, n, id FROM t LEFT JOIN t2 ON t.f = t2.id;")
    join = next(each for each in planned.plan.nodes() if isinstance(each, n.ForeignKeyJoin))
    assert join.left_key == ColumnRef("T_F")
    assert join.schema.key == join.left.schema.key


def test_a_right_side_whose_keys_name_a_schema_goes_through_a_topic() -> None:
    """Its bytes have the id of a schema before them: the same key from the left side may have another, and lie elsewhere."""
    made = world()
    made.run("CREATE TABLE a (id STRING PRIMARY KEY, n STRING) WITH (KAFKA_TOPIC='a', FORMAT='AVRO');")
    planned = made.query(
        "CREATE TABLE o WITH (FORMAT='JSON') AS SELECT k, n, id FROM t JOIN a ON t.f = a.id;"
    )
    join = next(each for each in planned.plan.nodes() if isinstance(each, n.ForeignKeyJoin))
    assert isinstance(join.right, n.Repartition)
    assert join.formats.key == join.right.formats.key == Format("JSON")


def test_the_sink_takes_its_formats_from_with_and_else_from_the_source() -> None:
    made = world()
    made.run(
        "CREATE STREAM d (k STRING KEY, v INT, w INT) WITH (KAFKA_TOPIC='d', FORMAT='DELIMITED', VALUE_DELIMITER='|');"
    )
    inherits = made.query("CREATE STREAM o AS SELECT * FROM d;").sink
    assert (inherits.formats.key.name, inherits.formats.value.property("delimiter")) == ("DELIMITED", "|")
    other = made.query("CREATE STREAM o2 WITH (VALUE_FORMAT='JSON', PARTITIONS=2) AS SELECT * FROM d;")
    assert (other.sink.formats.value.name, other.sink.formats.value.properties) == ("JSON", ())
    assert other.sink_partitions == 2


def test_insert_into_writes_to_the_sink_that_is_there() -> None:
    made = world()
    made.run(
        "CREATE STREAM o (k INT KEY, d DECIMAL(4, 2), b BIGINT) WITH (KAFKA_TOPIC='o', VALUE_FORMAT='JSON');"
    )
    planned = made.query("INSERT INTO o SELECT k, 1.5 AS d, v AS b FROM s;")
    assert planned.is_insert
    assert planned.sink is made.sources["O"]
    (write,) = planned.plan.sinks
    assert isinstance(write, n.Write)
    assert write.schema.value == made.sources["O"].schema.value


def test_a_push_query_keeps_the_order_of_the_text() -> None:
    planned = world().run("SELECT v, k, ROWTIME FROM s EMIT CHANGES LIMIT 3;")
    assert not isinstance(planned, Source)
    assert planned is not None
    assert not hasattr(planned, "sink")
    assert planned.columns == (("V", False, 0), ("K", True, 0), ("ROWTIME", False, 1))  # type: ignore[union-attr]
    assert planned.limit == 3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE STREAM o AS SELECT * FROM nope;", "Failed to prepare statement: NOPE does not exist."),
        (
            "CREATE STREAM o AS SELECT * FROM `T`;",
            "Your SELECT query produces a TABLE. Please use CREATE TABLE AS SELECT",
        ),
        (
            "CREATE STREAM o AS SELECT k, nope FROM s;",
            "Line: 1, Col: 30: SELECT column 'NOPE' cannot be resolved.",
        ),
        (
            "CREATE STREAM o AS SELECT k, UCAS(w) FROM s;",
            "functions with the name 'UCAS'\nDid you mean UCASE?",
        ),
        ("CREATE STREAM o AS SELECT * FROM s22;", "S22 does not exist.\nDid you mean S2?"),
        (
            "CREATE STREAM o AS SELECT k, ww FROM s;",
            "SELECT column 'WW' cannot be resolved.\nDid you mean W?",
        ),
        ("CREATE STREAM o AS SELECT * FROM s HAVING v > 1;", "HAVING clause requires a GROUP BY clause."),
        (
            "INSERT INTO s2 SELECT k, v, w AS z FROM s LIMIT 1;",
            "INSERT INTO statements don't support LIMIT clause.",
        ),
        ("CREATE STREAM o AS SELECT k, x.v FROM s;", "'X' is not a valid stream/table name or alias."),
        (
            "CREATE STREAM o AS SELECT v FROM s;",
            "The query used to build `O` must include the key column K in its projection",
        ),
        ("CREATE STREAM o AS SELECT k FROM s;", "The projection contains no value columns."),
        (
            "CREATE STREAM o AS SELECT k, k AS k2, v FROM s;",
            "contains a key column (`K`) more than once, aliased as: K and K2.",
        ),
        ("CREATE STREAM o AS SELECT k, v, v FROM s;", "Duplicate value columns found in schema: `V` INTEGER"),
        ("CREATE STREAM o AS SELECT k, v AS k, w AS k FROM s;", "found in schema"),
        ("CREATE STREAM o AS SELECT k, v AS k FROM s;", "Value columns clash with key columns: `K`"),
        ("CREATE STREAM o AS SELECT k, ROWTIME FROM s;", "Reserved column name in select: `ROWTIME`."),
        ("CREATE STREAM o AS SELECT k, NULL FROM s;", "Can't infer a type of null."),
        (
            "CREATE STREAM o AS SELECT * FROM s WHERE v;",
            "Type error in WHERE expression: Should evaluate to boolean but is V",
        ),
        (
            "CREATE STREAM o AS SELECT * FROM s EMIT FINAL;",
            "EMIT FINAL is only supported for windowed aggregations.",
        ),
        (
            "CREATE STREAM o AS SELECT * FROM s WINDOW TUMBLING (SIZE 1 DAY);",
            "WINDOW clause requires a GROUP BY clause.",
        ),
        (
            "CREATE TABLE o AS SELECT w, v, COUNT(*) FROM s GROUP BY w;",
            "Non-aggregate SELECT expression(s) not part of GROUP BY: V",
        ),
        (
            "CREATE TABLE o AS SELECT w, COUNT(*) FROM s GROUP BY w HAVING v > 1;",
            "Non-aggregate HAVING expression not part of GROUP BY: V",
        ),
        (
            "CREATE TABLE o AS SELECT COUNT(*) FROM s GROUP BY w;",
            "must include the grouping expression W in its projection",
        ),
        (
            "CREATE TABLE o AS SELECT COUNT(*) FROM s;",
            "does not support aggregate function [COUNT(ROWTIME)] without a GROUP BY",
        ),
        (
            "CREATE TABLE o AS SELECT w FROM s GROUP BY w HAVING COUNT(*) > 1;",
            "The projection contains no value columns.",
        ),
        ("CREATE TABLE o AS SELECT w, w + 'x' FROM s GROUP BY w;", "GROUP BY requires aggregate functions"),
        (
            "CREATE TABLE o AS SELECT w, MAX(MIN(v)) FROM s GROUP BY w;",
            "Aggregate functions can not be nested: MAX(MIN())",
        ),
        (
            "CREATE TABLE o AS SELECT f, MIN(v), MAX(v) FROM t GROUP BY f;",
            "functions MIN and MAX cannot be applied to a table",
        ),
        ("CREATE TABLE o AS SELECT f, COUNT(*) FROM t GROUP BY f, f;", "Duplicate GROUP BY expression: T.F"),
        (
            "CREATE STREAM o AS SELECT * FROM s JOIN s2 ON s.k = s2.k;",
            "Stream-Stream joins must have a WITHIN clause",
        ),
        ("CREATE STREAM o AS SELECT * FROM s JOIN s ON s.k = s.k;", "self joins are not yet supported"),
        (
            "CREATE STREAM o AS SELECT v FROM s JOIN s2 WITHIN 1 DAY ON s.k = s2.k;",
            "Column 'V' is ambiguous. Could be S.V or S2.V.",
        ),
        (
            "CREATE STREAM o AS SELECT * FROM s JOIN t ON s.w = t.f;",
            "stream-table joins require to join on the table's primary key. Got S.W = T.F.",
        ),
        (
            "CREATE STREAM o AS SELECT * FROM s JOIN t ON s.w = t.k;",
            "Invalid join. Key types differ: STRING vs INTEGER",
        ),
        (
            "CREATE STREAM o AS SELECT w, f FROM s JOIN t ON s.k = t.k;",
            "must include the join expressions S.K or T.K in its projection",
        ),
        ("CREATE TABLE o AS SELECT * FROM t JOIN s ON s.k = t.k;", "table-stream joins are not supported"),
        (
            "CREATE STREAM o AS SELECT * FROM s WHERE SUM(v) > 1;",
            "Can't find any functions with the name 'SUM'",
        ),
        (
            "CREATE STREAM o AS SELECT * FROM s PARTITION BY EXPLODE(l);",
            "Can't find any functions with the name 'EXPLODE'",
        ),
        (
            "CREATE TABLE o AS SELECT w, COUNT(*) FROM s WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 2 HOURS) GROUP BY w;",
            "Got size=[3600000], grace=[82800000], retention=[7200000]",
        ),
        (
            "CREATE TABLE o AS SELECT w, COUNT(*) FROM s WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 1 DAY) GROUP BY w;",
            "less than or equal to the window's size",
        ),
        (
            "CREATE TABLE o AS SELECT w, COUNT(*) FROM s GROUP BY w EMIT FINAL;",
            "EMIT FINAL is only supported for windowed aggregations.",
        ),
        (
            "CREATE STREAM o AS SELECT s.*, s2.* FROM s JOIN s2 WITHIN 1 DAY ON s.v + 1 = s2.ROWPARTITION;",
            "must include the join",
        ),
        ("INSERT INTO s2 SELECT k, v FROM s;", "Incompatible schema between results and sink."),
        (
            "INSERT INTO t SELECT k, v, w FROM s;",
            "INSERT INTO can only be used to insert into a stream. T is a table.",
        ),
        (
            "CREATE TABLE o AS SELECT k, EXPLODE(ARRAY[1]) FROM t;",
            "Table source is not supported with table functions",
        ),
    ],
)
def test_what_no_query_can_be_is_refused_in_ksqldbs_words(text: str, message: str) -> None:
    with pytest.raises(StatementRefused) as refused:
        world().run(text)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("SELECT k, v FROM s", "SELECT k, v, w FROM s WHERE v > 1", None),
        (
            "SELECT k, v FROM s",
            "SELECT k, v FROM s2",
            "It must read the same topics. Values differ: s vs. s2",
        ),
        ("SELECT k, v FROM s", "SELECT k, w FROM s", "changed, missing or reordered: [`V` INTEGER]"),
        (
            "SELECT w, COUNT(*) AS n FROM s GROUP BY w",
            "SELECT w, COUNT(*) AS n FROM s WHERE v = 1 GROUP BY w",
            None,
        ),
        (
            "SELECT w, COUNT(*) AS n FROM s GROUP BY w",
            "SELECT w, COUNT(*) AS n, SUM(k) AS m FROM s GROUP BY w",
            "Plan step of type Repartition must have matching schema.",
        ),
        (
            "SELECT k, COUNT(*) AS n FROM s GROUP BY k",
            "SELECT k, COUNT(*) AS n, COUNT(v) AS m FROM s GROUP BY k",
            "Plan step of type Aggregate must have matching schema.",
        ),
        (
            "SELECT k, SUM(v) AS n FROM s GROUP BY k",
            "SELECT k, SUM(v + 1) AS n FROM s GROUP BY k",
            "must have matching calls. Values differ: [SUM(V)] vs. [SUM((V + 1))]",
        ),
    ],
)
def test_a_query_is_replaced_where_its_state_stays(old: str, new: str, problem: str | None) -> None:
    made = world()
    kind = "TABLE" if "GROUP" in old else "STREAM"
    made.query(f"CREATE {kind} o AS {old};")
    replacing = f"CREATE OR REPLACE {kind} o AS {new};"
    if problem is None:
        assert made.query(replacing).sink.name == "O"
        return
    with pytest.raises(StatementRefused) as refused:
        made.run(replacing)
    assert problem in refused.value.message


@pytest.mark.parametrize(
    "text", ["CREATE STREAM o AS SELECT k, {} AS x FROM s;", "SELECT {} FROM s EMIT CHANGES;"]
)
def test_a_statement_without_end_is_refused(text: str) -> None:
    with pytest.raises(StatementRefused, match="nested too deeply"):
        world().run(text.format(" + ".join(["v"] * 5000)))
