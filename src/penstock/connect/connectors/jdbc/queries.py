"""The statements of the source, and where it is in a table: `Place`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import types

from penstock.connect.connectors.jdbc.column_types import MYSQL, SQLITE
from penstock.connect.connectors.jdbc.database import Database
from penstock.connect.connectors.jdbc.source_settings import SourceChoices
from penstock.connect.data.logical import EPOCH
from penstock.connect.errors import ConnectError

NUMBER, TIME_MS, TIME_NANOS = "incrementing", "timestamp", "timestamp_nanos"
_SQLITE_FORM: Final = "%Y-%m-%d %H:%M:%f"


class Place(NamedTuple):
    """Behind which rows the next ones are: the offset, in the form of Confluent's connector."""

    number: int | None = None
    at: dt.datetime | None = None

    @classmethod
    def of(cls, offset: Mapping[str, Any] | None) -> Place:
        """ConnectError."""
        if not offset:
            return cls()
        number, ms, nanos = (offset.get(name) for name in (NUMBER, TIME_MS, TIME_NANOS))
        for value in (number, ms, nanos):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise ConnectError(f"The offset {dict(offset)} cannot be: {value!r} is no number")
        if ms is None:
            return cls(number)
        # The nanoseconds are of the whole second, as in java.sql.Timestamp.
        micros = ms % 1000 * 1000 if nanos is None else nanos // 1000
        return cls(number, EPOCH + dt.timedelta(seconds=ms // 1000, microseconds=micros))

    def offset(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.number is not None:
            found[NUMBER] = self.number
        if self.at is not None:
            micros = (self.at - EPOCH) // dt.timedelta(microseconds=1)
            found[TIME_MS] = micros // 1000
            found[TIME_NANOS] = micros % 1_000_000 * 1000
        return found


class Keys(NamedTuple):
    """The columns that say what is new, with what SQLAlchemy says of the types of those with times."""

    number: str | None
    times: Sequence[tuple[str, Any]]


class Statements:
    """Of one table, or of a query."""

    def __init__(self, database: Database, choices: SourceChoices, origin: str) -> None:
        """`origin`: what stands behind FROM."""
        self._database, self._choices, self._origin = database, choices, origin
        self._mark = "?" if database.family == SQLITE else "%s"

    def select(self, keys: Keys, place: Place, until: dt.datetime | None) -> tuple[str, tuple[Any, ...]]:
        """Rows behind `place`; those with a time, before `until`."""
        conditions, values = [], []
        choices, mark = self._choices, self._mark
        order = []
        number = None if keys.number is None else self._quoted(keys.number)
        if choices.dates:
            time, bound = self._time(keys), self._bound(keys)
            order.append(time)
            conditions.append(f"{time} < {mark}")
            values.append(bound(until))
            if place.at is not None and number is not None and place.number is not None:
                conditions.append(f"(({time} = {mark} AND {number} > {mark}) OR {time} > {mark})")
                values += [bound(place.at), place.number, bound(place.at)]
            elif place.at is not None:
                conditions.append(f"{time} > {mark}")
                values.append(bound(place.at))
        elif number is not None:
            conditions.append(f"{number} IS NOT NULL" if place.number is None else f"{number} > {mark}")
            if place.number is not None:
                values.append(place.number)
        if number is not None:
            order.append(number)
        parts = [f"SELECT * FROM {self._origin}"]
        if conditions:
            parts.append("WHERE " + " AND ".join(conditions))
        if order:
            parts.append("ORDER BY " + ", ".join(f"{each} ASC" for each in order))
        if choices.suffix:
            parts.append(self._escaped(choices.suffix))
        return " ".join(parts), tuple(values)

    def _time(self, keys: Keys) -> str:
        names = [self._quoted(name) for name, _ in keys.times]
        if self._database.family == SQLITE and not self._is_number(keys):
            # Times are texts there: as many digits in each, so that they can be compared.
            names = [f"strftime('{self._escaped(_SQLITE_FORM)}', {name})" for name in names]
        return names[0] if len(names) == 1 else f"COALESCE({', '.join(names)})"

    def _bound(self, keys: Keys) -> Any:
        """How a time is told to the database."""
        kind, family, zone = keys.times[0][1], self._database.family, self._choices.zone
        if self._is_number(keys):
            return lambda at: (at - EPOCH) // dt.timedelta(milliseconds=1)
        if family == SQLITE:
            return lambda at: at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        if getattr(kind, "timezone", False):
            return lambda at: at
        if family == MYSQL and type(kind).__name__ == "TIMESTAMP":
            return lambda at: at.replace(tzinfo=None)
        return lambda at: at.astimezone(zone).replace(tzinfo=None)

    def _is_number(self, keys: Keys) -> bool:
        return isinstance(keys.times[0][1], types.Integer)

    def _quoted(self, name: str) -> str:
        return self._escaped(self._database.quote(name))

    def _escaped(self, text: str) -> str:
        return text if self._mark == "?" else text.replace("%", "%%")


def now_of(database: Database) -> dt.datetime:
    """By the clock of the database: its rows have their times from there."""
    if database.family == SQLITE:
        return dt.datetime.now(dt.UTC)
    statement = "SELECT UTC_TIMESTAMP(6)" if database.family == MYSQL else "SELECT CURRENT_TIMESTAMP"
    found: dt.datetime = database.connection().exec_driver_sql(statement).scalar_one()
    return (found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
