"""A class that converts values and headers alike, as most of Kafka's converters do."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from penstock.connect.interface import Converter, HeaderConverter
from penstock.connect.records import Header
from penstock.connect.settings import LOW, Kind, Setting, Settings, one_of

T = TypeVar("T")

TYPE: Final = "converter.type"
TYPE_SETTING: Final = Setting(
    TYPE,
    Kind.STRING,
    "How this converter will be used.",
    check=one_of("key", "value", "header"),
    importance=LOW,
)


class EitherConverter(Converter, HeaderConverter):
    settings = Settings(TYPE_SETTING)

    def configure(self, given: Mapping[str, str]) -> None:
        self.given = given
        self.values = self.settings.parse({TYPE: "key" if self.is_key else "value", **given})

    def from_header(self, topic: str, header: Header) -> bytes | None:
        return self.from_value(topic, header.schema, header.value)

    def to_header(self, topic: str, name: str, data: bytes | None) -> Header:
        schema, value = self.to_value(topic, data)
        return Header(name, value, schema)


class Recent(Generic[T]):
    """What was made for the keys used last, `at_most` of them."""

    def __init__(self, at_most: int) -> None:
        self._at_most = max(1, at_most)
        self._made: OrderedDict[Any, T] = OrderedDict()

    def get(self, key: Any, make: Callable[[], T]) -> T:
        found = self._made.get(key)
        if found is not None:
            self._made.move_to_end(key)
            return found
        made = self._made[key] = make()
        if len(self._made) > self._at_most:
            self._made.popitem(last=False)
        return made


def kind_of(value: Any) -> str:
    """For messages, where Kafka has the class in Java."""
    kind = type(value)
    return (
        f"class {kind.__qualname__}"
        if kind.__module__ == "builtins"
        else f"class {kind.__module__}.{kind.__qualname__}"
    )
