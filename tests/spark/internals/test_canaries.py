"""One canary for each module of penstock.spark.internals: it fails by its name when Spark changes what that module uses."""

from __future__ import annotations

import importlib
import inspect
import pickle
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import py4j.clientserver
import pyarrow as pa
import pyspark.daemon
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.connect.session import SparkSession as RemoteSession
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from penstock.spark.internals import daemon, interrupts, local_properties, settings
from penstock.spark.internals.arrow_types import arrow_schema
from penstock.spark.internals.file_systems import Directory
from penstock.spark.internals.gateway import jvm_process
from penstock.spark.internals.jvm import can_load, slots
from penstock.spark.internals.pickling import pickled
from penstock.spark.internals.plan_json import plan_nodes
from penstock.spark.internals.registering import VARIABLES
from penstock.spark.internals.saving import WORKER_IS_GONE, NotSaved
from penstock.spark.internals.sessions import is_remote_session, is_spark_running, is_stopped
from penstock.spark.internals.stopping import ERROR_NOTIFIERS, LOUD_WHEN_STOPPED
from tests.conftest import MakeTopic
from tests.spark.conftest import ReadTopic, finish

# Slots of the session that the tests share.
SLOTS = 6


def java(spark: SparkSession, class_name: str) -> Any:
    found: Any = spark._jvm
    for part in class_name.split("."):
        found = getattr(found, part)
    return found


def shared_environment(spark: SparkSession) -> Any:
    """The map that all queries of the source share."""
    session: Any = spark._jsparkSession
    return session.sessionState().dataSourceManager().lookupDataSource("penstock").dataSourceCls().envVars()


def numbers(spark: SparkSession) -> DataFrame:
    """A stream that needs nothing outside of Spark."""
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()


def test_arrow_types_are_those_that_spark_expects() -> None:
    schema = StructType([StructField("a", StringType()), StructField("t", TimestampType(), nullable=False)])
    assert arrow_schema(schema).equals(
        pa.schema([pa.field("a", pa.string()), pa.field("t", pa.timestamp("us", "UTC"), nullable=False)])
    )


def test_daemon_of_tasks_is_ours_and_has_imported_what_they_need(spark: SparkSession) -> None:
    assert not inspect.signature(pyspark.daemon.manager).parameters
    # It is looked up by its name when a worker begins, and we put another in its place.
    assert "code = worker(" in inspect.getsource(pyspark.daemon.manager)
    for module in daemon.TASK_MODULES:
        importlib.import_module(module)  # the daemon passes over one that is not there

    def look(_: int) -> tuple[str, list[str]]:
        main = sys.modules["__main__"].__spec__
        return ("" if main is None else main.name), [
            name for name in daemon.TASK_MODULES if name not in sys.modules
        ]

    assert spark.sparkContext.parallelize([0], 1).map(look).collect() == [
        ("penstock.spark.internals.daemon", [])
    ]


def test_file_systems_are_hadoop_s_with_the_configuration_of_the_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    directory = Directory(spark, tmp_path.as_uri() + "/checkpoint")
    assert directory.names("offsets") == []
    directory.create_empty("mark")
    assert directory.has("mark")
    (tmp_path / "checkpoint" / "offsets").mkdir()
    (tmp_path / "checkpoint" / "offsets" / "7").touch()
    assert directory.names("offsets") == ["7"]


def test_gateway_is_a_process_that_ends_with_its_input(spark: SparkSession) -> None:
    process = jvm_process(spark)
    assert process.poll() is None
    assert process.stdin is not None
    assert isinstance(process, importlib.import_module("pyspark.java_gateway").Popen)


def test_interpreter_takes_a_zip_off_the_path_that_spark_puts_there(spark: SparkSession) -> None:
    assert "pyspark.zip" in java(spark, "org.apache.spark.api.python.PythonUtils").sparkPythonPath()

    def look(_: int) -> tuple[str, list[str]]:
        return pyspark.__file__, [place for place in sys.path if place.endswith("pyspark.zip")]

    assert spark.sparkContext.parallelize([0], 1).map(look).collect() == [(pyspark.__file__, [])]


def test_interrupts_know_spark_s_handler_and_what_py4j_logs(spark: SparkSession) -> None:
    assert is_spark_running()
    assert getattr(signal.getsignal(signal.SIGINT), "__module__", None) == interrupts.__name__
    said = inspect.getsource(py4j.clientserver) + inspect.getsource(
        importlib.import_module("py4j.java_gateway")
    )
    assert all(message in said for message in interrupts.ON_INTERRUPT)


def test_jvm_tells_which_classes_it_can_load_and_how_many_slots_it_has(spark: SparkSession) -> None:
    assert can_load(spark, "org.apache.spark.SparkContext")
    assert not can_load(spark, "org.example.NotThere")
    assert slots(spark) == SLOTS


