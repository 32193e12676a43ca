"""CREATE STREAM and CREATE TABLE, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest

from penstock.schemas.model import Referred
from penstock.sql.analysis.creating import NewTopic, topic_of
from penstock.sql.analysis.inference import remembered
from penstock.sql.analysis.queries import check_sink_topic, plan_query
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.replacing import altered
from penstock.sql.parsing.parser import parse
from penstock.sql.parsing.statements import AlterSource, CreateAsSelect, CreateSource
from penstock.streams.formats.registry import FoundSchema
from penstock.streams.plan.schema import Column
from penstock.streams.plan.sources import Source, Timestamp, Window, WindowKind
from penstock.streams.plan.types import BIGINT, BYTES, INTEGER, STRING, array, struct
from tests.unit.sql.analysis.catalogs import World


def created(text: str, world: World | None = None) -> Source:
    found = (world or World()).run(text)
    assert isinstance(found, Source)
    return found


def test_a_stream_has_its_columns_formats_and_time() -> None:
    source = created(
        "CREATE STREAM s (id INT KEY, v STRING, t BIGINT, h BYTES HEADER('x')) WITH (KAFKA_TOPIC='t', KEY_FORMAT='json',"
        " VALUE_FORMAT='delimited', VALUE_DELIMITER='TAB', TIMESTAMP='t');"
    )
    assert source.schema.key == (Column("ID", INTEGER),)
    assert source.schema.value == (Column("V", STRING), Column("T", BIGINT), Column("H", BYTES))
    assert source.schema.headers == (("H", "x"),)
    assert (source.formats.key.name, source.formats.value.name) == ("JSON", "DELIMITED")
    assert source.formats.value.property("delimiter") == "TAB"
    assert source.timestamp == Timestamp("T")


def test_formats_may_come_from_the_server() -> None:
    world = World(properties={"ksql.persistence.default.format.value": "JSON"})
    source = created("CREATE STREAM s (v STRING) WITH (KAFKA_TOPIC='t');", world)
    assert (source.formats.key.name, source.formats.value.name) == ("KAFKA", "JSON")


def test_single_values_stand_bare_if_wanted() -> None:
    text = "CREATE STREAM s (v STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON'{});"
    assert created(text.format("")).formats.wrap_value
    assert not created(text.format(", WRAP_SINGLE_VALUE=false")).formats.wrap_value
    world = World(properties={"ksql.persistence.wrap.single.values": "false"})
    assert not created(text.format(""), world).formats.wrap_value


def test_a_windowed_table_says_its_window() -> None:
    text = "CREATE TABLE t (k STRING PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', {});"
    assert created(text.format("WINDOW_TYPE='tumbling', WINDOW_SIZE='30 seconds'")).window == Window(
        WindowKind.TUMBLING, 30_000
    )
    assert created(text.format("WINDOW_TYPE='Session'")).window == Window(WindowKind.SESSION, 0)


def test_types_by_name_are_looked_up() -> None:
    source = created(
        "CREATE TYPE address AS STRUCT<city STRING>; CREATE TYPE addresses AS ARRAY<address>;"
        "CREATE STREAM s (a addresses) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"
    )
    assert source.schema.value[0].type == array(struct(("CITY", STRING)))


def test_a_topic_that_is_not_there_is_made_with_partitions() -> None:
    (statement,) = parse(
        "CREATE TABLE t (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='new', VALUE_FORMAT='JSON', PARTITIONS=3, REPLICAS=1);"
    )
    assert isinstance(statement, CreateSource)
    assert topic_of(statement, World()) == NewTopic("new", 3, 1, (("cleanup.policy", "compact"),))
    assert topic_of(statement, World(topics={"new": 3})) is None


@pytest.mark.parametrize(
    ("columns", "properties", "message"),
    [
        ("v INT", "VALUE_FORMAT='foo'", "Unknown format: foo"),
        (
            "v INT",
            "KEY_FORMAT='KAFKA'",
            "Statement is missing the 'VALUE_FORMAT' property from the WITH clause.",
        ),
        (
            "v INT",
            "FORMAT='JSON', KEY_FORMAT='JSON'",
            "Cannot supply both 'KEY_FORMAT' and 'FORMAT' properties",
        ),
        ("v INT, v INT", "VALUE_FORMAT='JSON'", "Duplicate column names: `V`"),
        ("rowtime INT", "VALUE_FORMAT='JSON'", "'ROWTIME' is a reserved column name."),
        (
            "k INT PRIMARY KEY",
            "VALUE_FORMAT='JSON'",
            "Line: 1, Col: 18: Column `K` is a 'PRIMARY KEY' column",
        ),
        ("k BOOLEAN KEY", "VALUE_FORMAT='JSON'", "The 'KAFKA' format does not support type 'BOOLEAN'"),
        ("k MAP<INT, INT> KEY", "FORMAT='JSON'", "Key column name: `K`. Column type: MAP<INTEGER, INTEGER>."),
        (
            "v ARRAY<INT>",
            "VALUE_FORMAT='DELIMITED'",
            "The 'DELIMITED' format does not support type 'ARRAY', column: `V`",
        ),
        (
            "v INT, w INT",
            "VALUE_FORMAT='KAFKA'",
            "only supports a single field. Got: [`V` INTEGER, `W` INTEGER]",
        ),
        ("v MAP<INT, INT>", "VALUE_FORMAT='JSON'", "JSON only supports MAP types with STRING keys"),
        (
            "v INT",
            "VALUE_FORMAT='JSON', VALUE_DELIMITER='x'",
            "JSON does not support the following configs: [delimiter]",
        ),
        (
            "v INT",
            "VALUE_FORMAT='JSON', COLOUR='red'",
            "Invalid config variable(s) in the WITH clause: COLOUR",
        ),
        ("v INT", "VALUE_FORMAT='JSON', TIMESTAMP='x'", "does not exist in the schema: 'X'"),
        (
            "v INT",
            "VALUE_FORMAT='JSON', TIMESTAMP='v'",
            "Timestamp column, `V`, should be LONG(INT64), TIMESTAMP",
        ),
        ("v INT", "VALUE_FORMAT='JSON', WINDOW_TYPE='HOPPING'", "HOPPING windows require 'WINDOW_SIZE'"),
        ("v INT", "VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION'", "Windowed sources require a key column."),
        ("v thing", "VALUE_FORMAT='JSON'", "Cannot resolve unknown type: THING"),
        (
            "h INT HEADERS",
            "VALUE_FORMAT='JSON'",
            "Invalid type for HEADERS column: expected ARRAY<STRUCT<`KEY` STRING",
        ),
    ],
)
def test_what_does_not_fit_is_refused(columns: str, properties: str, message: str) -> None:
    with pytest.raises(StatementRefused) as refused:
        created(f"CREATE STREAM s ({columns}) WITH (KAFKA_TOPIC='t', {properties});")
    assert message in refused.value.message


def test_a_topic_without_partitions_and_a_name_twice_are_refused() -> None:
    (statement,) = parse("CREATE STREAM s (v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');")
    assert isinstance(statement, CreateSource)
    with pytest.raises(StatementRefused, match="Topic 't' does not exist") as refused:
        topic_of(statement, World())
    assert "WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=2);" in refused.value.message
    world = World()
    created(statement.text, world)
    with pytest.raises(
        StatementRefused, match="Cannot add stream 'S': A stream with the same name already exists"
    ):
        created(statement.text, world)


def test_only_columns_at_the_end_may_be_added() -> None:
    text = "CREATE {}STREAM s (k INT KEY, v INT{}) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"
    world = World()
    created(text.format("", ""), world)
    assert len(created(text.format("OR REPLACE ", ", w INT"), world).schema.value) == 2
    with pytest.raises(StatementRefused, match="changed, missing or reordered"):
        created(text.format("OR REPLACE ", "").replace("v INT", "x INT"), world)
    (alter,) = parse("ALTER STREAM s ADD COLUMN x STRING;")
    assert isinstance(alter, AlterSource)
    assert altered(alter, world).schema.value[-1] == Column("X", STRING)


def test_patterns_of_times_are_checked() -> None:
    text = "CREATE STREAM s (t STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', TIMESTAMP='t', TIMESTAMP_FORMAT='{}');"
    assert created(text.format("yyyy-MM-dd")).timestamp == Timestamp("T", "yyyy-MM-dd")
    with pytest.raises(StatementRefused, match="Invalid datetime format for config:TIMESTAMP_FORMAT"):
        created(text.format("yyyy{"))


def test_a_statement_means_the_same_when_its_topic_has_grown_but_new_ones_are_checked() -> None:
    text = "CREATE STREAM s (v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=2);"
    world = World(topics={"t": 3})
    assert created(text, world).topic == "t"
    (statement,) = parse(text)
    assert isinstance(statement, CreateSource)
    with pytest.raises(
        StatementRefused, match="with different partition/replica configuration than required"
    ):
        topic_of(statement, world)


def test_a_sinks_topic_has_the_partitions_that_are_wanted() -> None:
    world = World(topics={"O": 1})
    created(
        "CREATE STREAM s (k INT KEY, v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=2);", world
    )
    for text, fits in (
        ("CREATE STREAM o AS SELECT * FROM s;", False),
        ("CREATE STREAM o WITH (PARTITIONS=1) AS SELECT * FROM s;", True),
        ("CREATE STREAM p AS SELECT * FROM s;", True),
    ):
        (statement,) = parse(text)
        assert isinstance(statement, CreateAsSelect)
        planned = plan_query(statement, world, "Q")
        if fits:
            check_sink_topic(statement, planned, world)
        else:
            with pytest.raises(StatementRefused, match=r"KSQL expects 2 partitions \(topic has 1\)"):
                check_sink_topic(statement, planned, world)


class Registered:
    """One subject with one schema."""

    def __init__(self, subject: str, text: str) -> None:
        self.subject, self.found = subject, FoundSchema(7, "AVRO", text)

    def latest(self, subject: str) -> FoundSchema | None:
        return self.found if subject == self.subject else None

    def by_id(self, schema_id: int, subject: str | None = None) -> FoundSchema | None:
        return self.found if schema_id == self.found.id else None

    def by_guid(self, guid: UUID) -> FoundSchema | None:
        return None

    def register(
        self, subject: str, kind: str, text: str, references: tuple[tuple[str, str, int], ...] = ()
    ) -> int:
        raise AssertionError("analysis registers nothing")

    def texts_of(self, references: Sequence[tuple[str, str, int]]) -> Mapping[str, Referred]:
        return {}


FIELDS = '[{"name":"a","type":"long"},{"name":"b","type":["null","string"]}]'
RECORD = '{"type":"record","name":"R","namespace":"n","fields":' + FIELDS + "}"


@pytest.mark.parametrize(
    ("properties", "names", "full_name"),
    [("", ("A", "B"), None), (", VALUE_SCHEMA_ID=7", ("a", "b"), "n.R")],
)
def test_columns_come_from_the_registry_and_are_remembered(
    properties: str, names: tuple[str, str], full_name: str | None
) -> None:
    text = f"CREATE STREAM s (k INT KEY) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO'{properties});"
    world = World(lookup=Registered("t-value", RECORD))
    source = created(text, world)
    assert source.schema.key == (Column("K", INTEGER),)
    assert source.schema.value == (Column(names[0], BIGINT), Column(names[1], STRING))
    assert source.formats.value.property("full_name") == full_name
    (statement,) = parse(text)
    assert isinstance(statement, CreateSource)
    known = remembered(statement, source, world)
    assert created(text, World(properties=known)) == source


def test_a_registry_that_is_not_there_is_told() -> None:
    with pytest.raises(StatementRefused, match="no schema registry is configured"):
        created("CREATE STREAM s WITH (KAFKA_TOPIC='t', VALUE_FORMAT='AVRO');")


def test_the_columns_of_a_query_have_to_stand_in_the_schema_that_is_named() -> None:
    world = World(lookup=Registered("", RECORD))
    created(
        "CREATE STREAM s (`a` BIGINT, `b` STRING, c INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='AVRO');", world
    )
    text = "CREATE STREAM {} WITH (VALUE_SCHEMA_ID=7) AS SELECT {} FROM s;"
    assert world.query(text.format("o", "`a`, `b`")).sink.formats.value.property("full_name") == "n.R"
    with pytest.raises(StatementRefused, match="value columns are changed, missing or reordered") as refused:
        world.query(text.format("p", "`b`, `a`"))
    assert "Schema from schema registry is [`a` BIGINT, `b` STRING]" in refused.value.message
