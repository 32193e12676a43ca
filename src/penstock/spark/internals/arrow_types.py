"""The Arrow types that Spark has for its own. What a Python source yields must have these and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    # Here: the driver, which only plans, needs no pyarrow.
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def spark_type(kind: pa.DataType) -> DataType:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import NullType

    return NullType() if str(kind) == "null" else from_arrow_type(kind)


def arrow_type(kind: DataType) -> pa.DataType:
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(kind, timezone="UTC")


def arrow_function(function: Callable[[pa.Array], pa.Array], kind: DataType) -> Callable[[Column], Column]:
    """A function of arrays as one of columns. Spark tells by annotations that an array comes in and goes out."""
    import pyarrow as pa
    from pyspark.sql.pandas.functions import arrow_udf

    function.__annotations__ = {"values": pa.Array, "return": pa.Array}
    made: Any = arrow_udf
    found: Callable[[Column], Column] = made(function, returnType=kind)
    return found
