"""Connect's data model: schemas, structs and the logical types, as plain Python values. Pure."""

from penstock.connect.data.logical import DATE, TIME, TIMESTAMP, decimal
from penstock.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    STRING,
    Field,
    Schema,
    Type,
    array,
    map_of,
    struct,
    struct_of,
)
from penstock.connect.data.structs import Struct

__all__ = [
    "Schema", "Field", "Type", "Struct",
    "BOOLEAN", "INT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64", "STRING", "BYTES",
    "OPTIONAL_STRING", "OPTIONAL_BYTES", "DATE", "TIME", "TIMESTAMP", "decimal",
    "struct", "struct_of", "array", "map_of",
]  # fmt: skip
