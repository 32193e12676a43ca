"""How Spark tells a query that was stopped from one that failed, when its foreachBatch raises."""

from __future__ import annotations

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


def java_exception_of(error: Exception) -> str | None:
    """What the JVM said, if it was the JVM that failed."""
    found = getattr(error, "java_exception", None)
    return None if found is None else str(found)
