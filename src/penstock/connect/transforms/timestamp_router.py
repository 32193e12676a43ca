"""TimestampRouter: the topic gets the time of the record in its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import HIGH, Kind, Setting, Settings
from penstock.connect.transforms.sides import PACKAGE
from penstock.connect.transforms.simple_date_format import SimpleDateFormat
from penstock.connect.transforms.times import DAY_MS

_TOPIC: Final = "${topic}"
_MAX_NAMES: Final = 1_000


class TimestampRouter(Transformation):
    java_names = (PACKAGE + "TimestampRouter",)
    settings = Settings(
        Setting(
            "topic.format",
            Kind.STRING,
            "The new name: ${topic} is the old one, ${timestamp} the time.",
            default="${topic}-${timestamp}",
            importance=HIGH,
        ),
        Setting(
            "timestamp.format",
            Kind.STRING,
            "The pattern (of Java's SimpleDateFormat) of the time.",
            default="yyyyMMdd",
            importance=HIGH,
        ),
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        try:
            self._format = SimpleDateFormat(self.values["timestamp.format"])
        except ValueError as error:
            raise InvalidConfig(
                f"Invalid value {self.values['timestamp.format']} for configuration timestamp.format: {error}"
            ) from None
        self._unit_ms = DAY_MS if self._format.is_of_days else 1
        self._names: dict[tuple[str, int], str] = {}

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        ms = record.timestamp_ms
        if ms is None:
            raise DataError(f"Timestamp missing on record: {record!r}")
        place = record.topic, ms // self._unit_ms
        name = self._names.get(place)
        if name is None:
            name = self._name(record.topic, ms)
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            self._names[place] = name
        return record.replaced(topic=name)

    def _name(self, topic: str, ms: int) -> str:
        name: str = self.values["topic.format"]
        return name.replace(_TOPIC, topic).replace("${timestamp}", self._format.format(ms))
