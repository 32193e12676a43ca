"""PySpark's own pickling of functions, for tasks that run without Spark: the same programs can be sent as to Spark's tasks."""

from __future__ import annotations

from typing import Any


def pickled(thing: Any) -> bytes:
    """Functions of a program's main module and those within functions, too; `pickle.loads` reads it."""
    from pyspark import cloudpickle

    dump: Any = cloudpickle.dumps
    sent: bytes = dump(thing)
    return sent
