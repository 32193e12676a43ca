"""What the Spark connectors can be configured with. `spark.option.…` and `spark.conf.…` are besides the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.connect.settings import HIGH, LOW, Kind, Setting, Settings, at_least, one_of

OPTION: Final = "spark.option."
CONF: Final = "spark.conf."
STREAM, BATCH = "stream", "batch"
IGNORE, FAIL = "ignore", "fail"
METADATA: Final = ("topic", "partition", "offset", "timestamp", "key")
FILES: Final = frozenset({"parquet", "orc", "json", "csv", "text", "avro", "xml"})

_SHARED: Final = Settings(
    Setting("spark.format", Kind.STRING, "The format: what one gives to `format(…)` in Spark.", importance=HIGH),
    Setting("spark.path", Kind.STRING, "What one gives to `load` or `save`, where the format takes a path.", default=None,
            importance=HIGH),
    Setting("spark.table", Kind.STRING, "A table of Spark's catalog, in the place of a path.", default=None),
    Setting("spark.master", Kind.STRING, "Where Spark does the work.", default="local[*]"),
    Setting("spark.checkpoint.location", Kind.STRING, "A folder, on any file system that Spark reaches, where it is kept how far "
            "the connector has come. Streams need one; a sink with one writes each batch once where the target can tell.",
            default=None, importance=HIGH),
    Setting("spark.schema", Kind.STRING, "Columns with their types, as in CREATE TABLE: what a reader is told, and what the "
            "columns of a sink are made into.", default=None),
    Setting("spark.start.timeout.ms", Kind.INT, "How long Spark may take to start.", default=120_000, check=at_least(1000),
            importance=LOW),
)  # fmt: skip

SINK_SETTINGS: Final = _SHARED | Settings(
    Setting("spark.write.mode", Kind.STRING, "The writer's mode, where a batch has no folder of its own.", default="append",
            check=one_of("append", "overwrite", "ignore", "error")),
    Setting("spark.partition.by", Kind.LIST, "Columns after which the writer divides what it writes.", default=()),
    Setting("spark.batch.rows", Kind.INT, "A batch is written when it has so many records, or when offsets are to be committed.",
            default=50_000, check=at_least(1)),
    Setting("spark.batch.column", Kind.STRING, "With a checkpoint, files of a batch lie in a folder `NAME=NUMBER`, which readers "
            "see as a column.", default="batch_id", importance=LOW),
    Setting("spark.foreach.batch", Kind.STRING, "`module:function`, which is called with a DataFrame and the batch's number in "
            "the place of the writer.", default=None),
    Setting("spark.metadata.columns", Kind.LIST, f"Which of {', '.join(METADATA)} become columns `record_…` besides.",
            default=()),
    Setting("behavior.on.null.values", Kind.STRING, "What is done with a record without a value: `ignore`, or `fail`, which "
            "makes it one that the sink refuses.", default=IGNORE, check=one_of(IGNORE, FAIL)),
)  # fmt: skip

SOURCE_SETTINGS: Final = _SHARED | Settings(
    Setting("topic", Kind.STRING, "The topic that the rows go to.", importance=HIGH),
    Setting("spark.mode", Kind.STRING, "`stream` reads with `readStream`; `batch` reads what is there once, or again and again.",
            default=BATCH, check=one_of(STREAM, BATCH), importance=HIGH),
    Setting("spark.repeat.interval.ms", Kind.INT, "With `batch`: everything is read again so long after the last reading. 0: it "
            "is read once.", default=0, check=at_least(0)),
    Setting("spark.trigger.interval.ms", Kind.INT, "With `stream`: how often Spark looks for more.", default=500,
            check=at_least(0)),
    Setting("spark.poll.rows", Kind.INT, "The most rows at a time.", default=10_000, check=at_least(1), importance=LOW),
)  # fmt: skip


def with_prefix(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}


def mistakes_of(values: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    if values["spark.path"] and values["spark.table"]:
        found["spark.table"] = ["There is a path already: set spark.path or spark.table"]
    if values["spark.master"].startswith("sc://"):
        found["spark.master"] = [
            "A Spark Connect server cannot be used here: name a master, such as local[*] or spark://host:port"
        ]
    if values.get("spark.mode") == STREAM and not values["spark.checkpoint.location"]:
        found["spark.checkpoint.location"] = ["A stream needs a folder for its checkpoints"]
    wrong = [name for name in values.get("spark.metadata.columns", ()) if name not in METADATA]
    if wrong:
        found["spark.metadata.columns"] = [f"There is no {', '.join(wrong)}: there are {', '.join(METADATA)}"]
    function = values.get("spark.foreach.batch")
    if function and len(function.split(":")) != 2:
        found["spark.foreach.batch"] = [f"A function is named module:function, and not {function}"]
    return found
