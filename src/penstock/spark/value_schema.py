"""The option `valueSchema`: columns and types as in Spark's `from_json`, read without the JVM, which planning has not.

`id long, tags array<string>, who struct<name: string, age: int>`; with or without `struct<…>` around it, or the JSON
of a StructType (`frame.schema.json()`).
"""

from __future__ import annotations

import json
import re

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
_TOKEN = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(\w+)|([<>(),:]))", re.ASCII
)
_END = ""


def parse_value_schema(text: str) -> StructType:
    """BadOption that says what is not understood, and where."""
    if text.lstrip().startswith("{"):
        try:
            text = StructType.fromJson(json.loads(text)).simpleString()
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadOption(OPTION, "is not the JSON of a StructType") from None
    return _Parser(text).schema()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._start = 0  # of the token
        self._is_quoted = False
        self._token = _END
        self._advance()

    def schema(self) -> StructType:
        if self._token.lower() == "struct" and self._text[self._at :].lstrip().startswith("<"):
            found = self._type()
            assert isinstance(found, StructType)
        else:
            found = StructType(self._fields(_END))
        if self._token != _END:
            raise self._complaint("nothing more")
        if not found.fields:
            raise BadOption(OPTION, "must name one column at least")
        return found

    def _advance(self) -> str:
        passed = self._token
        rest = self._text[self._at :]
        self._start = self._at + len(rest) - len(rest.lstrip())
        if not rest.strip():
            self._token = _END
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
        rest = self._text[self._start :].strip()
        return BadOption(OPTION, f"has {f'«{rest[:40]}»' if rest else 'its end'} where {wanted} is expected")

    def _fields(self, closing: str) -> list[StructField]:
        fields: list[StructField] = []
        while self._token != closing or self._is_quoted:
            if fields:
                self._expect(",")
            name = self._name()
            if name in (field.name for field in fields):
                raise BadOption(OPTION, f"has the column '{name}' twice")
            if self._token == ":":
                self._advance()
            fields.append(StructField(name, self._type()))
            self._skip_remarks()
        return fields

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
        if name in ("char", "varchar", "character"):
            self._numbers()
            return StringType()
        if name not in ("array", "map", "struct"):
            self._start = start
            raise self._complaint("a type that is read from JSON")
        self._expect("<")
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
            if not self._token.isdecimal():
                raise self._complaint("a number")
            numbers.append(int(self._advance()))
            if self._token != ",":
                break
            self._advance()
        self._expect(")")
        return tuple(numbers)
