"""Any schema, and any value of it, for property tests."""

from __future__ import annotations

import datetime as dt
from decimal import Context, Decimal
from typing import Any

from hypothesis import strategies as st

from penstock.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
    decimal,
)
from penstock.connect.data.floats import to_single
from penstock.connect.data.schema import INTEGER_BITS

SCALARS = (
    BOOLEAN,
    INT8,
    INT16,
    INT32,
    INT64,
    FLOAT32,
    FLOAT64,
    STRING,
    BYTES,
    decimal(2),
    decimal(0),
    DATE,
    TIME,
    TIMESTAMP,
)
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)


def schemas(depth: int = 2, *, keys: tuple[Schema, ...] = (STRING, INT32)) -> st.SearchStrategy[Schema]:
    scalars = st.sampled_from(SCALARS)
    if depth == 0:
        return optional(scalars)
    inner = schemas(depth - 1, keys=keys)
    maps = st.builds(lambda key, items: Schema(Type.MAP, keys=key, items=items), st.sampled_from(keys), inner)
    return optional(
        scalars | inner.map(lambda items: Schema(Type.ARRAY, items=items)) | maps | structs(depth, keys=keys)
    )


def structs(depth: int = 2, *, keys: tuple[Schema, ...] = (STRING, INT32)) -> st.SearchStrategy[Schema]:
    fields = st.dictionaries(NAMES, schemas(depth - 1, keys=keys), max_size=5)
    return fields.map(lambda found: Schema(Type.STRUCT, fields=found.items()))


def optional(strategy: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.builds(
        lambda schema, is_optional: schema.with_(is_optional=is_optional), strategy, st.booleans()
    )


_BY_NAME: dict[str | None, st.SearchStrategy[Any]] = {
    DATE.name: st.dates(),
    TIME.name: st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)),
    TIMESTAMP.name: st.datetimes().map(
        lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000, tzinfo=dt.UTC)
    ),
}
_BY_TYPE: dict[Type, st.SearchStrategy[Any]] = {
    Type.BOOLEAN: st.booleans(),
    Type.FLOAT32: st.floats(width=32, allow_nan=False, allow_infinity=False).map(to_single),
    Type.FLOAT64: st.floats(allow_nan=False, allow_infinity=False),
    Type.STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    Type.BYTES: st.binary(max_size=8),
}


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    found = _present(schema)
    return st.none() | found if schema.is_optional else found


def _present(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.name in _BY_NAME:
        return _BY_NAME[schema.name]
    if schema.parameters.get("scale") is not None:
        scale = int(schema.parameters["scale"])
        return st.integers(-(10**30), 10**30).map(
            lambda number: Decimal(number).scaleb(-scale, Context(prec=60))
        )
    bits = INTEGER_BITS.get(schema.type)
    if bits is not None:
        return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if schema.type is Type.STRUCT:
        return st.tuples(*(values_of(field.schema) for field in schema.fields)).map(
            lambda found: Struct.trusted(schema, list(found))
        )
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        return st.lists(values_of(schema.items), max_size=3)
    if schema.type is Type.MAP:
        assert schema.keys is not None
        assert schema.items is not None
        return st.dictionaries(values_of(schema.keys), values_of(schema.items), max_size=3)
    return _BY_TYPE[schema.type]


@st.composite
def records(draw: st.DrawFn, of: st.SearchStrategy[Schema]) -> tuple[Schema, Any]:
    schema = draw(of)
    return schema, draw(values_of(schema))
