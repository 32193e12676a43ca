"""One call for a stream from topic to topic, two ways to run it.

Real-time: Spark's own Kafka connector under Spark's real-time mode, whose tasks run all the time and pass on each record
as it comes. Micro-batch: our source and sink, for everything else and exactly once. `stream` takes the first where the
query allows it and says why where it does not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from penstock.spark.internals.sessions import is_remote_session
from penstock.spark.internals.stopping import stop_quietly
from penstock.spark.options import read_options, write_options
from penstock.spark.tiers.checkpoints import Checkpoint, Tier
from penstock.spark.tiers.plans import output_mode as natural_output_mode
from penstock.spark.tiers.real_time import (
    NotRealTime,
    Request,
    for_java,
    plan_against,
    plan_of,
    real_time_source,
    refusals,
    request_against,
    slots_for,
    take_slots,
    wait_until_accepted,
)
from penstock.spark.watching.group_listener import GroupListener
from penstock.spark.writing.foreach_batch import to_topic
from penstock.spark.writing.rows import columns_of

log = logging.getLogger("penstock.spark")

TO_TOPIC_NAMES = ("topic", "kafka.bootstrap.servers")  # which `to_topic` has parameters for


class Stream:
    """A running stream. `reason` says why it is not in the real-time tier; None if it is, or was not to be."""

    def __init__(
        self,
        spark: SparkSession,
        query: StreamingQuery,
        tier: Tier,
        *,
        reason: str | None = None,
        listener: GroupListener | None = None,
    ) -> None:
        self.query = query
        self.tier: Tier = tier
        self.reason = reason
        self._spark = spark
        self._listener = listener

    def __repr__(self) -> str:
        return f"<Stream {self.query.name or self.query.id}, {self.tier}>"

    def stop(self) -> None:
        if self.tier == "real-time" and not is_remote_session(self._spark) and self.query.isActive:
            stop_quietly(self._spark, self.query)
        else:
            self.query.stop()
        if self._listener is not None:
            self._spark.streams.removeListener(self._listener)
            self._listener.close()
            self._listener = None

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Whether it has ended, in time. The exception of a stream that failed is raised here."""
        if timeout_s is None:
            self.query.awaitTermination()
            return True
        # Spark takes whole seconds.
        return bool(self.query.awaitTermination(max(1, round(timeout_s))))


def stream(
    spark: SparkSession,
    *,
    source: str,
    target: str,
    transform: Callable[[DataFrame], DataFrame],
    checkpoint: str,
    bootstrap: str = "localhost:9092",
    tier: Literal["auto", "real-time", "micro-batch"] = "auto",
    exactly_once: bool = False,
    output_mode: Literal["append", "update", "complete"] | None = None,
    commit_group: str | None = None,
    interval: str = "60 seconds",
    name: str | None = None,
    source_options: Mapping[str, str] | None = None,
    target_options: Mapping[str, str] | None = None,
) -> Stream:
    """Starts a stream from topics to a topic. `transform` gets the records and gives rows with `value` and perhaps `key`.

    `transform` may be called twice and must not start anything. `interval` is how often the real-time tier writes its
    checkpoint, and so how much it may repeat after a failure; nothing waits for it. With tier="real-time" a stream that
    cannot be there is NotRealTime, with "auto" it runs as micro-batches and `Stream.reason` says why.
    """
    if tier not in ("auto", "real-time", "micro-batch"):
        raise ValueError(f"tier must be auto, real-time or micro-batch, not '{tier}'")
    cluster = {"kafka.bootstrap.servers": bootstrap}
    given_source = {**cluster, "subscribe": source, **(source_options or {})}
    given_target = {**cluster, "topic": target, **(target_options or {})}
    read = read_options(given_source, streaming=True)
    request = Request(
        source=given_source,
        target=given_target,
        read=read,
        transform=transform,
        checkpoint=str(checkpoint),
        exactly_once=exactly_once or write_options(given_target).exactly_once,
        output_mode=output_mode,
        commit_group=commit_group or read.commit_group,
        interval=interval,
        name=name,
    )
    started = _started(spark, request, tier)
    log.info(
        "stream %s runs in the %s tier%s",
        name or started.query.id,
        started.tier,
        "" if started.reason is None else f": {started.reason}",
    )
    return started


