"""The option `valueSchema`: columns and types as in Spark's `from_json`, read without the JVM, which planning has not.

`id long, tags array<string>, who struct<name: string, age: int>`; with or without `struct<…>` around it, or the JSON
of a StructType (`frame.schema.json()`).
"""

from __future__ import annotations

import json
import re
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.spark.failures import BadOption

OPTION = "valueSchema"
_SIMPLE: dict[str, type[DataType]] = {
    "boolean": BooleanType, "byte": ByteType, "tinyint": ByteType, "short": ShortType, "smallint": ShortType,
    "int": IntegerType, "integer": IntegerType, "long": LongType, "bigint": LongType, "float": FloatType,
    "real": FloatType, "double": DoubleType, "string": StringType, "date": DateType, "timestamp": TimestampType,
    "timestamp_ltz": TimestampType, "binary": BinaryType,
}  # fmt: skip
_DECIMALS = ("decimal", "dec", "numeric")
_CHARACTERS = ("char", "varchar", "character")
_MOST_DIGITS = 10  # of the size of a type
_TOKEN = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(\w+)|([<>(),:]))", re.ASCII
)
_BLANKS = re.compile(r"\s*", re.ASCII)
_END = ""
MAX_DEPTH = 64  # deeper JSON is not read either


def parse_value_schema(text: str) -> StructType:
    """BadOption that says what is not understood, and where."""
    if text.lstrip().startswith("{"):
        try:
            found = _of_json(json.loads(text), 0)
        except BadOption:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadOption(OPTION, "is not the JSON of a StructType") from None
        if not isinstance(found, StructType):
            raise BadOption(OPTION, "is not the JSON of a StructType")
        return found
    return _Parser(text).schema()


def _of_json(said: Any, depth: int) -> DataType:
    """Not with pyspark's own reader, which imports and unpickles what the JSON names."""
    _check_depth(depth)
    if isinstance(said, str):
        return _Parser(said).simple_type()
    kind = said["type"]
    if kind == "array":
        return ArrayType(_of_json(said["elementType"], depth + 1))
    if kind == "map":
        if not isinstance(_of_json(said["keyType"], depth + 1), StringType):
            raise BadOption(OPTION, "has a map whose keys are not string, which the keys of JSON are")
        return MapType(StringType(), _of_json(said["valueType"], depth + 1))
    if kind != "struct":
        raise BadOption(OPTION, f"has «{str(kind)[:40]}» where a type that is read from JSON is expected")
    columns = _Columns()
    for field in said["fields"]:
        columns.add(field["name"], _of_json(field["type"], depth + 1))
    if not columns.fields:
        raise BadOption(OPTION, "must name one column at least")
    return StructType(columns.fields)


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise BadOption(OPTION, f"has types within types to more than {MAX_DEPTH} levels")


class _Columns:
    """Of one struct."""

    def __init__(self) -> None:
        self.fields: list[StructField] = []
        self._names: set[str] = set()

    def add(self, name: str, kind: DataType) -> None:
        if not isinstance(name, str):
            raise TypeError(name)
        if name in self._names:
            raise BadOption(OPTION, f"has the column '{name[:40]}' twice")
        self._names.add(name)
        self.fields.append(StructField(name, kind))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._start = 0  # of the token
        self._is_quoted = False
        self._token = _END
        self._depth = 0
        self._advance()

    def simple_type(self) -> DataType:
        if self._token.lower() not in (*_SIMPLE, *_DECIMALS, *_CHARACTERS):
            raise self._complaint("a type that is read from JSON")
        found = self._type()
        if self._token != _END:
            raise self._complaint("nothing more")
        return found

    def schema(self) -> StructType:
        if self._token.lower() == "struct" and self._text.startswith("<", self._after_blanks()):
            found = self._type()
            assert isinstance(found, StructType)
        else:
            found = StructType(self._fields(_END))
        if self._token != _END:
            raise self._complaint("nothing more")
        if not found.fields:
            raise BadOption(OPTION, "must name one column at least")
        return found

    def _after_blanks(self) -> int:
        found = _BLANKS.match(self._text, self._at)
        return self._at if found is None else found.end()

    def _advance(self) -> str:
        passed = self._token
        self._start = self._after_blanks()
        if self._start == len(self._text):
            self._token, self._is_quoted = _END, False
            return passed
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise self._complaint("a name or a type")
        self._at = found.end()
        self._is_quoted = found[1] is not None
        self._token = found[1].replace("``", "`") if found[1] is not None else found[0].strip()
        return passed

    def _expect(self, token: str) -> None:
        if self._token != token or self._is_quoted:
            raise self._complaint(f"'{token}'")
        self._advance()

    def _complaint(self, wanted: str) -> BadOption:
        rest = self._text[self._start : self._start + 50].strip()
        return BadOption(OPTION, f"has {f'«{rest[:40]}»' if rest else 'its end'} where {wanted} is expected")

    def _fields(self, closing: str) -> list[StructField]:
        columns = _Columns()
        while self._token != closing or self._is_quoted:
            if columns.fields:
                self._expect(",")
            name = self._name()
            if self._token == ":":
                self._advance()
            columns.add(name, self._type())
            self._skip_remarks()
        return columns.fields

    def _name(self) -> str:
        if not self._is_quoted and not re.fullmatch(r"\w+", self._token):
            raise self._complaint("a column's name")
        return self._advance()

    def _skip_remarks(self) -> None:
        """Every column may be null, as in from_json; what is said of it is not kept."""
        if self._token.lower() == "not":
            self._advance()
            if self._token.lower() != "null":
                raise self._complaint("'null'")
            self._advance()
        if self._token.lower() == "comment":
            self._advance()
            if self._token[:1] not in ("'", '"'):
                raise self._complaint("a comment in quotes")
            self._advance()

    def _type(self) -> DataType:
        start, name = self._start, self._token.lower()
        if not name.isidentifier():
            raise self._complaint("a type")
        self._advance()
        if name in _SIMPLE:
            return _SIMPLE[name]()
        if name in _DECIMALS:
            return self._decimal(start)
        if name in _CHARACTERS:
            self._numbers()
            return StringType()
        if name not in ("array", "map", "struct"):
            self._start = start
            raise self._complaint("a type that is read from JSON")
        self._expect("<")
        self._depth += 1
        _check_depth(self._depth)
        found: DataType
        if name == "array":
            found = ArrayType(self._type())
        elif name == "map":
            key_start = self._start
            if not isinstance(self._type(), StringType):
                self._start = key_start
                raise self._complaint("string, which the keys of JSON are,")
            self._expect(",")
            found = MapType(StringType(), self._type())
        else:
            found = StructType(self._fields(">"))
            if not found.fields:
                raise self._complaint("a column's name")
        self._expect(">")
        self._depth -= 1
        return found

    def _decimal(self, start: int) -> DecimalType:
        precision, *rest = self._numbers() if self._token == "(" else (10,)
        scale = rest[0] if rest else 0
        if len(rest) > 1 or not 1 <= precision <= 38 or not 0 <= scale <= precision:
            self._start = start
            raise self._complaint("a decimal of 1 to 38 digits")
        return DecimalType(precision, scale)

    def _numbers(self) -> tuple[int, ...]:
        """(10) or (10, 2)"""
        self._expect("(")
        numbers = []
        while True:
            if not self._token.isdecimal() or len(self._token) > _MOST_DIGITS:
                raise self._complaint("a number")
            numbers.append(int(self._advance()))
            if self._token != ",":
                break
            self._advance()
        self._expect(")")
        return tuple(numbers)
