"""RegexRouter: topics whose whole name matches a pattern get another name."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.connect.errors import DataError
from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import HIGH, Kind, Setting, Settings
from penstock.connect.transforms.checks import PATTERN
from penstock.connect.transforms.java_patterns import Renaming, java_pattern
from penstock.connect.transforms.sides import PACKAGE


class RegexRouter(Transformation):
    java_names = (PACKAGE + "RegexRouter",)
    settings = Settings(
        Setting(
            "regex",
            Kind.STRING,
            "The pattern (a Java regular expression) that the whole name must match.",
            importance=HIGH,
            check=PATTERN,
        ),
        Setting(
            "replacement",
            Kind.STRING,
            "What takes the place of the first match. $1 and ${name} are what groups matched.",
            importance=HIGH,
        ),
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._renaming = Renaming(java_pattern(self.values["regex"]), self.values["replacement"])

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        try:
            name = self._renaming(record.topic)
        except ValueError as error:
            raise DataError(str(error)) from None
        return record if name is None else record.replaced(topic=name)
