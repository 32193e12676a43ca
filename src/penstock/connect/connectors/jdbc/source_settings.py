"""What the JDBC source can be configured with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from penstock.connect.connectors.jdbc.connection_settings import CONNECTION
from penstock.connect.connectors.jdbc.sink_settings import zone_of
from penstock.connect.settings import HIGH, LOW, REQUIRED, Kind, Setting, Settings, at_least, one_of

BULK, INCREMENTING, TIMESTAMP = "bulk", "incrementing", "timestamp"
TIMESTAMP_INCREMENTING: Final = "timestamp+incrementing"
MODES: Final = (BULK, TIMESTAMP, INCREMENTING, TIMESTAMP_INCREMENTING)
MAPPINGS: Final = ("none", "precision_only", "best_fit", "best_fit_eager_double")
TABLES: Final = "tables"
"""Of a task's configuration: its tables as JSON."""

SOURCE_SETTINGS: Final = CONNECTION | Settings(
    Setting("mode", Kind.STRING, "What is read at each poll: `bulk` all rows; `incrementing` rows with a larger number in a "
            "column than before; `timestamp` rows with a later time in a column, new or changed; `timestamp+incrementing` both.",
            default=REQUIRED, importance=HIGH, check=one_of(*MODES)),
    Setting("incrementing.column.name", Kind.STRING, "The column that grows; empty: the one that the database counts itself.",
            default=""),
    Setting("timestamp.column.name", Kind.LIST, "The columns with the time of the last change; the first that is not null "
            "counts.", default=[]),
    Setting("timestamp.initial", Kind.LONG, "Where the first run begins, in milliseconds since 1970; -1 is now; without it "
            "everything is read.", default=None),
    Setting("timestamp.delay.interval.ms", Kind.LONG, "Rows younger than this wait, so that transactions with an earlier time "
            "may end.", default=0, check=at_least(0)),
    Setting("validate.non.null", Kind.BOOLEAN, "Refuses columns of `incrementing` and `timestamp` that may be null.",
            default=True),
    Setting("query", Kind.STRING, "A query in the place of tables; `topic.prefix` is its topic.", default=""),
    Setting("query.suffix", Kind.STRING, "Put at the end of each statement, such as LIMIT 100.", default="", importance=LOW),
    Setting("table.whitelist", Kind.LIST, "The tables to read, with their schema or without.", default=[]),
    Setting("table.blacklist", Kind.LIST, "The tables to leave out.", default=[]),
    Setting("table.include.list", Kind.LIST, "Regular expressions of the tables to read, of schema.table.", default=[]),
    Setting("table.exclude.list", Kind.LIST, "Regular expressions of the tables to leave out.", default=[]),
    Setting("table.types", Kind.LIST, "TABLE, VIEW.", default=["TABLE"], importance=LOW),
    Setting("schema.pattern", Kind.STRING, "Only tables of schemas like this one, with % and _ as in LIKE.", default=None),
    Setting("topic.prefix", Kind.STRING, "In front of the table's name it makes the topic.", importance=HIGH),
    Setting("poll.interval.ms", Kind.INT, "How often each table is asked.", default=5000, check=at_least(0)),
    Setting("batch.max.rows", Kind.INT, "The most rows at a time.", default=100, check=at_least(1)),
    Setting("table.poll.interval.ms", Kind.LONG, "How often new tables are looked for.", default=60_000, check=at_least(1)),
    Setting("numeric.mapping", Kind.STRING, "How NUMERIC becomes a type: `none` always Decimal; `precision_only` integers where "
            "there is no scale; `best_fit` doubles too, where they hold the digits; `best_fit_eager_double` doubles always.",
            default="none", check=one_of(*MAPPINGS, any_case=True), importance=LOW),
    Setting("db.timezone", Kind.STRING, "The time zone of columns that hold times without one.", default="UTC"),
    Setting(TABLES, Kind.STRING, "Set for each task by the connector.", default=None, importance=LOW,
            is_visible=lambda values: False),
)  # fmt: skip


class SourceChoices(NamedTuple):
    mode: str
    incrementing: str
    timestamps: tuple[str, ...]
    initial_ms: int | None
    delay_ms: int
    refuses_nulls: bool
    query: str
    suffix: str
    prefix: str
    interval_s: float
    batch_rows: int
    mapping: str
    zone: ZoneInfo

    @property
    def counts(self) -> bool:
        return self.mode in (INCREMENTING, TIMESTAMP_INCREMENTING)

    @property
    def dates(self) -> bool:
        return self.mode in (TIMESTAMP, TIMESTAMP_INCREMENTING)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SourceChoices:
        """InvalidConfig."""
        return cls(
            values["mode"],
            values["incrementing.column.name"],
            tuple(values["timestamp.column.name"]),
            values["timestamp.initial"],
            values["timestamp.delay.interval.ms"],
            values["validate.non.null"],
            values["query"].strip().rstrip(";"),
            values["query.suffix"].strip(),
            values["topic.prefix"],
            values["poll.interval.ms"] / 1000,
            values["batch.max.rows"],
            values["numeric.mapping"].lower(),
            zone_of(values["db.timezone"]),
        )


def mistakes_of(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """What does not go together."""
    found: dict[str, list[str]] = {}
    chosen = [name for name in ("table.whitelist", "table.blacklist", "table.include.list") if values[name]]
    if len(chosen) > 1:
        for name in chosen:
            found[name] = [f"Only one of these may be set: {', '.join(chosen)}"]
    if values["query"] and (chosen or values["table.exclude.list"]):
        found["query"] = ["A query stands in the place of tables: do not set both"]
    mode = values["mode"]
    if mode in (TIMESTAMP, TIMESTAMP_INCREMENTING) and not values["timestamp.column.name"]:
        found["timestamp.column.name"] = [f"mode={mode} needs the columns with the time of the last change"]
    if (
        mode in (INCREMENTING, TIMESTAMP_INCREMENTING)
        and values["query"]
        and not values["incrementing.column.name"]
    ):
        found["incrementing.column.name"] = [f"mode={mode} with a query needs the column that grows"]
    for name in ("table.include.list", "table.exclude.list"):
        for pattern in values[name]:
            try:
                re.compile(pattern)
            except re.error as error:
                found[name] = [f"{pattern} is no regular expression: {error}"]
    return found
