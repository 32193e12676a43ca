"""Columns of bytes with the id of a schema, in queries: `from_registry` and `to_registry`.

They are Arrow functions of Python: nothing of the JVM is touched, so they work in Spark Connect, too. Executors need Penstock,
which `penstock.spark.session` sends them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.arrow.registry_schemas import FORMATS, SchemaText, WriteFormat, registered, registry_of
from penstock.client.errors import BadOption, Refused, UserError
from penstock.spark.internals.arrow_types import arrow_function, arrow_type, spark_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

URL = "schema.registry.url"


def from_registry(
    column: Column | str,
    subject: str | None = None,
    *,
    url: str,
    format: str = "avro",
    version: int | None = None,
    schema: str | None = None,
    mode: str = "PERMISSIVE",
    with_errors: bool = False,
    options: Mapping[str, str] | None = None,
) -> Column:
    """A column of bytes that begin with the id of a schema, as the reader's types: those of the subject's newest version, of
    `version`, or of the text `schema`.

    What cannot be read is null, or fails the query with mode="FAILFAST". `with_errors` makes a struct of `value` and `error`.
    `options` are `schema.registry.basic.auth.user.info` and the like. The registry is asked when this is called.
    """
    import pyarrow as pa
    from pyspark.sql.functions import col

    from penstock.arrow.registry_values import column_type

    _check_format(format)
    if mode.upper() not in ("PERMISSIVE", "FAILFAST"):
        raise BadOption(f"mode: must be PERMISSIVE or FAILFAST, not '{mode}'")
    if (subject is None) == (schema is None):
        raise BadOption("subject: give it, or the schema itself")
    registry = registry_of({URL: url, **(options or {})})
    if schema is not None:
        reader = SchemaText(FORMATS[format], schema)
    else:
        assert subject is not None
        try:
            reader = registered(registry, subject, version, format)
        except Refused as error:
            raise UserError(f"the schema registry has no schema for '{subject}': {error}") from None
    kind = column_type(reader)
    if with_errors:
        kind = pa.struct([("value", kind), ("error", pa.string())])
    read = _reading(registry, reader, fails_fast=mode.upper() == "FAILFAST", with_errors=with_errors)
    return arrow_function(read, spark_type(kind))(col(column) if isinstance(column, str) else column)


def to_registry(
    column: Column | str,
    subject: str,
    *,
    url: str,
    format: str = "avro",
    schema: str | None = None,
    auto_register: bool = True,
    use_latest: bool = False,
    options: Mapping[str, str] | None = None,
) -> Column:
    """A column as bytes that begin with the id of a schema: `schema`, the subject's newest with `use_latest`, or one that is made
    of the column's type. It is registered under `subject`, or with auto_register=False must be there. Null stays null."""
    from pyspark.sql.functions import col
    from pyspark.sql.types import BinaryType

    _check_format(format)
    how = WriteFormat(
        registry_of({URL: url, **(options or {})}),
        format,
        schema=schema,
        subject=subject,
        auto_register=auto_register,
        use_latest=use_latest,
    )
    write = arrow_function(_writing(how, subject), BinaryType())
    return write(col(column) if isinstance(column, str) else column)


def _check_format(said: str) -> None:
    if said not in FORMATS:
        raise BadOption(f"format: must be {', '.join(FORMATS)}, not '{said}'")


def _reading(
    registry: Any, reader: SchemaText, *, fails_fast: bool, with_errors: bool
) -> Callable[[pa.Array], pa.Array]:
    def read(values: pa.Array) -> pa.Array:
        import pyarrow as pa

        from penstock.arrow.json_values import BadValue, shown
        from penstock.arrow.registry_values import reader_of

        values = values if pa.types.is_binary(values.type) else values.cast(pa.binary())
        found = reader_of(registry, reader).read(values)
        if fails_fast and found.why:
            row = min(found.why)
            raise BadValue(f"a value is not read: {found.why[row]}: {shown(values[row].as_py())}")
        kind = arrow_type(spark_type(found.column.type))
        column = found.column if found.column.type.equals(kind) else found.column.cast(kind)
        if not with_errors:
            return column
        return pa.StructArray.from_arrays([column, found.errors()], names=["value", "error"])

    return read


def _writing(how: WriteFormat, subject: str) -> Callable[[pa.Array], pa.Array]:
    def write(values: pa.Array) -> pa.Array:
        from penstock.arrow.registry_writing import encoded

        return encoded(values, how, subject)

    return write
