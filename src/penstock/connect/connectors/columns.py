"""Records as Arrow tables: what parquet files and lake tables are written from.

Values with a schema become columns by functions that are made once for a schema. Maps without one become columns of the types
that their values have; where these do not go together the column is text, with JSON for what is no text.

boolean, int8 … int64, float, double, string, bytes    the same           Date        date32
struct, array, map                                     struct, list, map  Time        time64[us]
Decimal  decimal128(38, scale)                                            Timestamp   timestamp[us, UTC]
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import Any, Final

import orjson
import pyarrow as pa

from penstock.connect.data.logical import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, scale_of
from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError

MAX_DEPTH: Final = 32
MAX_DIGITS: Final = 38
MAX_SCHEMAS: Final = 256
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
Build = Callable[[Sequence[Any]], pa.Array]

_SCALARS: Final[Mapping[Type, pa.DataType]] = {
    Type.BOOLEAN: pa.bool_(), Type.INT8: pa.int8(), Type.INT16: pa.int16(), Type.INT32: pa.int32(), Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(), Type.FLOAT64: pa.float64(), Type.STRING: pa.string(), Type.BYTES: pa.binary(),
}  # fmt: skip
_LOGICAL: Final[Mapping[str, pa.DataType]] = {
    DATE_NAME: pa.date32(), TIME_NAME: pa.time64("us"), TIMESTAMP_NAME: TIMESTAMP,
}  # fmt: skip
_ARROW_ERRORS: Final = (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError)


def arrow_type(schema: Schema, depth: int = 0) -> pa.DataType:
    """DataError for what no column can be made of."""
    if depth > MAX_DEPTH:
        raise DataError(f"a schema of more than {MAX_DEPTH} levels has no columns")
    if schema.name is not None and schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.name == DECIMAL_NAME:
        scale = scale_of(schema)
        if not 0 <= scale <= MAX_DIGITS:
            raise DataError(f"a decimal of scale {scale} has no column")
        return pa.decimal128(MAX_DIGITS, scale)
    if schema.type in _SCALARS:
        return _SCALARS[schema.type]
    if schema.type is Type.STRUCT:
        return pa.struct(_fields(schema, depth))
    if schema.items is None or (schema.type is Type.MAP and schema.keys is None):
        raise DataError("an array or map without a schema of what is in it has no column")
    items = pa.field(
        "element" if schema.type is Type.ARRAY else "value",
        arrow_type(schema.items, depth + 1),
        nullable=schema.items.is_optional,
    )
    if schema.type is Type.ARRAY:
        return pa.list_(items)
    assert schema.keys is not None
    return pa.map_(pa.field("key", arrow_type(schema.keys, depth + 1), nullable=False), items)


def _fields(schema: Schema, depth: int = 0) -> list[pa.Field]:
    """Where a struct may be null its fields may, too: Arrow has values for them all the same."""
    may_be_null = depth > 0 and schema.is_optional
    return [
        pa.field(
            each.name,
            arrow_type(each.schema, depth + 1),
            nullable=may_be_null or each.schema.is_optional,
        )
        for each in schema.fields
    ]


class TableBuilder:
    """Of one schema of structs."""

    def __init__(self, schema: Schema) -> None:
        """DataError."""
        if schema.type is not Type.STRUCT:
            raise DataError(f"columns are made of structs, not of {schema.type}")
        self.schema: Final = pa.schema(_fields(schema))
        self._builds = [_builder(each.schema, 1) for each in schema.fields]

    def build(self, structs: Sequence[Struct]) -> pa.Table:
        """DataError when a value is not what its schema says."""
        columns = (
            zip(*[each.values for each in structs], strict=True) if structs else [()] * len(self._builds)
        )
        try:
            arrays = [build(column) for build, column in zip(self._builds, columns, strict=True)]
            if not arrays:
                return pa.table({}).select([])
            return pa.Table.from_arrays(arrays, schema=self.schema)
        except _ARROW_ERRORS as error:
            raise DataError(f"a value does not fit its schema: {error}") from None


_builders: dict[Schema, TableBuilder] = {}


def builder_of(schema: Schema) -> TableBuilder:
    found = _builders.get(schema)
    if found is None:
        if len(_builders) >= MAX_SCHEMAS:
            _builders.clear()
        found = _builders[schema] = TableBuilder(schema)
    return found


def table_of(schema: Schema | None, values: Sequence[Any]) -> pa.Table:
    """Of values that have this schema, or maps that have none. DataError."""
    if schema is not None and schema.type is Type.STRUCT:
        return builder_of(schema).build(values)
    for value in values:
        if not isinstance(value, dict):
            raise DataError(
                f"columns are made of structs, or of maps without a schema, not of {type(value).__name__}"
            )
    return table_of_maps(values)


def table_of_maps(maps: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A column for each name, in the order in which they come. What is null in all rows is left out."""
    names = dict.fromkeys(chain.from_iterable(maps))
    columns = {str(name): guessed([each.get(name) for each in maps]) for name in names}
    return known_columns(columns, len(maps))


def known_columns(columns: Mapping[str, pa.Array | pa.ChunkedArray], rows: int) -> pa.Table:
    """Without that of which nothing is known yet: what is null in all rows, or empty."""
    known = {}
    for name, column in columns.items():
        kind = known_type(column.type)
        if kind is not None:
            known[name] = column if kind is column.type else fitted(column, kind)
    if not known:
        # Arrow keeps the number of rows only where there is a column.
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))])
    return pa.table(known)


