"""Whether a stream can be in the real-time tier: what is known beforehand, and what Spark says.

Each reason is one sentence for the user. What is not known here Spark refuses, when a query starts or when it plans the
first batch.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark.connector import COMMAND, connector_jars
from penstock.spark.internals.jvm import CONNECTOR_CLASS, can_load
from penstock.spark.internals.jvm import slots as all_slots
from penstock.spark.internals.plan_json import plan_nodes
from penstock.spark.internals.sessions import is_remote_session
from penstock.spark.internals.stopping import POLL_S, has_tasks
from penstock.spark.options import ReadOptions
from penstock.spark.reading.topics import Topics
from penstock.spark.tiers.plans import Operator, is_stateful, obstacle, read_plan, slots_needed

FIRST_VERSION = (4, 2)
FIRST_STATEFUL_VERSION = (4, 3)
BATCH_ONLY_OPTIONS = (
    "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition",
)  # fmt: skip
# The Java consumer waits half a second for more records by default, at the end of a partition too.
REAL_TIME_SOURCE = {"kafka.fetch.max.wait.ms": "10"}
# At the end of each interval Spark asks where the partitions end. When a leader dies just then, the Java client stays with it
# until the time of its question is over, which is a minute by default. So questions are short, and there are more of them.
QUESTION_TIMES = {"kafka.request.timeout.ms": "10000", "kafka.default.api.timeout.ms": "10000"}
QUESTIONS = {"fetchOffset.numRetries": "12"}
# Names that our clients take beside the Java client's, which knows nothing of them.
LIBRDKAFKA_ONLY = re.compile(
    r"kafka\.(sasl\.(username|password|mechanisms)|sasl\.oauthbearer\.client\..*|ssl\.(ca|certificate|key)\.(location|pem))"
)
PEM_BEGINS = "-----BEGIN "
# What a refusal looks like, and a connector that does not go with its Spark; anything else is the query's own failure.
REFUSAL = re.compile(
    r"real.?time.?mode|CONCURRENT_SCHEDULER|output mode|NoClassDefFoundError|NoSuchMethodError|AbstractMethodError",
    re.I,
)
ACCEPT_TIMEOUT_S = 120.0
CONNECT_GRACE_S = 5.0  # how long a query over Spark Connect is watched, where its tasks cannot be seen
REASON_MAX_CHARS = 300


class NotRealTime(ValueError):
    """Why a stream cannot be in the real-time tier, where it was asked for."""


class Request(NamedTuple):
    """What `stream` was asked for, with the options in Spark's form."""

    source: dict[str, str]
    target: dict[str, str]
    read: ReadOptions
    transform: Callable[[DataFrame], DataFrame]
    checkpoint: str
    exactly_once: bool
    output_mode: str | None
    commit_group: str | None
    interval: str
    name: str | None


class _Running(NamedTuple):
    application_id: str
    query: StreamingQuery
    slots: int


_running: list[_Running] = []


def request_against(spark: SparkSession, request: Request) -> str | None:
    """What speaks against the real-time tier before the query is looked at."""
    if request.exactly_once:
        return "exactly_once=True: after a failure the real-time tier may write a row again"
    if request.output_mode not in (None, "update"):
        return f"output mode {request.output_mode} was asked for, and real-time mode has update only"
    given = {name.lower() for name in request.source}
    for option in BATCH_ONLY_OPTIONS:
        if option.lower() in given:
            return f"source option '{option}' is about batches, which the real-time tier has not"
    for option in {**request.source, **request.target}:
        if LIBRDKAFKA_ONLY.fullmatch(option.lower()):
            return f"option '{option}' means nothing to the Java client, which the real-time tier has"
    if _version(spark) < FIRST_VERSION:
        return f"Spark {spark.version} has no real-time mode in Python; Spark 4.2 has"
    if is_remote_session(spark):
        return None
    if can_load(spark, CONNECTOR_CLASS):
        return None
    if connector_jars():
        return (
            "this Spark was started without the jars of its Kafka connector; penstock.spark.session() "
            "passes them if they are there when it starts"
        )
    return (
        "the jars of Spark's Kafka connector are not there; with them (10 MB, "
        f"{COMMAND}) a record of this stream takes milliseconds"
    )


