"""The values of records, which are JSON, as a column of structs with typed fields."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.arrow.zone_files import TIME_ZONES
from penstock.records.columnar.columns import OFFSET, PARTITION, TOPIC, VALUE
from penstock.records.columnar.json_columns import LocalTime, parse_objects

SHOWN_BYTES = 100


class BadValue(ValueError):
    """A value that is no JSON of the wanted types; the message has its place and its beginning."""


def parsed_values(
    batch: pa.RecordBatch, kind: pa.StructType, *, fails_fast: bool = False, time_zone: str = "UTC"
) -> pa.StructArray:
    """In place of the column `value`. What cannot be read is null, or BadValue if `fails_fast`.

    For its message the batch needs the columns topic, partition and offset.
    """
    values = batch.column(VALUE)
    found = parse_objects(values, kind, LocalTime(TIME_ZONES, time_zone))
    if fails_fast and found.incomplete.any():
        row = int(np.argmax(found.incomplete))
        place = (
            f"{batch.column(TOPIC)[row]}-{batch.column(PARTITION)[row]} at offset {batch.column(OFFSET)[row]}"
        )
        what = "is no JSON object" if found.malformed[row] else "has a field of another type"
        raise BadValue(f"the value of {place} {what}: {shown(values[row].as_py())}")
    return found.column


def shown(value: bytes) -> str:
    """On one line, whatever is in it."""
    text = value[:SHOWN_BYTES].decode(errors="replace")
    more = "…" if len(value) > SHOWN_BYTES else ""
    return "".join(one if one.isprintable() else "\ufffd" for one in text) + more