def _started(spark: SparkSession, request: Request, tier: str) -> Stream:
    is_remote = is_remote_session(spark)
    place = None if is_remote else Checkpoint(spark, request.checkpoint)
    begun = None if place is None else place.tier()
    if begun is not None and tier not in ("auto", begun):
        raise NotRealTime(_other_tier(begun)) if tier == "real-time" else ValueError(_other_tier(begun))
    reason: str | None = None
    if tier != "micro-batch":
        try:
            if begun == "micro-batch":
                raise NotRealTime(_other_tier(begun))
            if is_remote and tier == "auto":
                raise NotRealTime(
                    "over Spark Connect the server's jars and the query's plan cannot be seen; "
                    'tier="real-time" tries it'
                )
            return _start_real_time(spark, request, place)
        except NotRealTime as error:
            if tier == "real-time":
                raise
            if begun == "real-time":
                raise NotRealTime(f"{_other_tier(begun)}, but now: {error}") from None
            reason = str(error)
    return _start_micro_batches(spark, request, place, reason)


def _other_tier(begun: Tier) -> str:
    return f"the checkpoint was begun in the {begun} tier and goes on there only; another tier needs another checkpoint"


def _start_real_time(spark: SparkSession, request: Request, place: Checkpoint | None) -> Stream:
    if (why := request_against(spark, request)) is not None:
        raise NotRealTime(why)
    with refusals():
        records = _reader(spark, "kafka", for_java(real_time_source(request.source))).load()
    frame = request.transform(records)
    columns_of(frame.schema, topic=request.target.get("topic"))
    slots = 0
    if place is not None:
        plan = plan_of(frame)
        slots = slots_for(spark, request, plan)
        if (why := plan_against(spark, plan, slots)) is not None:
            raise NotRealTime(why)
    query, listener = _accepted(spark, request, frame, is_remote=place is None)
    if place is not None:
        place.begin("real-time")
        take_slots(spark, query, slots)
    return Stream(spark, query, "real-time", listener=listener)


def _accepted(
    spark: SparkSession, request: Request, frame: DataFrame, *, is_remote: bool
) -> tuple[StreamingQuery, GroupListener | None]:
    """A real-time query that runs, and who commits its offsets."""
    writer: Any = (
        _writer(frame, request).format("kafka").options(**for_java(request.target)).outputMode("update")
    )
    with refusals():
        query = writer.trigger(realTime=request.interval).start()
        try:
            wait_until_accepted(spark, query, is_remote=is_remote)
        except BaseException:
            query.stop()
            raise
    if request.commit_group is None:
        return query, None
    listener = GroupListener(request.commit_group, request.read.properties, query_id=str(query.id))
    spark.streams.addListener(listener)
    return query, listener


def _start_micro_batches(
    spark: SparkSession, request: Request, place: Checkpoint | None, reason: str | None
) -> Stream:
    options = dict(request.source)
    if request.commit_group is not None:
        options["commit.group"] = request.commit_group
    frame = request.transform(_reader(spark, "penstock", options).load())
    columns_of(frame.schema, topic=request.target.get("topic"))
    # Over Spark Connect the plan is the server's; an aggregate has to ask for its mode there.
    mode = request.output_mode or ("append" if place is None else natural_output_mode(plan_of(frame)))
    writer = _writer(frame, request).outputMode(mode)
    if mode == "append":
        target = {**request.target, "exactlyOnce": "true"} if request.exactly_once else request.target
        writer = writer.format("penstock").options(**target)
    else:
        target = {name: value for name, value in request.target.items() if name not in TO_TOPIC_NAMES}
        writer = writer.foreachBatch(
            to_topic(
                request.target["topic"],
                bootstrap=request.target["kafka.bootstrap.servers"],
                exactly_once=request.exactly_once,
                **target,
            )
        )
    query = writer.start()
    if place is not None:
        place.begin("micro-batch")
    return Stream(spark, query, "micro-batch", reason=reason)


def _reader(spark: SparkSession, source_format: str, options: Mapping[str, str]) -> DataStreamReader:
    return spark.readStream.format(source_format).options(**options)


def _writer(frame: DataFrame, request: Request) -> DataStreamWriter:
    writer = frame.writeStream.option("checkpointLocation", request.checkpoint)
    return writer if request.name is None else writer.queryName(request.name)
