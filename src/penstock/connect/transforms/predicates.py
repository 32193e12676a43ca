"""Predicates: which records a transform is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.connect.errors import DataError
from penstock.connect.interface import Predicate
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import Kind, Setting, Settings
from penstock.connect.transforms.checks import NOT_EMPTY_PATTERN, NOT_EMPTY_TEXT
from penstock.connect.transforms.java_patterns import java_pattern

_PACKAGE: Final = "org.apache.kafka.connect.transforms.predicates."
_MAX_TOPICS: Final = 10_000


class TopicNameMatches(Predicate):
    java_names = (_PACKAGE + "TopicNameMatches",)
    settings = Settings(
        Setting(
            "pattern",
            Kind.STRING,
            "The pattern (a Java regular expression) that the whole name of the topic must match.",
            check=NOT_EMPTY_PATTERN,
        )
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._pattern = java_pattern(self.values["pattern"])
        self._known: dict[str, bool] = {}

    def test(self, record: ConnectRecord) -> bool:
        found = self._known.get(record.topic)
        if found is None:
            try:
                found = self._pattern.is_full_match(record.topic)
            except ValueError as error:
                raise DataError(str(error)) from None
            if len(self._known) >= _MAX_TOPICS:
                self._known.clear()
            self._known[record.topic] = found
        return found


class HasHeaderKey(Predicate):
    java_names = (_PACKAGE + "HasHeaderKey",)
    settings = Settings(Setting("name", Kind.STRING, "The name of the header.", check=NOT_EMPTY_TEXT))

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._name: str = self.values["name"]

    def test(self, record: ConnectRecord) -> bool:
        name = self._name
        return any(header.name == name for header in record.headers)


class RecordIsTombstone(Predicate):
    java_names = (_PACKAGE + "RecordIsTombstone",)

    def test(self, record: ConnectRecord) -> bool:
        return record.value is None
