"""Streams that change rows they have written before: output mode `update`, which Spark gives to no Python sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INTERRUPTED = "java.lang.InterruptedException"
WORKER_IS_GONE = "Python worker exited unexpectedly"
CAUSE_LENGTH = 2000


class NotSaved(Exception):
    """Spark did not save a batch, or the query was stopped within it.

    Which of the two, Spark finds out by the name of a Java exception, anywhere behind the words that py4j begins with.
    In py4j's own text, with its long stack trace, it looks so deep that its thread runs out of stack.
    """

    def __init__(self, java_exception: str) -> None:
        lines = [line for line in java_exception.splitlines() if not line.startswith("\tat ")]
        cause = "\n".join(lines)[:CAUSE_LENGTH]
        if WORKER_IS_GONE in cause:  # a query that is stopped hangs up on its Python processes, too
            cause = f"{cause}, or the query was stopped: {INTERRUPTED}"
        super().__init__(f"py4j.protocol.Py4JJavaError: An error occurred while calling save: {cause}")


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
            if (java_exception := getattr(error, "java_exception", None)) is None:
                raise
            raise NotSaved(str(java_exception)) from None

    return write
