"""Streams that change rows they have written before: output mode `update`, which Spark gives to no Python sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.spark.internals.saving import NotSaved, java_exception_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def to_topic(
    topic: str, *, bootstrap: str = "localhost:9092", exactly_once: bool = False, **options: str
) -> Callable[[DataFrame, int], None]:
    """For `foreachBatch`: writes each batch to a topic, with the sink's options.

    counts.writeStream.outputMode("update").foreachBatch(to_topic("counts", exactly_once=True)).start()
    """
    given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, **options}
    if exactly_once:
        given |= {"exactlyOnce": "true", "transactionalIdPrefix": options.get("transactionalIdPrefix", topic)}

    def write(frame: DataFrame, batch_id: int) -> None:
        try:
            frame.write.format("penstock").options(**given).mode("append").save()
        except Exception as error:
            if (java_exception := java_exception_of(error)) is None:
                raise
            raise NotSaved(java_exception) from None

    return write
