"""Topics in Spark, from pip alone: a source and a sink with the columns and options of Spark's own Kafka connector.

    import penstock.spark
    spark = penstock.spark.session()
    orders = spark.readStream.format("penstock").option("kafka.bootstrap.servers", "localhost:9092") \\
        .option("subscribe", "orders").load()

The one path: `source.PenstockDataSource` is what Spark knows and `options` checks what it was told; `reading` makes rows
of topics and `writing` records of rows, at least or exactly once. `session` makes a SparkSession with all that,
`workers` is what its Python processes have, `watching` shows queries to others. `tiers` runs a stream in Spark's
real-time mode where that takes it, with the jars of `connector`; `tasks` are programs whose tasks do not end;
`topic_tables` are topics in Spark SQL. Keys and values
with schemas of a registry: `registry_options`, `typed_columns`, `writing.encoding` and `registry_functions`.

Promises: the rows that Spark's connector gives for the same options, from any Kafka cluster; a micro-batch that is
replayed has the same rows in the same tasks; a wrong option is refused by its name before anything runs; with
`exactlyOnce` a reader of committed records sees each row once, whatever dies. Not promised:
`format("penstock")` in Spark's real-time mode (it takes no Python sources), column pruning (Spark does not ask for it).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.spark.session import register, session
from penstock.spark.writing.foreach_batch import to_topic

if TYPE_CHECKING:
    from penstock.spark.registry_functions import from_registry, to_registry
    from penstock.spark.tiers.real_time import NotRealTime
    from penstock.spark.tiers.stream import Stream, stream
    from penstock.spark.topic_tables import catalog
    from penstock.spark.watching.progress import ProgressListener, show_progress

_MODULES = {
    "catalog": "topic_tables",
    "show_progress": "watching.progress",
    "ProgressListener": "watching.progress",
    "stream": "tiers.stream",
    "Stream": "tiers.stream",
    "NotRealTime": "tiers.real_time",
    "from_registry": "registry_functions",
    "to_registry": "registry_functions",
}
__all__ = [
    "session", "register", "to_topic", "catalog", "stream", "Stream", "NotRealTime", "show_progress", "ProgressListener",
    "from_registry", "to_registry",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """What needs Spark when it is imported."""
    if name in _MODULES:
        return getattr(import_module(f"penstock.spark.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
