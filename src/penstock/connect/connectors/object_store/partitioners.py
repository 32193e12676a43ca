"""The folder of a record, by Confluent's partitioners."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol
from zoneinfo import ZoneInfo

from penstock.connect.connectors.object_store.joda import PathFormat
from penstock.connect.data.logical import TIMESTAMP, timestamp_to_ms
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.records import SinkRecord

EPOCH: Final = dt.datetime(1970, 1, 1)
DAILY: Final = "'year'=YYYY/'month'=MM/'day'=dd"
HOURLY: Final = DAILY + "/'hour'=HH"
_DURATIONS_MS: Final = {"DailyPartitioner": (DAILY, 86_400_000), "HourlyPartitioner": (HOURLY, 3_600_000)}
Extract = Callable[[SinkRecord], int]


class Partitioner(Protocol):
    def folder(self, record: SinkRecord) -> str:
        """DataError."""


class DefaultPartitioner:
    def folder(self, record: SinkRecord) -> str:
        return f"partition={record.partition}"


class FieldPartitioner:
    def __init__(self, names: list[str], delimiter: str) -> None:
        if not names:
            raise InvalidConfig("partition.field.name: FieldPartitioner needs one field or more")
        self._names, self._delimiter = names, delimiter

    def folder(self, record: SinkRecord) -> str:
        return self._delimiter.join([f"{name}={_shown(field_of(record, name))}" for name in self._names])


class TimePartitioner:
    def __init__(self, path: str, duration_ms: int, zone: ZoneInfo, extract: Extract) -> None:
        try:
            self._format = PathFormat(path)
        except ValueError as error:
            raise InvalidConfig(f"path.format: {error}") from None
        self._duration_ms, self._zone, self._extract = duration_ms, zone, extract
        self._kept: tuple[int, str] = (-1, "")

    def folder(self, record: SinkRecord) -> str:
        ms = self._extract(record)
        minute = ms // 60_000
        if self._duration_ms % 60_000 == 0 and minute == self._kept[0]:
            return self._kept[1]
        local = dt.datetime.fromtimestamp(ms / 1000, self._zone).replace(tzinfo=None)
        whole = (local - EPOCH) // dt.timedelta(milliseconds=1)
        begin = EPOCH + dt.timedelta(milliseconds=whole // self._duration_ms * self._duration_ms)
        folder = self._format.format(begin.replace(tzinfo=self._zone))
        self._kept = minute, folder
        return folder


def partitioner_of(values: Mapping[str, Any], extract: Extract) -> Partitioner:
    """InvalidConfig."""
    name = str(values["partitioner.class"]).rpartition(".")[2]
    if name == "DefaultPartitioner":
        return DefaultPartitioner()
    if name == "FieldPartitioner":
        return FieldPartitioner(values["partition.field.name"], values["directory.delim"])
    path, duration_ms = _DURATIONS_MS.get(name, (values["path.format"], values["partition.duration.ms"]))
    if name not in ("TimeBasedPartitioner", *_DURATIONS_MS):
        raise InvalidConfig(f"partitioner.class: there is no {name}")
    if not path or duration_ms <= 0:
        raise InvalidConfig(f"{name} needs path.format and a partition.duration.ms of more than 0")
    if not values["timezone"]:
        raise InvalidConfig("timezone: a partitioner by time needs one, such as UTC")
    return TimePartitioner(path, duration_ms, zone_of(values["timezone"]), extract)


def zone_of(name: str) -> ZoneInfo:
    """InvalidConfig."""
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):
        raise InvalidConfig(f"timezone: there is no {name}") from None


def extractor_of(values: Mapping[str, Any]) -> Extract:
    """InvalidConfig."""
    name = str(values["timestamp.extractor"])
    short = name.replace("$", ".").rpartition(".")[2].removesuffix("TimestampExtractor")
    if short == "Wallclock":
        return lambda record: int(time.time() * 1000)
    if short == "Record":
        return _time_of_record
    if short == "RecordField":
        field = values["timestamp.field"]
        return lambda record: _milliseconds(field, field_of(record, field))
    raise InvalidConfig(f"timestamp.extractor: there is no {name} (Wallclock, Record, RecordField)")


def field_of(record: SinkRecord, name: str) -> Any:
    """With points for what is within others. DataError."""
    value = record.value
    for part in [name] if _has(value, name) else name.split("."):
        if not _has(value, part):
            raise DataError(f"the record has no field {name}")
        value = value[part]
    return value


def _has(value: Any, name: str) -> bool:
    return isinstance(value, Struct | dict) and name in value


def _time_of_record(record: SinkRecord) -> int:
    if record.timestamp_ms is None:
        raise DataError("the record has no timestamp")
    return record.timestamp_ms


def _milliseconds(name: str, value: Any) -> int:
    if isinstance(value, dt.datetime):
        return timestamp_to_ms(TIMESTAMP, value)
    if isinstance(value, dt.date):
        return (value.toordinal() - EPOCH.toordinal()) * 86_400_000
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            return timestamp_to_ms(TIMESTAMP, dt.datetime.fromisoformat(value))
        except ValueError:
            pass
    raise DataError(f"the field {name} is no time: {value!r}")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return str(timestamp_to_ms(TIMESTAMP, value))
    if isinstance(value, str | int | float | dt.date):
        # A value is one folder, whatever is in it.
        return str(value).replace("/", "%2F").replace("\0", "%00")
    raise DataError(f"a folder is not made of {type(value).__name__}")
