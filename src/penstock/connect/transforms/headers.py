"""InsertHeader and DropHeaders."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.connect.data.parsing import parse_text
from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord, Header
from penstock.connect.settings import HIGH, Kind, Setting, Settings
from penstock.connect.transforms.checks import NOT_EMPTY
from penstock.connect.transforms.sides import PACKAGE


class InsertHeader(Transformation):
    java_names = (PACKAGE + "InsertHeader",)
    settings = Settings(
        Setting("header", Kind.STRING, "The name of the header.", importance=HIGH),
        Setting(
            "value.literal",
            Kind.STRING,
            "What all records have in it. Numbers, true and false, dates, arrays and maps are recognized; all else is a string.",
            importance=HIGH,
        ),
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        schema, value = parse_text(self.values["value.literal"])
        self._added = (Header(self.values["header"], value, schema),)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        return record.replaced(headers=record.headers + self._added)


class DropHeaders(Transformation):
    java_names = (PACKAGE + "DropHeaders",)
    settings = Settings(
        Setting(
            "headers",
            Kind.LIST,
            "The names of the headers that are taken away.",
            importance=HIGH,
            check=NOT_EMPTY,
        )
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._names = frozenset(self.values["headers"])

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        return record.replaced(
            headers=tuple(header for header in record.headers if header.name not in self._names)
        )
