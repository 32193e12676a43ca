"""CREATE STREAM and CREATE TABLE of a topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from penstock.sql.analysis import inference
from penstock.sql.analysis.catalog import Catalog
from penstock.sql.analysis.checking import prefix_of, unprepared
from penstock.sql.analysis.formats import check_formats, format_of, rules_of, value_wrapping
from penstock.sql.analysis.properties import OF_SOURCE, With, duration_ms, read_with
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.analysis.replacing import check_replaces
from penstock.sql.analysis.types import resolved
from penstock.sql.parsing.statements import ColumnDeclaration, ColumnRole, CreateSource
from penstock.streams.plan.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, Column, Schema
from penstock.streams.plan.sources import Formats, Source, SourceKind, Timestamp, Window, WindowKind
from penstock.streams.plan.types import BYTES, STRING, Kind, array, struct

SYSTEM_COLUMNS: Final = frozenset((*PSEUDO_COLUMNS, *WINDOW_BOUNDS))
HEADERS_TYPE: Final = array(struct(("KEY", STRING), ("VALUE", BYTES)))
DEFAULT_KEY_FORMAT: Final = "ksql.persistence.default.format.key"
DEFAULT_VALUE_FORMAT: Final = "ksql.persistence.default.format.value"
WRAP_SINGLE_VALUES: Final = "ksql.persistence.wrap.single.values"


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that has to be made before a source can be on it."""

    name: str
    partitions: int
    replicas: int | None
    configs: tuple[tuple[str, str], ...]


def create_source(statement: CreateSource, catalog: Catalog) -> Source:
    """What the statement declares. The caller has looked before whether it is there already (IF NOT EXISTS), and at its topic
    (`topic_of`): a statement that is carried out again after a restart says the same, whatever has become of the topic."""
    statement = resolved(statement, catalog)
    given = read_with(statement.properties, OF_SOURCE)
    topic = given.text("KAFKA_TOPIC")
    if topic is None:
        raise unprepared('Missing required property "KAFKA_TOPIC" which has no default value.')
    _check_columns(statement)
    formats = _formats(statement, given, catalog)
    columns, formats = inference.with_inferred(statement, topic, given, formats, catalog)
    schema = _schema(statement, columns)
    wrap = value_wrapping(
        formats.value,
        len(schema.value) - len(schema.headers),
        given.flag("WRAP_SINGLE_VALUE"),
        catalog.property(WRAP_SINGLE_VALUES),
    )
    formats = replace(formats, wrap_value=wrap)
    source = Source(
        name=statement.name,
        kind=statement.kind,
        topic=topic,
        schema=schema,
        formats=formats,
        timestamp=timestamp_of(given, schema),
        window=_window(given),
        statement=statement.text,
        is_read_only=statement.is_source,
    )
    _check_existing(statement, catalog)
    if source.kind is SourceKind.TABLE and not schema.key:
        raise StatementRefused("Tables require a PRIMARY KEY. Please define the PRIMARY KEY.")
    check_formats(schema, formats)
    if source.window is not None and not schema.key:
        raise StatementRefused("Windowed sources require a key column.")
    existing = catalog.source(statement.name)
    if existing is not None and statement.or_replace:
        check_replaces(existing, source)
    return source


def topic_of(statement: CreateSource, catalog: Catalog) -> NewTopic | None:
    """The topic that has to be made; None where it is there."""
    given = read_with(statement.properties, OF_SOURCE)
    _check_topic_properties(given, is_compacted=statement.kind is SourceKind.TABLE)
    topic = given.text("KAFKA_TOPIC") or ""
    partitions = catalog.topic_partitions(topic)
    wanted, replicas = given.number("PARTITIONS"), given.number("REPLICAS")
    if partitions is not None:
        check_existing_topic(topic, wanted, replicas, catalog)
        return None
    if wanted is None:
        raise StatementRefused(
            f"Topic '{topic}' does not exist. If you want to create a new topic for the stream/table please re-run the "
            "statement providing the required 'PARTITIONS' configuration in the WITH clause (and optionally 'REPLICAS'). "
            f"For example: {_with_partitions(statement.text)}"
        )
    return NewTopic(topic, wanted, replicas, topic_configs(given, statement.kind))


