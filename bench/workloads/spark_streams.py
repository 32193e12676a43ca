"""Streaming queries from topic to topic: how long a record takes through them, and how long the first one."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from bench.context import ROOT, Context
from bench.measure import Row, Sample, Scale
from bench.servers import CONNECTOR, SPARK
from bench.spark import ensure_class_archive, tree_cpu_seconds
from penstock.testing.processes import ProcessFailed, RunningProcess, start_process

SIDES = (CONNECTOR, SPARK)
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
CLIENT_TIMEOUT_S = 300.0


@contextmanager
def running_queries(
    context: Context, topics: list[tuple[str, str]], **options: Any
) -> Iterator[RunningProcess]:
    """A Spark program that has begun to start its queries, in a process of its own."""
    options |= {"side": context.kind.name, "bootstrap": context.server().bootstrap, "topics": topics}
    command = [sys.executable, "-m", "bench.clients.spark_stream", json.dumps(options)]
    with context.fresh_directory() as directory:
        process = start_process(
            command, name="Spark", log_path=directory / "spark.log", working_directory=ROOT
        )
        try:
            yield process
        except ProcessFailed as error:
            # Of a client that waits in vain: the reason is in Spark's log.
            raise process.failure(str(error).splitlines()[0]) from error
        finally:
            process.stop(timeout_s=STOP_TIMEOUT_S)


@contextmanager
def topic_pairs(context: Context, name: str, count: int) -> Iterator[list[tuple[str, str]]]:
    with ExitStack() as stack:
        yield [
            (
                stack.enter_context(context.topic(f"{name}-{number}-in", partition_count=1)),
                stack.enter_context(context.topic(f"{name}-{number}-out", partition_count=1)),
            )
            for number in range(count)
        ]


class SparkLatency:
    server_names = SIDES

    def __init__(
        self, name: str, label: str, *, what: str, is_real_time: bool, targets: dict[str, float | None],
        query_count: int = 1, rate: int = 50, warm_up_s: float = 5, seconds: float = 10,
    ) -> None:  # fmt: skip
        self.name = name
        self.what = what
        self.is_real_time = is_real_time
        self.query_count = query_count
        self.rate = rate
        self.warm_up_s = warm_up_s
        self.seconds = seconds
        each = " each" if query_count > 1 else ""
        self.about = (
            f"{label}: {rate} records/s{each} of 100 B, topic to topic, produce to an independent consumer, local[2]; "
            f"{seconds:g} s after {warm_up_s:g} to warm up"
        )
        self.rows = tuple(
            Row(
                f"{part}_ms",
                f"{label}, {part}",
                "ms",
                "lower",
                target,
                "1,000 records" if part == "p50" else "",
                sides=SIDES,
            )
            for part, target in targets.items()
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        with topic_pairs(context, f"{self.name}-{context.kind.name}", self.query_count) as topics:
            context.settle()
            with running_queries(context, topics, what=self.what, is_real_time=self.is_real_time) as process:
                process.wait_for_line('"event": "started"', timeout_s=START_TIMEOUT_S)
                result = context.client(
                    "stream_latency",
                    timeout_s=CLIENT_TIMEOUT_S,
                    topics=topics,
                    rate=self.rate,
                    warm_up_s=self.warm_up_s,
                    seconds=self.seconds,
                    spark_pid=process.pid,
                )
                process.stop(timeout_s=STOP_TIMEOUT_S)
                lines = process.log_text().splitlines()
        # Spark, too, writes there, and says more about its end than anybody wants to know.
        durations = json.loads(next(line for line in reversed(lines) if line.startswith("{")))
        return Sample(
            {row.key: result[row.key] for row in self.rows},
            {"p50_ms": result["spark_cpu_s"] / result["record_count"] * 1000},
            {"p50_ms": result["p50_ms"], "p99_ms": result["p99_ms"], **durations},
        )


class SparkFirstRow:
    name = "spark-start"
    server_names = SIDES
    record_count = 1_000
    about = (
        "before the session is made → first row of a stream, topic to topic, at an independent consumer, local[2]; "
        "ours with its class archive (python -m penstock.spark.archive)"
    )
    rows = (
        Row("seconds", "session to the first row out of a stream", "s", "lower", 0.6, "start", sides=SIDES),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        with topic_pairs(context, f"{self.name}-{context.kind.name}", 1) as topics:
            ((source, target),) = topics
            context.client("produce", topic=source, record_count=self.record_count, record_bytes=100)
            ensure_class_archive()
            context.settle()
            with running_queries(context, topics, what="copy", is_real_time=False) as process:
                arrived = context.client("first_arrival", topic=target)
                cpu_seconds = tree_cpu_seconds(process.pid)
                begun = json.loads(process.log_text().splitlines()[0])
        return Sample({"seconds": arrived["monotonic_s"] - begun["monotonic_s"]}, {"seconds": cpu_seconds})
