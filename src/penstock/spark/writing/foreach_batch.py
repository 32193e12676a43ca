"""Streams that change rows they have written before: output mode `update`, which Spark gives to no Python sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INTERRUPTED = "java.lang.InterruptedException"


class Stopped(Exception):
    """The query was stopped within a batch.

    Spark looks for these words in what Python raised. In py4j's own text, with its long stack trace, it looks so deep that
    its thread runs out of stack.
    """

    def __init__(self) -> None:
        super().__init__(f"py4j.protocol.Py4JJavaError: An error occurred while calling save: {INTERRUPTED}")


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
            if str(getattr(error, "java_exception", "")).startswith(INTERRUPTED):
                raise Stopped from None
            raise

    return write
