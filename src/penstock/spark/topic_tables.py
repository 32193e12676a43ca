"""Topics as tables in Spark SQL: `select … from penstock.orders`.

A table of Spark's session catalog forgets its options when it is read from a Python data source (Spark 4.3). So each
topic is a format of its own, a PenstockDataSource that knows its options, and the table only names it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from penstock.client.errors import UserError
from penstock.spark.failures import BadOption
from penstock.spark.internals.registering import register_source
from penstock.spark.options import ReadOptions, Subscription, read_options
from penstock.spark.reading.topics import Topics
from penstock.spark.registry_options import is_registry_option
from penstock.spark.source import PenstockDataSource
from penstock.spark.typed_columns import typed_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_MEMORY = "in-memory"
# What Spark's catalog knows of a table, which it hands over as options when the table is made.
TABLE_PROPERTIES = (
    "owner",
    "provider",
    "location",
    "external",
    "is_managed_location",
    "path",
    "comment",
    "collation",
)

# The options of each session's tables: to make one anew takes a moment, and most stay as they are.
_made: WeakKeyDictionary[SparkSession, dict[str, dict[str, str]]] = WeakKeyDictionary()


def catalog(
    spark: SparkSession,
    bootstrap: str = "localhost:9092",
    *,
    values: Mapping[str, str] | None = None,
    topics: Iterable[str] | None = None,
    options: Mapping[str, str] | None = None,
    database: str = "penstock",
) -> dict[str, str]:
    """Makes a table of each topic, in the session's database `penstock`; says which table is which topic.

    `values` has for a topic the columns that its JSON values have, as the option valueSchema; `topics` are all that are
    not internal unless they are named; `options` are those of format("penstock"), for all tables. Called again, it
    brings the tables up to date: new topics have one, deleted ones have none.
    """
    if not re.fullmatch(r"[A-Za-z]\w*", database, re.ASCII):
        raise BadOption("database", f"must be a name of letters, digits and '_', not '{database}'")
    if spark.conf.get("spark.sql.catalogImplementation") != IN_MEMORY:
        raise ValueError(
            "topics are tables of one session only: its catalog must be in-memory, and is Hive's"
        )
    shared = {"kafka.bootstrap.servers": bootstrap, **(options or {})}
    names = _topic_names(shared, topics)
    for topic in values or ():
        if topic not in names:
            raise BadOption("values", f"names the topic '{topic}', which does not exist")
    tables = table_names(names)
    wanted = {}
    for table, topic in tables.items():
        own = {**shared, "subscribe": topic}
        if values is not None and topic in values:
            own["valueSchema"] = values[topic]
        # What is wrong in one is told before any is made.
        wanted[table] = _with_versions(own, read_options(own, streaming=None), is_named=topics is not None)
    _create_database(spark, database)
    made = _made.setdefault(spark, {})
    full = {f"{database}.{table}": own for table, own in wanted.items()}
    for name in [name for name in made if name.startswith(f"{database}.") and name not in full]:
        spark.sql(f"drop table if exists {name}")
        del made[name]
    for name, own in full.items():
        if made.get(name) != own or not spark.catalog.tableExists(name):
            source = _format(name.replace(".", "_"), own)
            spark.sql(f"drop table if exists {name}")
            register_source(spark, source)
            spark.sql(f"create table {name} using {source.name()}")
            made[name] = own
    return tables


def _with_versions(own: dict[str, str], read: ReadOptions, *, is_named: bool) -> dict[str, str]:
    """A table's columns stay what they are, so its schemas are those of the versions that are the newest now.

    Of all topics, those that the registry does not know have bytes.
    """
    found = dict(own)
    for each in read.formats:
        if each.schema is not None:
            continue
        try:
            (typed,) = typed_columns((each,), read.subscription)
        except UserError:
            if is_named:
                raise
            found = {option: text for option, text in found.items() if not _is_about(each.name, option)}
            continue
        found[f"{each.name}SchemaVersion"] = str(typed.schema.version)
    if not any(option.lower().endswith("format") for option in found):
        found = {
            option: text
            for option, text in found.items()
            if not is_registry_option(option) and option.lower() not in ("includeerrors", "valuemode")
        }
    return found


def _is_about(column: str, option: str) -> bool:
    name = option.lower()
    return name in (
        f"includeraw{column}",
        *(f"{column}{what}" for what in ("format", "subject", "schemaversion", "message")),
    )


def table_names(topics: Iterable[str]) -> dict[str, str]:
    """A table's name is its topic's, in small letters and with '_' for what Spark does not permit.

    Of topics that would have the same, the one that needs no change has it, and others a number: a_b, then a_b_2.
    """
    tables: dict[str, str] = {}
    for topic in sorted(topics, key=lambda topic: (_plain(topic) != topic, topic)):
        name, number = _plain(topic), 2
        while name in tables:
            name, number = f"{_plain(topic)}_{number}", number + 1
        tables[name] = topic
    return dict(sorted(tables.items()))


def _plain(topic: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", topic.lower())


def _topic_names(options: Mapping[str, str], named: Iterable[str] | None) -> set[str]:
    subscription = Subscription(pattern=".*") if named is None else Subscription(topics=tuple(named))
    read = read_options({**options, "subscribePattern": ".*"}, streaming=None)
    cluster = Topics(subscription, read.properties, is_read_committed=read.is_read_committed)
    try:
        found = {place.topic for place in cluster.partitions()}
    finally:
        cluster.close()
    # Kafka tells only its own internal topics; those of other programs begin in the same way.
    return found if named is not None else {topic for topic in found if not topic.startswith("__")}


def _format(format_name: str, own: dict[str, str]) -> type[PenstockDataSource]:
    class TopicTable(PenstockDataSource):
        """Options of the query (`from penstock.orders with (startingOffsets = …)`) go before those of the table."""

        def __init__(self, options: dict[str, str]) -> None:
            theirs = {name.lower(): text for name, text in options.items()}
            for name in TABLE_PROPERTIES:
                theirs.pop(name, None)
            super().__init__({name.lower(): text for name, text in own.items()} | theirs)

        @classmethod
        def name(cls) -> str:
            return format_name

    return TopicTable


def _create_database(spark: SparkSession, database: str) -> None:
    """In no folder of the user's: a database needs one, and its tables have no files. Spark makes its warehouse as
    soon as it looks for a database; it is as well made when a table is kept in it."""
    warehouse = urlsplit(spark.conf.get("spark.sql.warehouse.dir") or "")
    folder = Path(unquote(warehouse.path))
    is_new = warehouse.scheme in ("", "file") and not folder.exists()
    if not spark.catalog.databaseExists(database):
        spark.sql(f"create database {database} location '{tempfile.mkdtemp(prefix='penstock-spark-')}'")
    if is_new and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
