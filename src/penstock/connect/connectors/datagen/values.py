"""An Avro schema becomes a schema of Connect, and a function that makes values of it."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from penstock.connect.connectors.datagen.regexes import texts_like
from penstock.connect.data.logical import DATE, LOGICAL, TIME, TIMESTAMP
from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError, InvalidConfig, SchemaError

Make = Callable[[Random, int], Any]
"""Of a record's number, from 0."""

_PLAIN: Final = {
    "boolean": Type.BOOLEAN, "int": Type.INT32, "long": Type.INT64, "float": Type.FLOAT32, "double": Type.FLOAT64,
    "string": Type.STRING, "bytes": Type.BYTES,
}  # fmt: skip
_LOGICAL: Final = {
    ("int", "date"): DATE, ("int", "time-millis"): TIME, ("long", "timestamp-millis"): TIMESTAMP,
}  # fmt: skip
_INT_RANGES: Final = {"int": (-(1 << 31), (1 << 31) - 1), "long": (-(1 << 63), (1 << 63) - 1)}
DEFAULT_LENGTH: Final = (8, 16)


class Made(NamedTuple):
    schema: Schema
    make: Make


def values_of(text: str) -> Made:
    """InvalidConfig."""
    try:
        said = json.loads(text)
    except ValueError as error:
        raise InvalidConfig(f"The schema is no JSON: {error}") from None
    return values_of_parsed(said)


def values_of_parsed(said: Any) -> Made:
    try:
        return _Reading().type(said)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidConfig(f"The schema is no Avro schema: {error!r}") from None
    except (SchemaError, DataError) as error:
        raise InvalidConfig(f"The schema cannot be: {error}") from None


class _Reading:
    def __init__(self) -> None:
        self._named: dict[str, Made] = {}

    def type(self, said: Any) -> Made:
        if isinstance(said, list):
            return self._union(said)
        if isinstance(said, str):
            return self._named[said] if said in self._named else self._scalar(said, {}, None)
        kind = said["type"]
        given = said.get("arg.properties") or {}
        if isinstance(kind, dict | list):
            return self.type(kind)
        if kind == "record":
            return self._record(said)
        if kind == "enum":
            return self._remembered(said, self._enum(said, given))
        if kind == "fixed":
            size = int(said["size"])
            made = Made(Schema(Type.BYTES), lambda random, number: random.randbytes(size))
            return self._remembered(said, made)
        if kind == "array":
            return self._array(said, given)
        if kind == "map":
            return self._map(said, given)
        if kind in self._named:
            return self._named[kind]
        return self._scalar(kind, given, said.get("logicalType"))

    def _remembered(self, said: Mapping[str, Any], made: Made) -> Made:
        name = said["name"]
        space = said.get("namespace")
        self._named[name] = made
        if space:
            self._named[f"{space}.{name}"] = made
        return made

    def _record(self, said: Mapping[str, Any]) -> Made:
        fields, makers = [], []
        for field in said["fields"]:
            kind = field["type"]
            if isinstance(kind, str) and "arg.properties" in field:
                kind = {"type": kind, "arg.properties": field["arg.properties"]}
            made = self.type(kind)
            fields.append((field["name"], made.schema))
            makers.append(made.make)
        space = said.get("namespace")
        name = f"{space}.{said['name']}" if space else said["name"]
        schema = Schema(Type.STRUCT, name=name, fields=fields)

        def make(random: Random, number: int) -> Struct:
            return Struct.trusted(schema, [each(random, number) for each in makers])

        return self._remembered(said, Made(schema, make))

    def _enum(self, said: Mapping[str, Any], given: Mapping[str, Any]) -> Made:
        symbols = given.get("options") or said["symbols"]
        return Made(Schema(Type.STRING), lambda random, number: random.choice(symbols))

    def _array(self, said: Mapping[str, Any], given: Mapping[str, Any]) -> Made:
        items, length = self.type(said["items"]), _length_of(given)
        make = items.make
        schema = Schema(Type.ARRAY, items=items.schema)
        if "options" in given:
            return Made(schema, _choice(given["options"]))
        return Made(schema, lambda random, number: [make(random, number) for _ in range(length(random))])

    def _map(self, said: Mapping[str, Any], given: Mapping[str, Any]) -> Made:
        values, length = self.type(said["values"]), _length_of(given)
        make, key = values.make, _text_of(given.get("keys") or {})
        schema = Schema(Type.MAP, keys=Schema(Type.STRING), items=values.schema)
        return Made(
            schema,
            lambda random, number: {key(random, number): make(random, number) for _ in range(length(random))},
        )

    def _union(self, said: list[Any]) -> Made:
        branches = [each for each in said if each != "null"]
        if len(branches) != 1:
            raise InvalidConfig("A union can be of null and one type: Connect has no schema for others")
        made = self.type(branches[0])
        if len(branches) == len(said):
            return made
        make = made.make
        return Made(
            made.schema.optional(),
            lambda random, number: make(random, number) if random.random() < 0.5 else None,
        )

    def _scalar(self, kind: str, given: Mapping[str, Any], logical: str | None) -> Made:
        if kind == "null":
            return Made(Schema(Type.STRING, is_optional=True), lambda random, number: None)
        if kind not in _PLAIN:
            raise InvalidConfig(f"There is no type {kind} in Avro, and none of this name in the schema")
        make = _maker(kind, given)
        found = _LOGICAL.get((kind, logical or ""))
        if found is not None:
            from_base, schema = LOGICAL[str(found.name)].from_base, found
            return Made(schema, lambda random, number: from_base(schema, make(random, number)))
        return Made(Schema(_PLAIN[kind]), make)


