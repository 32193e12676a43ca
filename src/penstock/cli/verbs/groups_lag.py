"""penstock groups lag: how far groups are behind, once or as a view that refreshes itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.verbs.common_options import administered, completion, output_option
from penstock.cli.verbs.output import (
    NOTHING,
    Column,
    as_json,
    cells,
    console,
    show_lines,
    show_rows,
    show_table,
    table,
)

if TYPE_CHECKING:
    from penstock.admin import Cluster
    from penstock.admin.groups.lag import GroupLag, Pace, Progress, TopicLag

DEFAULT_PAUSE_S = 2.0
NO_GROUPS = "No groups yet. A consumer with a group makes one: penstock consume TOPIC --group NAME"

Look = tuple[list[Any], Sequence[Column[Any]]]
"""The rows of one look, and their columns."""

COMMITTED: list[Column[tuple[str, Progress]]] = [
    Column("group", lambda row: row[0]),
    Column("topic", lambda row: row[1].partition.topic),
    Column("partition", lambda row: row[1].partition.partition),
    Column("committed", lambda row: None if row[1].committed is None else row[1].committed.offset),
    Column("end_offset", lambda row: row[1].end_offset, "end"),
    Column("lag", lambda row: row[1].lag),
    Column(
        "member",
        lambda row: None if row[1].member is None else row[1].member.member_id,
        cell=lambda row: "" if row[1].member is None else row[1].member.member_id,
    ),
]
BY_TOPIC: list[Column[TopicLag]] = [
    Column("group", lambda one: one.group),
    Column("topic", lambda one: one.topic),
    Column("partitions", lambda one: one.partitions),
    Column("members", lambda one: one.members),
    Column("state", lambda one: one.state),
    Column("lag", lambda one: one.lag),
]


@click.command()
@click.argument(
    "names",
    nargs=-1,
    metavar="[GROUP]...",
    shell_complete=completion(lambda cluster: (one.group_id for one in cluster.groups.list())),
)
@click.option("-p", "--by-partition", is_flag=True, help="A line for each partition, not for each topic.")
@click.option("-w", "--watch", is_flag=True, help="Refresh until Ctrl-C, with records per second.")
@click.option(
    "--every", "pause_s", type=click.FloatRange(min=0.1), default=DEFAULT_PAUSE_S, show_default=True,
    metavar="SECONDS", help="How often --watch refreshes.",
)  # fmt: skip
@click.option("--times", type=click.IntRange(min=1), help="How many times --watch looks; else until Ctrl-C.")
@output_option
@administered
def lag(
    cluster: Cluster,
    names: tuple[str, ...],
    by_partition: bool,
    watch: bool,
    pause_s: float,
    times: int | None,
    output: str,
) -> None:
    """Show how many records groups have not read yet; of all groups where none is named.

    \b
    Example:
      penstock groups lag billing --by-partition
      penstock groups lag --watch --every 1
    """
    if watch:
        _watch(cluster, names, by_partition=by_partition, pause_s=pause_s, times=times, output=output)
        return
    rows, columns = _looked(cluster.groups.lag(*names), by_partition=by_partition)
    show_rows(output, rows, columns, empty=NO_GROUPS)


def _looked(found: list[GroupLag], *, by_partition: bool, pace: Pace | None = None) -> Look:
    from penstock.admin.groups.lag import topic_lags

    if by_partition:
        return [(group.group_id, row) for group, rows in found for row in rows], COMMITTED
    if pace is None:
        return topic_lags(found), BY_TOPIC
    speeds = pace.per_second

    def speed(one: TopicLag) -> str:
        found = speeds.get((one.group, one.topic))
        return NOTHING if found is None else f"{found:.0f}/s"

    return topic_lags(found), [*BY_TOPIC, Column(None, speed, "read")]


def _watch(
    cluster: Cluster,
    names: tuple[str, ...],
    *,
    by_partition: bool,
    pause_s: float,
    times: int | None,
    output: str,
) -> None:
    import itertools

    from penstock.admin.groups.lag import Pace

    pace = Pace()

    def looks() -> Iterator[Look]:
        for number in itertools.count(1):
            found = cluster.groups.lag(*names)
            pace.look(found, time.monotonic())
            yield _looked(found, by_partition=by_partition, pace=pace)
            if number == times:
                return
            time.sleep(pause_s)

    def document(look: Look) -> list[dict[str, object]]:
        rows, columns = look
        return [as_json(row, columns) for row in rows]

    with _screen(output) as draw:
        show_lines(output, looks(), draw, document=document)


@contextmanager
def _screen(output: str) -> Iterator[Callable[[Look], None]]:
    """A function that draws one look for people: in place on a terminal, one below the other in a pipe."""
    import sys

    if output == "json" or not sys.stdout.isatty():

        def print_table(look: Look) -> None:
            show_table(*cells(*look))
            print()

        yield print_table
        return
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=console(), screen=False, auto_refresh=False) as live:

        def refresh(look: Look) -> None:
            clock = Text(f"{time.strftime('%H:%M:%S')}  Ctrl-C ends", style="dim")
            live.update(Group(clock, table(*cells(*look))), refresh=True)

        yield refresh
