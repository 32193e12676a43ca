"""What the lake sink can be configured with, by the names of Apache Iceberg's sink."""

from __future__ import annotations

from typing import Any, Final

from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least

TABLE_PREFIX: Final = "iceberg.table."
CATALOG_PREFIX: Final = "iceberg.catalog."
CREATE_PREFIX: Final = "iceberg.tables.auto-create-props."
WRITE_PREFIX: Final = "iceberg.tables.write-props."


def _text(name: str, doc: str, default: Any = None, importance: str = LOW) -> Setting:
    return Setting(name, Kind.STRING, doc, default=default, importance=importance)


def _switch(name: str, doc: str, importance: str = LOW) -> Setting:
    return Setting(name, Kind.BOOLEAN, doc, default=False, importance=importance)


SETTINGS: Final = Settings(
    Setting("iceberg.tables", Kind.LIST, "The tables, such as shop.orders. With several and no route-field each gets all.",
            default=[], importance=HIGH),
    _switch("iceberg.tables.dynamic-enabled", "Whether the field that route-field names says the table itself."),
    _text("iceberg.tables.route-field", "The field that says which table a record goes to: the table itself, or what the "
          "iceberg.table.NAME.route-regex of a table matches."),
    _text("iceberg.tables.default-partition-by", "How tables that are made are partitioned, such as day(at), bucket(id, 16)."),
    _switch("iceberg.tables.auto-create-enabled", "Whether a table that is not there is made from the first records.", HIGH),
    _switch("iceberg.tables.evolve-schema-enabled", "Whether a table gets columns that records have, wider types, and columns "
            "that may be null.", HIGH),
    _switch("iceberg.tables.schema-force-optional", "Whether all columns of tables that are made may be null."),
    _text("iceberg.catalog", "The name of the catalog.", "iceberg"),
    _text("iceberg.catalog.type", "sql (or jdbc), rest, hive, glue; iceberg.catalog.* are its other properties.", None, HIGH),
    _text("iceberg.catalog.uri", "Where the catalog is, such as postgresql+psycopg://user@host/db or sqlite:///file.", None,
          HIGH),
    _text("iceberg.catalog.warehouse", "Where the files of tables are, such as s3://bucket/lake or file:///folder.", None, HIGH),
    Setting("iceberg.control.commit.interval-ms", Kind.INT, "How often a task commits what it has written.",
            default=300_000, check=at_least(0)),
    Setting("iceberg.control.commit.timeout-ms", Kind.INT, "How long it tries while others commit to the same table.",
            default=30_000, check=at_least(1), importance=LOW),
    _text("iceberg.control.topic", "Taken, and of no effect: tasks commit without a coordinator.", "control-iceberg"),
)  # fmt: skip
