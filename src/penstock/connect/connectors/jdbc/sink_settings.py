"""What the JDBC sink can be configured with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.connect.connectors.jdbc.connection_settings import CONNECTION
from penstock.connect.errors import InvalidConfig
from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least, one_of

INSERT, UPSERT, UPDATE = "insert", "upsert", "update"
NONE, KAFKA, RECORD_KEY, RECORD_VALUE = "none", "kafka", "record_key", "record_value"

SINK_SETTINGS: Final = CONNECTION | Settings(
    Setting("insert.mode", Kind.STRING, "What a record does: `insert` adds a row; `upsert` adds it or changes the row of the "
            "same primary key; `update` changes it only.", default=INSERT, importance=HIGH,
            check=one_of(INSERT, UPSERT, UPDATE, any_case=True)),
    Setting("batch.size", Kind.INT, "The most rows in one statement. How many records come at a time is the consumer's "
            "`consumer.override.max.poll.records`.", default=3000, check=at_least(1)),
    Setting("delete.enabled", Kind.BOOLEAN, "A record without a value deletes the row of its key. Needs pk.mode=record_key.",
            default=False),
    Setting("table.name.format", Kind.STRING, "The table; ${topic} stands for the topic's name. A dot divides schema and table.",
            default="${topic}"),
    Setting("pk.mode", Kind.STRING, "What the primary key is made of: `none`, `kafka` (topic, partition and offset), "
            "`record_key`, `record_value`.", default=NONE, importance=HIGH,
            check=one_of(NONE, KAFKA, RECORD_KEY, RECORD_VALUE, any_case=True)),
    Setting("pk.fields", Kind.LIST, "The columns of the primary key. record_key and record_value: fields, all when empty; a key "
            "that is one value needs one name. kafka: three names.", default=[]),
    Setting("fields.whitelist", Kind.LIST, "The fields of the value that become columns; all when empty.", default=[]),
    Setting("auto.create", Kind.BOOLEAN, "A table that is missing is made.", default=False),
    Setting("auto.evolve", Kind.BOOLEAN, "Columns that are missing are added.", default=False),
    Setting("penstock.infer.schema", Kind.BOOLEAN, "Records without a schema, such as plain JSON objects, are taken: their "
            "fields are the columns. With auto.create and auto.evolve the types are what the first records show.",
            default=True),
    Setting("penstock.offsets.table", Kind.STRING, "Exactly once: this table keeps the offsets, written in the transaction of "
            "the rows. It is made where it is missing.", default=None),
    Setting("max.retries", Kind.INT, "How often a batch is written again while the database is away; then the task fails.",
            default=10, check=at_least(0)),
    Setting("retry.backoff.ms", Kind.INT, "The wait before the next attempt.", default=3000, check=at_least(0)),
    Setting("db.timezone", Kind.STRING, "The time zone of columns that hold times without one.", default="UTC",
            importance=LOW),
)  # fmt: skip


class SinkChoices(NamedTuple):
    insert_mode: str = INSERT
    pk_mode: str = NONE
    pk_fields: tuple[str, ...] = ()
    fields: frozenset[str] = frozenset()
    deletes: bool = False
    table_format: str = "${topic}"
    infers: bool = True
    creates: bool = False
    evolves: bool = False
    batch_rows: int = 3000
    zone: ZoneInfo = ZoneInfo("UTC")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SinkChoices:
        """InvalidConfig."""
        return cls(
            values["insert.mode"].lower(),
            values["pk.mode"].lower(),
            tuple(values["pk.fields"]),
            frozenset(values["fields.whitelist"]),
            values["delete.enabled"],
            values["table.name.format"],
            values["penstock.infer.schema"],
            values["auto.create"],
            values["auto.evolve"],
            values["batch.size"],
            zone_of(values["db.timezone"]),
        )


def zone_of(name: str) -> ZoneInfo:
    """InvalidConfig."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidConfig(
            f"Invalid value {name} for configuration db.timezone: there is no such time zone"
        ) from None


def mistakes_of(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """What does not go together."""
    found: dict[str, list[str]] = {}
    mode, keys, writes = values["pk.mode"].lower(), values["pk.fields"], values["insert.mode"].lower()
    if values["delete.enabled"] and mode != RECORD_KEY:
        found["delete.enabled"] = ["Deletes need the key of the row: set pk.mode=record_key"]
    if writes in (UPSERT, UPDATE) and mode == NONE:
        found["insert.mode"] = [f"{writes} needs a primary key: set pk.mode"]
    if mode == KAFKA and len(keys) not in (0, 3):
        found["pk.fields"] = [
            "With pk.mode=kafka there are three columns: of the topic, the partition and the offset"
        ]
    if mode == NONE and keys:
        found["pk.fields"] = [
            "With pk.mode=none there is no primary key: leave pk.fields empty, or set pk.mode"
        ]
    return found
