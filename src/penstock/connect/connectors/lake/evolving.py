"""A table made from the columns of the first records, and changed by those of later ones."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table

from penstock.connect.connectors.lake.partitions import PartitionField


def make_table(
    catalog: Catalog,
    name: str,
    schema: pa.Schema,
    *,
    partitions: Sequence[PartitionField],
    all_optional: bool,
    properties: dict[str, str],
) -> Table:
    """The one that is there, where another task was first."""
    columns = pa.schema([
        each.with_type(plain_type(each.type)).with_nullable(each.nullable or all_optional) for each in schema
    ])  # fmt: skip
    catalog.create_namespace_if_not_exists(catalog.namespace_from(name))
    try:
        with catalog.create_table_transaction(name, columns, properties=properties) as making:
            if partitions:
                with making.update_spec() as spec:
                    for each in partitions:
                        spec.add_field(each.column, each.transform, each.name)
    except (TableAlreadyExistsError, CommitFailedException):
        pass
    return catalog.load_table(name)


def columns_of(table: Table) -> pa.Schema:
    found = schema_to_pyarrow(table.schema(), include_field_ids=False)
    return pa.schema([each.with_type(plain_type(each.type)) for each in found])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """As Iceberg has it: without small numbers and large texts."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_integer(kind):
        return pa.int32() if kind.bit_width < 32 else kind
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(plain_type(each.type)) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", plain_type(kind.value_type), nullable=kind.value_field.nullable))
    if pa.types.is_map(kind):
        return pa.map_(
            pa.field("key", plain_type(kind.key_type), nullable=False),
            kind.item_field.with_type(plain_type(kind.item_type)).with_name("value"),
        )
    return kind


def widened(has: pa.DataType, gets: pa.DataType) -> pa.DataType:
    """What the column becomes: the same object where it stays as it is."""
    if pa.types.is_struct(has) and pa.types.is_struct(gets):
        return _widened_struct(has, gets)
    if pa.types.is_list(has) and pa.types.is_list(gets):
        items = widened(has.value_type, gets.value_type)
        return has if items is has.value_type else pa.list_(has.value_field.with_type(items))
    if pa.types.is_map(has) and pa.types.is_map(gets):
        items = widened(has.item_type, gets.item_type)
        return has if items is has.item_type else pa.map_(has.key_field, has.item_field.with_type(items))
    is_wider = (
        (has == pa.int32() and gets == pa.int64())
        or (has == pa.float32() and gets == pa.float64())
        or (
            pa.types.is_decimal128(has)
            and pa.types.is_decimal128(gets)
            and has.scale == gets.scale
            and has.precision < gets.precision
        )
    )
    return gets if is_wider else has


def _widened_struct(has: pa.StructType, gets: pa.StructType) -> pa.DataType:
    fields, is_same = [], True
    for field in has:
        at = gets.get_field_index(field.name)
        kind = field.type if at < 0 else widened(field.type, gets.field(at).type)
        is_same = is_same and kind is field.type
        fields.append(field.with_type(kind))
    new = [each.with_nullable(True) for each in gets if has.get_field_index(each.name) < 0]
    return has if is_same and not new else pa.struct([*fields, *new])


def evolve(table: Table, has: pa.Schema, data: pa.Table) -> bool:
    """Adds columns, widens types, and lets columns be null. Whether there was anything to change. CommitFailedException."""
    changed = []
    for field in data.schema:
        kind = plain_type(field.type)
        at = has.get_field_index(field.name)
        if at < 0:
            changed.append(field.with_type(kind).with_nullable(True))
        elif (wider := widened(has.field(at).type, kind)) is not has.field(at).type:
            changed.append(has.field(at).with_type(wider))
    optional = [
        field.name
        for field in has
        if not field.nullable and (field.name not in data.column_names or data.column(field.name).null_count)
    ]
    if not changed and not optional:
        return False
    with table.update_schema() as update:
        if changed:
            update.union_by_name(pa.schema(changed))
        for name in optional:
            update.make_column_optional(name)
    return True