def topic_configs(given: With, kind: SourceKind, *, policy: str | None = None) -> tuple[tuple[str, str], ...]:
    policy = policy or ("compact" if kind is SourceKind.TABLE else "delete")
    configs = [("cleanup.policy", policy)]
    retention = given.number("RETENTION_MS")
    if retention is not None and policy != "compact":
        configs.append(("retention.ms", str(retention)))
    return tuple(configs)


def _check_topic_properties(given: With, *, is_compacted: bool) -> None:
    if given.text("CLEANUP_POLICY") is not None:
        raise StatementRefused(
            "Invalid config variable in the WITH clause: CLEANUP_POLICY.\nThe CLEANUP_POLICY config is automatically "
            "inferred based on the type of source (STREAM or TABLE).\nUsers can't set the CLEANUP_POLICY config manually."
        )
    if is_compacted and given.number("RETENTION_MS") is not None:
        raise StatementRefused(
            "Invalid config variable in the WITH clause: RETENTION_MS. Non-windowed tables do not support retention."
        )


def check_existing_topic(
    topic: str, wanted: int | None, wanted_replicas: int | None, catalog: Catalog
) -> None:
    """A topic that is there has the partitions and replicas that are wanted."""
    partitions = catalog.topic_partitions(topic)
    replicas = catalog.topic_replicas(topic)
    same_partitions = wanted is None or wanted == partitions
    same_replicas = wanted_replicas is None or replicas is None or wanted_replicas in (replicas, -1)
    if not same_partitions or not same_replicas:
        raise StatementRefused(
            f"A Kafka topic with the name '{topic}' already exists, with different partition/replica configuration than "
            f"required. KSQL expects {partitions if wanted is None else wanted} partitions (topic has {partitions}), "
            f"and {wanted_replicas if wanted_replicas is not None else replicas} replication factor (topic has {replicas})."
        )


def _with_partitions(text: str) -> str:
    head, bracket, tail = text.rstrip("; \n").rpartition(")")
    return f"{head}, PARTITIONS=2{bracket}{tail};"


def _check_columns(statement: CreateSource) -> None:
    """What ksqlDB says of columns before it looks at anything else."""
    is_table = statement.kind is SourceKind.TABLE
    seen: set[str] = set()
    for column in statement.columns:
        place = prefix_of(column.place)
        if column.role is (ColumnRole.KEY if is_table else ColumnRole.PRIMARY_KEY):
            instead = "'PRIMARY KEY' for tables" if is_table else "'KEY' for streams"
            raise unprepared(
                f"{place}Column `{column.name}` is a '{column.role}' column: please use {instead}.\n"
                "Tables have PRIMARY KEYs, which are unique and NON NULL.\n"
                "Streams have KEYs, which have no uniqueness or NON NULL constraints.",
                column.place,
            )
        _check_header_type(column)
        if column.name in seen:
            raise unprepared(f"Duplicate column names: `{column.name}`", column.place)
        seen.add(column.name)


def _check_header_type(column: ColumnDeclaration) -> None:
    if column.role is not ColumnRole.HEADERS:
        return
    if column.header is not None and column.type != BYTES:
        raise unprepared(
            f"Invalid type for HEADER('{column.header}') column: expected BYTES, got {column.type}",
            column.place,
        )
    if column.header is None and column.type != HEADERS_TYPE:
        raise unprepared(
            f"Invalid type for HEADERS column: expected {HEADERS_TYPE}, got {column.type}", column.place
        )


def _formats(statement: CreateSource, given: With, catalog: Catalog) -> Formats:
    key = given.key_format or catalog.property(DEFAULT_KEY_FORMAT) or "KAFKA"
    value = given.value_format or catalog.property(DEFAULT_VALUE_FORMAT)
    if value is None:
        raise StatementRefused(
            "Statement is missing the 'VALUE_FORMAT' property from the WITH clause. Either provide one or set a default "
            f"via the '{DEFAULT_VALUE_FORMAT}' config."
        )
    check_schema_id("KEY", key, given)
    check_schema_id("VALUE", value, given)
    return Formats(
        format_of(key, given.format_properties("KEY", key, avro_key_of=statement.name)),
        format_of(value, given.format_properties("VALUE", value)),
    )