def known_type(kind: pa.DataType) -> pa.DataType | None:
    """The same object where all of it is known."""
    if pa.types.is_null(kind):
        return None
    if pa.types.is_struct(kind):
        fields = [(each, known_type(each.type)) for each in kind]
        if fields and all(found is each.type for each, found in fields):
            return kind
        left = [each.with_type(found) for each, found in fields if found is not None]
        return pa.struct(left) if left else None
    if pa.types.is_list(kind):
        items = known_type(kind.value_type)
        if items is None or items is kind.value_type:
            return None if items is None else kind
        return pa.list_(kind.value_field.with_type(items))
    return kind


def fitted(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """As this type: fields that a struct does not have are null, those that the type does not have are left out.
    Whole numbers become times as milliseconds, containers text as JSON. DataError for a value that would change."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if array.type.equals(kind):
        return array
    try:
        return _fitted(array, kind)
    except _ARROW_ERRORS as error:
        raise DataError(str(error)) from None


def _fitted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type.equals(kind):
        return array
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        children = []
        for field in kind:
            at = array.type.get_field_index(field.name)
            child = pa.nulls(len(array), field.type) if at < 0 else _fitted(array.field(at), field.type)
            children.append(child)
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if _is_list(kind) and _is_list(array.type):
        return _rebuilt(array, kind, [_fitted(array.values, kind.value_type)])
    if pa.types.is_map(kind) and pa.types.is_map(array.type):
        entries = pa.StructArray.from_arrays(
            [_fitted(array.keys, kind.key_type), _fitted(array.items, kind.item_type)],
            fields=[kind.key_field, kind.item_field],
        )
        return _rebuilt(array, kind, [entries])
    if pa.types.is_nested(array.type) and kind == pa.string():
        return pa.array([_text(value) for value in array.to_pylist(maps_as_pydicts="lossy")], kind)
    if pa.types.is_integer(array.type) and pa.types.is_timestamp(kind):
        return array.cast(pa.int64()).cast(pa.timestamp("ms", kind.tz)).cast(kind)
    if pa.types.is_nested(kind) != pa.types.is_nested(array.type) and not pa.types.is_null(array.type):
        raise DataError(f"{array.type} does not become {kind}")
    return array.cast(kind)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _rebuilt(array: pa.Array, kind: pa.DataType, children: list[pa.Array]) -> pa.Array:
    """The same offsets around other children."""
    validity, ends, *_ = array.buffers()
    if pa.types.is_large_list(kind) != pa.types.is_large_list(array.type):
        raise DataError(f"{array.type} does not become {kind}")
    return pa.Array.from_buffers(kind, len(array), [validity, ends], offset=array.offset, children=children)


def guessed(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except _ARROW_ERRORS:
        return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _builder(schema: Schema, depth: int = 0) -> Build:
    kind = arrow_type(schema, depth)
    build: Build
    if schema.name == TIMESTAMP_NAME:
        build = partial(_times, kind)
    elif schema.name == DECIMAL_NAME or schema.name in _LOGICAL or schema.type in _SCALARS:
        build = partial(pa.array, type=kind)
    elif schema.type is Type.STRUCT:
        build = partial(_structs, kind, [_builder(each.schema, depth + 1) for each in schema.fields])
    elif schema.type is Type.ARRAY:
        assert schema.items is not None
        build = partial(_lists, kind, _builder(schema.items, depth + 1))
    else:
        assert schema.keys is not None
        assert schema.items is not None
        build = partial(_maps, kind, _builder(schema.keys, depth + 1), _builder(schema.items, depth + 1))
    if schema.default is not None:
        default = schema.default
        return lambda values: build([default if value is None else value for value in values])
    return build


def _times(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """A time without a zone is taken for UTC."""
    return pa.array(
        [
            value.replace(tzinfo=dt.UTC) if value is not None and value.tzinfo is None else value
            for value in values
        ],
        kind,
    )


def _structs(kind: pa.StructType, builds: Sequence[Build], values: Sequence[Any]) -> pa.Array:
    blank = (None,) * len(builds)
    rows = [blank if value is None else value.values for value in values]
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(builds)
    arrays = [build(column) for build, column in zip(builds, columns, strict=True)]
    nulls = [value is None for value in values]
    mask = pa.array(nulls, pa.bool_()) if any(nulls) else None
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask)


def _ends(values: Sequence[Any]) -> pa.Array:
    """Offsets of lists; null in front of one that is null."""
    places = list(accumulate((0 if value is None else len(value) for value in values), initial=0))
    shown = [None if value is None else place for value, place in zip(values, places, strict=False)] + places[
        -1:
    ]
    return pa.array(shown, pa.int32())


def _lists(kind: pa.ListType, build: Build, values: Sequence[Any]) -> pa.Array:
    items = build(list(chain.from_iterable(value for value in values if value is not None)))
    return pa.ListArray.from_arrays(_ends(values), items, type=kind)


def _maps(kind: pa.MapType, build_keys: Build, build_items: Build, values: Sequence[Any]) -> pa.Array:
    there = [value for value in values if value is not None]
    keys = build_keys(list(chain.from_iterable(there)))
    items = build_items(list(chain.from_iterable(value.values() for value in there)))
    return pa.MapArray.from_arrays(_ends(values), keys, items, type=kind)


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """One below the other: a column that one does not have is null there, numbers become the wider type, and what does not go
    together text."""
    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        pass
    names = dict.fromkeys(chain.from_iterable(each.column_names for each in tables))
    rows = chain.from_iterable(each.to_pylist(maps_as_pydicts="lossy") for each in tables)
    whole = list(rows)
    return known_columns({name: guessed([row.get(name) for row in whole]) for name in names}, len(whole))
