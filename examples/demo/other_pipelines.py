"""The pipeline as a program of `penstock.streams`, and as SQL: started, fed upload by upload, and awaited."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from examples.demo import streams_pipeline, topics, verify
from examples.demo.day import Upload
from examples.demo.feed import Feed
from examples.demo.way import Way
from penstock.admin import Cluster
from penstock.testing.processes import start_process

if TYPE_CHECKING:
    from examples.demo.show import Screen

STREAMS, SQL = "streams", "sql"
STATEMENTS = Path(__file__).with_name("pipeline.sql")
SERVICE = "demo_"
GROUPS = {STREAMS: (streams_pipeline.NAME, 1), SQL: (f"_confluent-ksql-{SERVICE}query_", 4)}
"""Of the queries: how their groups begin, and how many there are."""
POLL_INTERVAL_S = 0.1
START_TIMEOUT_S = 180.0
TIMEOUT_S = 300.0


class NotDone(Exception):
    """The pipeline does not get on."""


@contextmanager
def running_streams(way: Way, where: dict[str, Any]) -> Iterator[None]:
    """`where`: a Spark session or a launcher, as `App.start` takes it."""
    app = streams_pipeline.program(way)
    query = app.start(**where)
    try:
        query.wait_until_running(START_TIMEOUT_S)
        yield
    finally:
        app.stop()


@contextmanager
def running_sql(way: Way, directory: Path) -> Iterator[None]:
    """A server that runs the script, as a process of its own."""
    words = ["--bootstrap-server", way.bootstrap, "--queries-file", str(STATEMENTS), "--port", "0"]
    words += ["--set", f"ksql.service.id={SERVICE}"]
    if way.config is not None:
        words += ["--command-config", str(way.config)]
    server = start_process(
        [sys.executable, "-m", "penstock", "sql-server", "--host", "127.0.0.1", *words],
        name="the SQL server",
        log_path=directory / "sql-server.log",
    )
    try:
        server.wait_for_line("listening on http", timeout_s=START_TIMEOUT_S)
        yield
    finally:
        server.stop()


def stream(pipeline: str, way: Way, feed: Feed, day: Sequence[Upload], screen: Screen) -> None:
    """Each upload when the one before has been read: late measurements wait for nobody. Returns when all results are there."""
    with Cluster(way.bootstrap, way.options) as cluster:
        for upload in day:
            feed.send_upload(upload)
            wait_until(partial(is_read, cluster, pipeline), f"{upload.upload} is not read")
        wait_until(partial(is_complete, way, day), "results are missing", check=False)
    screen.step(f"{len(day)} uploads are worked off")


def is_read(cluster: Cluster, pipeline: str) -> bool:
    """Whether every query has worked off its topics; what is on the way in a topic of its own keeps its order there.

    What a query writes for others ends with the mark of a transaction, which is no record. Who reads it commits behind the
    mark some seconds later: one offset is nothing to wait for.
    """
    prefix, count = GROUPS[pipeline]
    names = [each.group_id for each in cluster.groups.list() if each.group_id.startswith(prefix)]
    reading = [committed for committed in map(cluster.groups.committed, names) if committed]
    read = {place.topic for committed in reading for place in committed if not place.topic.startswith(prefix)}
    if len(reading) < count or topics.MEASUREMENTS not in read:
        return False
    ends = cluster.offsets.ends(*read)  # asked for last, so that nothing is overlooked
    return all(
        end - (committed[place].offset if place in committed else 0) <= (place.topic not in topics.TOPICS)
        for committed in reading
        for place, end in ends.items()
        if any(place.topic == each.topic for each in committed)
    )


def is_complete(way: Way, day: Sequence[Upload]) -> bool:
    return not verify.check(way, day).problems


def wait_until(is_done: Callable[[], bool], what: str, *, check: bool = True) -> None:
    """Without `check` it is left to the verification to say what is wrong."""
    deadline = time.monotonic() + TIMEOUT_S
    while not is_done():
        if time.monotonic() > deadline:
            if check:
                raise NotDone(f"{what}, for {TIMEOUT_S:.0f} s")
            return
        time.sleep(POLL_INTERVAL_S)
