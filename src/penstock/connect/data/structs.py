"""A value of a struct's schema: fields by name, in the schema's order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.connect.data.checking import check
from penstock.connect.data.schema import Schema, Type
from penstock.connect.errors import DataError


class Struct:
    """`struct["id"]` reads (the default of a field that was not set), `struct["id"] = 1` checks and sets."""

    __slots__ = ("schema", "values")

    def __init__(self, schema: Schema) -> None:
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {schema!r}")
        self.schema = schema
        self.values: list[Any] = [None] * len(schema.fields)

    @classmethod
    def of(cls, schema: Schema, values: Mapping[str, Any]) -> Struct:
        """Checked. DataError for a name that the schema does not have."""
        made = cls(schema)
        for name, value in values.items():
            made[name] = value
        made.check()
        return made

    @classmethod
    def trusted(cls, schema: Schema, values: list[Any]) -> Struct:
        """For converters, which made the values by the schema: they are not checked, and the list is kept."""
        made = cls.__new__(cls)
        made.schema = schema
        made.values = values
        return made

    def __getitem__(self, name: str) -> Any:
        field = self.schema.field(name)
        if field is None:
            raise DataError(f"{name} is not a valid field name")
        value = self.values[field.index]
        return field.schema.default if value is None else value

    def get(self, name: str, default: Any = None) -> Any:
        """As in a dict: no error for a field that the schema does not have."""
        return self[name] if self.schema.field(name) is not None else default

    def without_default(self, name: str) -> Any:
        field = self.schema.field(name)
        if field is None:
            raise DataError(f"{name} is not a valid field name")
        return self.values[field.index]

    def __setitem__(self, name: str, value: Any) -> None:
        field = self.schema.field(name)
        if field is None:
            raise DataError(f"{name} is not a valid field name")
        check(field.schema, value, name=name)
        self.values[field.index] = value

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.schema.field(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in self.schema.fields)

    def items(self) -> Iterator[tuple[str, Any]]:
        return ((field.name, self[field.name]) for field in self.schema.fields)

    def check(self) -> None:
        for field, value in zip(self.schema.fields, self.values, strict=True):
            check(field.schema, value, name=field.name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct):
            return NotImplemented
        return self.schema == other.schema and self.values == other.values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        said = ", ".join(
            f"{field.name}={value!r}" for field, value in zip(self.schema.fields, self.values, strict=True)
        )
        return f"Struct({said})"
