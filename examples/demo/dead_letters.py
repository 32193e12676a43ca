"""Refused rows as dead letters, in the form that `penstock dlq show` and `penstock dlq replay` know.

Key, value and headers are the record's own. Behind its headers come ours, which say where it was and why it is here.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.consumer import dead_letters as names


def as_dead_letters(refused: DataFrame, *, group: str) -> DataFrame:
    """From rows with the columns of a topic and a column `refusal` of cause and message."""
    # The time of the batch, which is the same when Spark does a batch again: exactly-once depends on it.
    now_ms = f.unix_millis(f.current_timestamp())
    ours = {
        names.TOPIC: f.col("topic"),
        names.PARTITION: f.col("partition"),
        names.OFFSET: f.col("offset"),
        names.TIMESTAMP: f.unix_millis("timestamp"),
        names.GROUP: f.lit(group),
        names.CAUSE: f.col("refusal.cause"),
        names.MESSAGE: f.col("refusal.message"),
        names.STACK: f.lit(""),
        names.ATTEMPTS: f.lit(1),
        names.FIRST_FAILURE: now_ms,
        names.LAST_FAILURE: now_ms,
    }
    own = f.coalesce("headers", f.array().cast("array<struct<key: string, value: binary>>"))
    headers = f.concat(own, f.array(*(_header(name, value) for name, value in ours.items())))
    return refused.select("key", "value", headers.alias("headers"))


def _header(name: str, value: Column) -> Column:
    return f.struct(f.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
