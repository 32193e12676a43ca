"""Columns of any type to values with the id of a schema, before they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from penstock.arrow.registry_schemas import WriteFormat
from penstock.spark.internals.arrow_types import arrow_type
from penstock.spark.writing.rows import Columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def encoded_batches(
    batches: Iterable[pa.RecordBatch], formats: Mapping[str, WriteFormat], columns: Columns, topic: str | None
) -> Iterator[pa.RecordBatch]:
    # Here: the driver, which only plans, needs no pyarrow.
    import pyarrow as pa

    from penstock.arrow.registry_writing import encoded, encoded_by_topic

    places = {"key": columns.key, "value": columns.value}
    for batch in batches:
        for name, how in formats.items():
            place = places[name]
            if place is None or not batch.num_rows:
                continue
            column = batch.column(place)
            if topic is not None:
                written = encoded(column, how, topic)
            else:
                assert columns.topic is not None
                written = encoded_by_topic(column, how, batch.column(columns.topic))
            batch = batch.set_column(place, pa.field(name, pa.binary()), written)
        yield batch


def check_encoding(schema: StructType, formats: Mapping[str, WriteFormat], topic: str | None) -> None:
    """On the driver, before any row: registers the schemas, and refuses columns that do not fit them."""
    from penstock.arrow.registry_writing import writer_for

    if topic is None:
        return
    for field in schema.fields:
        how = formats.get(field.name.lower())
        if how is not None:
            writer_for(how, topic, arrow_type(field.dataType))