def _maker(kind: str, given: Mapping[str, Any]) -> Make:
    if "options" in given:
        return _choice(_options(given["options"], kind))
    if "iteration" in given:
        return _iteration(kind, given["iteration"])
    if kind == "string":
        return _text_of(given)
    if kind == "bytes":
        length = _length_of(given)
        return lambda random, number: random.randbytes(length(random))
    if kind == "boolean":
        odds = float(given.get("odds", 0.5))
        return lambda random, number: random.random() < odds
    least, most = (given.get("range") or {}).get("min"), (given.get("range") or {}).get("max")
    if kind in _INT_RANGES:
        low, high = _INT_RANGES[kind]
        # The upper end is not among them, as in Confluent's.
        first, last = low if least is None else int(least), high if most is None else int(most) - 1
        if first > last:
            raise InvalidConfig(f"The range {given.get('range')} is empty")
        return lambda random, number: random.randint(first, last)
    begin, end = 0.0 if least is None else float(least), 1.0 if most is None else float(most)
    return lambda random, number: random.uniform(begin, end)


def _options(said: Any, kind: str) -> list[Any]:
    if not isinstance(said, list) or not said:
        raise InvalidConfig("options must be a list with something in it")
    python = {"int": int, "long": int, "float": float, "double": float, "string": str, "boolean": bool}.get(
        kind
    )
    if python is None:
        return [each.encode("latin-1") for each in said]
    return [python(each) for each in said]


def _choice(options: list[Any]) -> Make:
    return lambda random, number: random.choice(options)


def _iteration(kind: str, said: Mapping[str, Any]) -> Make:
    """start, start + step, …, and from `initial` or start again where it would reach restart."""
    start, step, restart = said["start"], said.get("step"), said.get("restart")
    if step is None:
        step = 1 if restart is None or restart >= start else -1
    if not step:
        raise InvalidConfig("iteration: the step must not be 0")
    initial = said.get("initial", start)
    if kind == "boolean":
        first = bool(start)
        return lambda random, number: first if number % 2 == 0 else not first
    as_text = kind == "string"
    whole = kind in _INT_RANGES or as_text
    count = None if restart is None else max(1, -int(-(restart - start) // step))

    def make(random: Random, number: int) -> Any:
        place = number + (initial - start) // step if initial != start else number
        value = start + step * (place if count is None else place % count)
        if as_text:
            return str(value)
        return int(value) if whole else float(value)

    return make


def _text_of(given: Mapping[str, Any]) -> Make:
    if "options" in given:
        return _choice(_options(given["options"], "string"))
    before, behind = str(given.get("prefix", "")), str(given.get("suffix", ""))
    if "regex" in given:
        like = texts_like(given["regex"])
        if not before and not behind:
            return lambda random, number: like(random)
        return lambda random, number: before + like(random) + behind
    length, letters = _length_of(given), string.ascii_letters
    return lambda random, number: before + "".join(random.choices(letters, k=length(random))) + behind


def _length_of(given: Mapping[str, Any]) -> Callable[[Random], int]:
    said = given.get("length")
    if isinstance(said, int):
        return lambda random: said
    least, most = DEFAULT_LENGTH
    if isinstance(said, dict):
        least, most = int(said.get("min", 0)), int(said.get("max", 1)) - 1
    if least < 0 or most < least:
        raise InvalidConfig(f"The length {said} cannot be")
    return lambda random: random.randint(least, most)