def test_local_properties_tell_a_task_its_query_batch_and_run(spark: SparkSession, tmp_path: Path) -> None:
    names = (local_properties.QUERY_ID, local_properties.BATCH_ID, local_properties.RUN_ID)

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict(
                {"told": [local_properties.local_property(name) for name in names]}
            )

    writer = (
        numbers(spark)
        .mapInArrow(look, "told string")
        .writeStream.format("memory")
        .queryName("canary_properties")
    )
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    finish(query)
    told = [row.told for row in spark.table("canary_properties").collect()]
    assert told == [str(query.id), "0", str(query.runId)]


def test_pickling_sends_functions_that_have_no_name() -> None:
    added = 40
    assert pickle.loads(pickled(lambda x: x + added))(2) == 42


def test_plan_json_has_operators_with_their_children_and_python_by_name(spark: SparkSession) -> None:
    rate = numbers(spark).withWatermark("timestamp", "1 second")
    nodes = plan_nodes(rate.groupBy(f.session_window("timestamp", "1 second")).count())
    assert [node["class"].rpartition(".")[2] for node in nodes] == [
        "Aggregate", "Filter", "Project", "EventTimeWatermark", "StreamingRelationV2",
    ]  # fmt: skip
    assert [node["num-children"] for node in nodes] == [1, 1, 1, 1, 0]
    assert nodes[0]["groupingExpressions"][0][0]["name"] == "session_window"
    assert nodes[-1]["sourceName"] == "rate-micro-batch"
    shuffled = plan_nodes(rate.repartition(3))[0]
    assert (shuffled["class"].rpartition(".")[2], shuffled["numPartitions"]) == ("Repartition", 3)
    python = plan_nodes(rate.select(f.udf(lambda value: value)("value")))[0]
    assert "org.apache.spark.sql.catalyst.expressions.PythonUDF" in str(python["projectList"])


def test_registering_leaves_nothing_for_a_query_to_add(
    spark: SparkSession, make_topic: MakeTopic, stream_topic: ReadTopic, tmp_path: Path
) -> None:
    shared = shared_environment(spark)
    assert all(shared.containsKey(name) for name in VARIABLES)
    assert not set(VARIABLES) & spark.sparkContext.environment.keys(), "other functions keep theirs"
    before = set(shared)
    writer = stream_topic(make_topic()).writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    finish(writer.trigger(availableNow=True).start())
    assert set(shared_environment(spark)) == before


def test_saving_that_a_stop_has_interrupted_is_known_to_spark_by_its_text(spark: SparkSession) -> None:
    execution = java(spark, "org.apache.spark.sql.execution.streaming.runtime.StreamExecution")
    context: Any = spark.sparkContext._jsc
    exception = java(spark, "py4j.Py4JException")

    def is_a_stop(cause: str) -> bool:
        return bool(execution.isInterruptionException(exception(str(NotSaved(cause))), context.sc()))

    assert is_a_stop("java.lang.InterruptedException")
    assert is_a_stop(WORKER_IS_GONE)
    assert not is_a_stop("java.lang.IllegalStateException: no")


def test_sessions_say_whether_they_run_are_stopped_or_remote(spark: SparkSession) -> None:
    assert is_spark_running()
    assert not is_stopped(spark)
    assert "self._jsc = None" in inspect.getsource(type(spark.sparkContext).stop)
    assert not is_remote_session(spark)
    assert is_remote_session(RemoteSession.__new__(RemoteSession))


def test_settings_are_ones_that_spark_has(spark: SparkSession, tmp_path: Path) -> None:
    known = java(spark, "org.apache.spark.internal.config.ConfigEntry")
    version = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    names = {*settings.QUICK_SETTINGS, *settings.DAEMON}
    names.remove(settings.CHECKPOINT_FILE_MANAGER_SETTING)  # which is read from elsewhere: below
    for name in names:
        is_there = version >= settings.SINCE.get(name, (0, 0))
        assert (known.findEntry(name) is not None) is is_there, name
    session: Any = spark._jsparkSession
    path = java(spark, "org.apache.hadoop.fs.Path")(str(tmp_path))
    managers = java(spark, "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager")
    manager = managers.create(path, session.sessionState().newHadoopConf())
    assert manager.getClass().getName() == settings.CHECKPOINT_FILE_MANAGER


def test_stopping_is_quiet_by_the_names_of_classes_that_log(spark: SparkSession) -> None:
    missing = [name for name in LOUD_WHEN_STOPPED if not can_load(spark, name)]
    assert len(missing) == 1
    assert missing[0] in ERROR_NOTIFIERS, "which is in one of two places"


def test_threads_have_no_active_session_until_a_writer_gives_them_one(spark: SparkSession) -> None:
    rows = spark.range(1)

    def look() -> tuple[bool, bool]:
        before = SparkSession.getActiveSession() is not None
        _ = rows.write.format("penstock")
        return before, SparkSession.getActiveSession() is not None

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(look).result() == (False, True)
    stream = numbers(spark)
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(lambda: stream.writeStream.format("penstock")).result() is not None