def real_time_source(given: Mapping[str, str]) -> dict[str, str]:
    """With our defaults. Who names one of the times gets the Java client's for the other: it refuses some pairs."""
    names = {name.lower() for name in given}
    times = {} if names & QUESTION_TIMES.keys() else {**QUESTION_TIMES, **QUESTIONS}
    return {**REAL_TIME_SOURCE, **times, **given}


def for_java(options: Mapping[str, str]) -> dict[str, str]:
    """With the types of PEM stores, which the Java client has to be told and our clients see for themselves."""
    given = {name.lower(): value for name, value in options.items()}
    types: dict[str, str] = {}
    for store, text in (("truststore", "certificates"), ("keystore", "key")):
        path = given.get(f"kafka.ssl.{store}.location")
        if f"kafka.ssl.{store}.{text}" in given or (path is not None and _is_pem(Path(path))):
            types[f"kafka.ssl.{store}.type"] = "PEM"
    return {**types, **options}


def _is_pem(path: Path) -> bool:
    return path.is_file() and PEM_BEGINS in path.read_bytes()[:4096].decode("ascii", "replace")


def plan_against(spark: SparkSession, plan: Operator, slots: int) -> str | None:
    if (why := obstacle(plan)) is not None:
        return why
    if is_stateful(plan) and _version(spark) < FIRST_STATEFUL_VERSION:
        return f"it keeps state, and the real-time mode of Spark {spark.version} does not; Spark 4.3 does"
    there = all_slots(spark)
    taken = _slots_taken(spark)
    if slots + taken < there:
        return None
    others = f"{taken} are taken by other real-time streams, and " if taken else ""
    return (
        f"its tasks run all at once and need {slots} slots; Spark has {there}, {others}one is kept free; "
        "penstock.spark.session(real_time=True) has 64"
    )


def slots_for(spark: SparkSession, request: Request, plan: Operator) -> int:
    topics = Topics(
        request.read.subscription, request.read.properties, is_read_committed=request.read.is_read_committed
    )
    try:
        partitions = len(topics.partitions())
    finally:
        topics.close()
    shuffle_partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return slots_needed(plan, source_partitions=partitions, shuffle_partitions=shuffle_partitions)


def _slots_taken(spark: SparkSession) -> int:
    application_id = spark.sparkContext.applicationId
    _running[:] = [each for each in _running if each.application_id == application_id and each.query.isActive]
    return sum(each.slots for each in _running)


def take_slots(spark: SparkSession, query: StreamingQuery, slots: int) -> None:
    """They are free again when the query ends."""
    _running.append(_Running(spark.sparkContext.applicationId, query, slots))


def wait_until_accepted(spark: SparkSession, query: StreamingQuery, *, is_remote: bool) -> None:
    """Spark refuses some queries only when it plans their first batch, in another thread. Tasks that run are its yes."""
    deadline_s = time.monotonic() + (CONNECT_GRACE_S if is_remote else ACCEPT_TIMEOUT_S)
    while time.monotonic() < deadline_s:
        if (error := query.exception()) is not None:
            raise error
        if not is_remote and has_tasks(spark, str(query.runId)):
            return
        time.sleep(POLL_S)


@contextmanager
def refusals() -> Iterator[None]:
    """What Spark refuses within is NotRealTime."""
    try:
        yield
    except Exception as error:  # Spark's, or py4j's where Spark has no name for it
        if (why := refusal(str(error))) is None:
            raise
        raise NotRealTime(f"Spark refuses it: {why}") from None


def refusal(message: str) -> str | None:
    """Spark's words, shortened, if it refuses real-time mode; None if the query failed for another reason.

    "[STREAMING_REAL_TIME_MODE.X] Streaming real-time mode has the following limitation: The output mode … SQLSTATE: 0A000"
    """
    said = message.partition("=== Streaming Query ===")[0]
    if REFUSAL.search(said) is None:
        return None
    first = re.sub(r"^\[[\w.]+\]\s*", "", said.strip())
    first = re.sub(r"^.*has the following limitation:\s*", "", first, flags=re.DOTALL)
    first = re.split(r"\s*SQLSTATE:|;?\n|\s*To bypass this check", first)[0].strip()
    return first if len(first) <= REASON_MAX_CHARS else first[: REASON_MAX_CHARS - 1] + "…"


def plan_of(frame: DataFrame) -> Operator:
    return read_plan(plan_nodes(frame))


def _version(spark: SparkSession) -> tuple[int, int]:
    major, minor = spark.version.split(".")[:2]
    return int(major), int(minor)
