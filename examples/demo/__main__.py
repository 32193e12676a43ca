"""A day of bio-impedance measurements through a stack and a Spark pipeline: uploads, refusals, windows, a summary."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession
from rich.console import Console

import penstock.spark
from examples.demo import other_pipelines, topics, verify
from examples.demo.day import Upload, uploads
from examples.demo.feed import Feed
from examples.demo.lab import Lab
from examples.demo.pipeline import Pipeline
from examples.demo.population import Population, population
from examples.demo.quiet import stderr_in
from examples.demo.show import Screen, commands, show_checks, show_summary
from examples.demo.streaming import stream
from examples.demo.way import Way

SEED = 7  # every run has the same day
WORKERS = 1200
MEASUREMENTS = 60_000
KEPT_S = 24 * 3600.0
# A program of half a minute: what the JVM could do after minutes of compiling does not matter.
QUICK_START: dict[str, Any] = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": False,
}


def run(screen: Screen, way: Way, directory: Path, measurements: int) -> bool:
    """Whether the pipeline's results are those that were expected."""
    screen.line("  [dim]Spark starts, and a day is invented …[/dim]")
    with Feed(way) as feed:
        with ThreadPoolExecutor(1) as thread:
            inventing = thread.submit(invent, screen, measurements)  # while Spark starts
            spark = start_spark(directory / "spark.log")
        with closing_spark(spark):
            people, day = inventing.result()
            feed.send_workers(people)
            screen.step(f"Spark {pyspark.__version__} runs; the uploads come while two queries read")
            pipeline = Pipeline(spark, way, directory)
            stream(pipeline, feed, day, screen)
            pipeline.write_table()
            outcome = verify.check(way, day)
        feed.log(f"{len(outcome.summary)} rows of summary, {outcome.refused.total()} measurements refused")
    return show(screen, outcome)


def run_another(screen: Screen, way: Way, directory: Path, measurements: int, pipeline: str) -> bool:
    """The same as a program of penstock.streams, or in SQL."""
    screen.line("  [dim]Spark starts, and a day is invented …[/dim]")
    with Feed(way) as feed, ExitStack() as stack:
        with ThreadPoolExecutor(1) as thread:
            inventing = thread.submit(invent, screen, measurements)
            spark = None
            if pipeline == other_pipelines.STREAMS:
                spark = start_spark(directory / "spark.log", master="local[8]")
                stack.enter_context(closing_spark(spark))
            people, day = inventing.result()
        feed.send_workers(people)
        stack.enter_context(
            other_pipelines.running_sql(way, directory)
            if spark is None
            else other_pipelines.running_streams(way, {"spark": spark})
        )
        screen.step(f"the pipeline runs ({pipeline}); the uploads come")
        other_pipelines.stream(pipeline, way, feed, day, screen)
        outcome = verify.check(way, day)
    return show(screen, outcome)


def show(screen: Screen, outcome: verify.Outcome) -> bool:
    show_checks(screen, outcome)
    show_summary(screen, outcome.summary)
    return not outcome.problems


def start_spark(log_path: Path, master: str = "local[2]") -> SparkSession:
    with stderr_in(log_path):
        return penstock.spark.session("bioimpedancia", master=master, **QUICK_START)


@contextmanager
def closing_spark(spark: SparkSession) -> Iterator[None]:
    try:
        yield
    finally:
        spark.stop()


def invent(screen: Screen, measurements: int) -> tuple[Population, list[Upload]]:
    chance = random.Random(SEED)
    people = population(WORKERS, chance)
    day = []
    with screen.counting("invent", measurements) as advance:
        for upload in uploads(measurements, people, chance):
            day.append(upload)
            advance(len(upload.measurements))
    screen.step(f"{measurements:,} measurements of {len(people.workers):,} workers, in {len(day)} uploads")
    return people, day


def show_commands(screen: Screen, lab: Lab, directory: Path, *, keep: bool, pipeline: str) -> None:
    if keep:
        screen.line("\n[bold]Look around[/bold], from another terminal:")
    else:
        screen.line(
            "\n[bold]make demo KEEP=1[/bold] leaves the stack up, with a console in the browser, and for commands like these:"
        )
    for command in commands(lab.way, directory, pipeline, lab.addresses()):
        screen.command(command)


@contextmanager
def working_directory(screen: Screen) -> Iterator[Path]:
    """Removed at the end, unless something failed that one may want to look at."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    try:
        yield directory
    except Exception as error:
        (directory / "demo.log").write_text(traceback.format_exc())
        screen.problem(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
        screen.line(f"  all logs and the broker's files are in {directory}")
        raise SystemExit(1) from None
    except BaseException:
        shutil.rmtree(directory)
        raise
    shutil.rmtree(directory)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--secure", action="store_true", help="with TLS, a login and access rules")
    parser.add_argument(
        "--pipeline",
        choices=("spark", other_pipelines.STREAMS, other_pipelines.SQL),
        default="spark",
        help="in which form it runs: as Spark queries, as a program of penstock.streams, in SQL (default: %(default)s)",
    )
    parser.add_argument("--keep", action="store_true", help="keep the stack running afterwards")
    parser.add_argument("--port", type=int, help="the broker's port (default: a free one)")
    parser.add_argument(
        "--measurements", type=int, default=MEASUREMENTS, help="how many (default: %(default)s)"
    )
    words = parser.parse_args()
    screen = Screen(Console())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, screen.interrupt)
    started = time.monotonic()
    try:
        with working_directory(screen) as directory, ExitStack() as stack:
            screen.line("  [dim]the stack of examples/lab/penstock.yaml starts …[/dim]")
            lab = stack.enter_context(Lab(directory, port=words.port, is_secure=words.secure))
            way = lab.way
            how = " with TLS and a login" if words.secure else ""
            screen.step(f"a broker listens on {way.bootstrap}{how}, after {time.monotonic() - started:.1f} s")
            screen.step("beside it ZooKeeper, the schema registry, REST, Connect, SQL and the console")
            screen.step(f"topics: {', '.join(topics.TOPICS)}")
            if words.pipeline == "spark":
                is_right = run(screen, way, directory, words.measurements)
            else:
                is_right = run_another(screen, way, directory, words.measurements, words.pipeline)
            screen.line(f"\nAll of this took {time.monotonic() - started:.0f} s.")
            show_commands(screen, lab, directory, keep=words.keep, pipeline=words.pipeline)
            if words.keep and is_right:
                console = lab.addresses()["console"]
                screen.line(f"\n[bold]The console[/bold]: {console}{login_hint(way)}")
                screen.line("The stack stays up until Ctrl-C.")
                wait_for_interrupt(lab)
    except KeyboardInterrupt:
        screen.line("\nstopped")
        return 130
    return 0 if is_right else 1


def login_hint(way: Way) -> str:
    if way.config is None:
        return ""
    return f" (as {way.user}, with the password that is in {way.config})"


def wait_for_interrupt(lab: Lab) -> None:
    try:
        lab.wait_for_end(KEPT_S)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    sys.exit(main())