def check_schema_id(target: str, format_name: str, given: With) -> None:
    """`target` is KEY or VALUE."""
    if given.number(f"{target}_SCHEMA_ID") is not None and not rules_of(format_name).infers:
        raise StatementRefused(
            f"{target}_FORMAT should support schema inference when {target}_SCHEMA_ID is provided. "
            f"Current format is {format_name.upper()}."
        )


def _schema(statement: CreateSource, columns: Sequence[ColumnDeclaration]) -> Schema:
    if not columns:
        raise StatementRefused("The statement does not define any columns.")
    seen: set[str] = set()
    for column in columns:
        if column.name in SYSTEM_COLUMNS:
            raise StatementRefused(
                f"'{column.name}' is a reserved column name. You cannot use it as a name for a column.",
                column.place,
            )
        if column.name in seen:
            raise StatementRefused(f"Duplicate column names: `{column.name}`", column.place)
        seen.add(column.name)
    _check_headers(columns)
    key = [column for column in columns if column.role in (ColumnRole.KEY, ColumnRole.PRIMARY_KEY)]
    value = [column for column in columns if column not in key]
    return Schema(
        key=tuple(Column(column.name, column.type) for column in key),
        value=tuple(Column(column.name, column.type) for column in value),
        headers=tuple((column.name, column.header) for column in value if column.role is ColumnRole.HEADERS),
    )


def _check_headers(columns: Sequence[ColumnDeclaration]) -> None:
    seen: set[str | None] = set()
    for column in columns:
        if column.role is not ColumnRole.HEADERS:
            continue
        if None in seen:
            raise StatementRefused("Schema already contains a HEADERS column.", column.place)
        if column.header in seen:
            raise StatementRefused(
                f"Schema already contains a HEADER('{column.header}') column.", column.place
            )
        seen.add(column.header)


def timestamp_of(given: With, schema: Schema) -> Timestamp | None:
    written, pattern = given.text("TIMESTAMP"), given.text("TIMESTAMP_FORMAT")
    if written is None:
        return None
    quoted = len(written) > 1 and written[0] == written[-1] and written[0] in '`"'
    name = written[1:-1] if quoted else written.upper()
    found = schema.type_of(name)
    if found is None:
        raise StatementRefused(
            f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{name}'"
        )
    if found.kind is Kind.STRING:
        if pattern is None:
            raise StatementRefused(
                "A String timestamp field has been specified without also specifying the timestamp_format"
            )
        return Timestamp(name, pattern)
    if pattern is not None:
        raise StatementRefused(
            "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column is of type STRING."
        )
    if found.kind not in (Kind.BIGINT, Kind.TIMESTAMP):
        raise StatementRefused(
            f"Timestamp column, `{name}`, should be LONG(INT64), TIMESTAMP, or a String with a timestamp_format specified."
        )
    return Timestamp(name)


def _window(given: With) -> Window | None:
    kind = given.text("WINDOW_TYPE")
    if kind is None:
        return None
    size = given.text("WINDOW_SIZE")
    return Window(WindowKind(kind.upper()), 0 if size is None else duration_ms(size))


def _check_existing(statement: CreateSource, catalog: Catalog) -> None:
    existing = catalog.source(statement.name)
    kind = statement.kind.lower()
    if existing is not None and not statement.or_replace and not statement.if_not_exists:
        raise StatementRefused(
            f"Cannot add {kind} '{statement.name}': A {existing.kind.lower()} with the same name already exists"
        )
    if statement.or_replace and (statement.is_source or (existing is not None and existing.is_read_only)):
        raise StatementRefused(
            f"Cannot add {kind} '{statement.name}': CREATE OR REPLACE is not supported on source {kind}s."
        )
