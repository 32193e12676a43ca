"""penstock groups lag: how far groups are behind, once or as a view that refreshes itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from penstock.cli.clients import Connection
from penstock.cli.verbs.common_options import connected, output_option
from penstock.cli.verbs.groups_options import complete_groups, found_groups

if TYPE_CHECKING:
    from penstock.cli.groups.lag import Progress
    from penstock.cli.groups.model import Description, Groups

DEFAULT_PAUSE_S = 2.0
UNKNOWN = "–"

Found = list[tuple["Description", list["Progress"]]]


class TopicLag(NamedTuple):
    """One group's lag in one topic."""

    group: str
    topic: str
    partitions: int
    members: int
    state: str
    committed: int
    """The sum over its partitions: only its growth means something."""
    lag: int | None


@click.command()
@click.argument("names", nargs=-1, metavar="[GROUP]...", shell_complete=complete_groups)
@click.option("-p", "--by-partition", is_flag=True, help="A line for each partition, not for each topic.")
@click.option("-w", "--watch", is_flag=True, help="Refresh until Ctrl-C, with records per second.")
@click.option(
    "--every", "pause_s", type=click.FloatRange(min=0.1), default=DEFAULT_PAUSE_S, show_default=True,
    metavar="SECONDS", help="How often --watch refreshes.",
)  # fmt: skip
@click.option("--times", type=click.IntRange(min=1), help="How many times --watch looks; else until Ctrl-C.")
@output_option
@connected
def lag(
    connection: Connection,
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
    from penstock.cli.groups.source import open_groups

    with open_groups(connection) as groups:
        if watch:
            _watch(groups, names, by_partition=by_partition, pause_s=pause_s, times=times, output=output)
            return
        found = _look(groups, names)
    if output == "json":
        from penstock.cli.verbs.output import show_json

        show_json(_as_json(found, by_partition=by_partition))
    elif not found:
        click.echo(
            "No groups yet. A consumer with a group makes one: penstock consume TOPIC --group NAME", err=True
        )
    else:
        from penstock.cli.verbs.output import show_table

        columns, rows = _table(found, None, by_partition=by_partition)
        show_table(columns, rows)


def _look(groups: Groups, names: tuple[str, ...]) -> Found:
    from penstock.cli.groups.lag import progress
    from penstock.cli.groups.model import Description

    if names:
        described = found_groups(groups, names)
    else:
        listed = sorted(one.group_id for one in groups.listing() if one.is_of_consumers)
        # One that went away since it was listed is no error.
        described = [one for one in groups.describe(listed).values() if isinstance(one, Description)]
    return [(group, progress(groups, group)) for group in described]


def topic_lags(found: Found) -> list[TopicLag]:
    lags = []
    for group, rows in found:
        by_topic: dict[str, list[Progress]] = {}
        for row in rows:
            by_topic.setdefault(row.partition.topic, []).append(row)
        for topic in sorted(by_topic):
            mine = by_topic[topic]
            known = [row.lag for row in mine if row.lag is not None]
            lags.append(
                TopicLag(
                    group.group_id,
                    topic,
                    len(mine),
                    len({row.member.member_id for row in mine if row.member is not None}),
                    group.state,
                    sum(row.committed.offset for row in mine if row.committed is not None),
                    sum(known) if known else None,
                )
            )
    return lags


def progress_rows(group_id: str, rows: list[Progress]) -> list[tuple[object, ...]]:
    return [
        (
            group_id,
            row.partition.topic,
            row.partition.partition,
            UNKNOWN if row.committed is None else row.committed.offset,
            UNKNOWN if row.end_offset is None else row.end_offset,
            UNKNOWN if row.lag is None else row.lag,
            "" if row.member is None else row.member.member_id,
        )
        for row in rows
    ]


def progress_as_json(group_id: str, row: Progress) -> dict[str, object]:
    return {
        "group": group_id,
        "topic": row.partition.topic,
        "partition": row.partition.partition,
        "committed": None if row.committed is None else row.committed.offset,
        "end_offset": row.end_offset,
        "lag": row.lag,
        "member": None if row.member is None else row.member.member_id,
    }


def _as_json(found: Found, *, by_partition: bool) -> list[dict[str, object]]:
    if by_partition:
        return [progress_as_json(group.group_id, row) for group, rows in found for row in rows]
    return [
        {
            "group": one.group,
            "topic": one.topic,
            "partitions": one.partitions,
            "members": one.members,
            "state": one.state,
            "lag": one.lag,
        }
        for one in topic_lags(found)
    ]


class Pace:
    """Records per second of each group and topic, from one look to the next."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], int] = {}
        self._at_s = 0.0
        self.per_second: dict[tuple[str, str], float] = {}

    def look(self, found: Found, now_s: float) -> None:
        committed = {(one.group, one.topic): one.committed for one in topic_lags(found)}
        passed_s = now_s - self._at_s
        self.per_second = {
            key: (value - self._before[key]) / passed_s
            for key, value in committed.items()
            if key in self._before and passed_s > 0
        }
        self._before, self._at_s = committed, now_s


def _table(
    found: Found, pace: Pace | None, *, by_partition: bool
) -> tuple[list[str], list[tuple[object, ...]]]:
    if by_partition:
        columns = ["group", "topic", "partition", "committed", "end", "lag", "member"]
        return columns, [row for group, rows in found for row in progress_rows(group.group_id, rows)]
    columns = ["group", "topic", "partitions", "members", "state", "lag"]
    rows: list[tuple[object, ...]] = []
    for one in topic_lags(found):
        row: tuple[object, ...] = (
            one.group,
            one.topic,
            one.partitions,
            one.members,
            one.state,
            UNKNOWN if one.lag is None else one.lag,
        )
        if pace is not None:
            speed = pace.per_second.get((one.group, one.topic))
            row = (*row, UNKNOWN if speed is None else f"{speed:.0f}/s")
        rows.append(row)
    return (columns if pace is None else [*columns, "read"]), rows


def _watch(
    groups: Groups,
    names: tuple[str, ...],
    *,
    by_partition: bool,
    pause_s: float,
    times: int | None,
    output: str,
) -> None:
    import itertools

    pace = Pace()
    with _screen(output) as show:
        for number in itertools.count(1):
            found = _look(groups, names)
            pace.look(found, time.monotonic())
            if output == "json":
                show(_as_json(found, by_partition=by_partition))
            else:
                show(_table(found, pace, by_partition=by_partition))
            if number == times:
                return
            time.sleep(pause_s)


@contextmanager
def _screen(output: str) -> Iterator[Any]:
    """A function that shows one look: in place on a terminal, one below the other in a pipe, a line each as JSON."""
    import json
    import sys

    from penstock.cli.verbs.output import console, show_table, table

    if output == "json":
        yield lambda value: print(json.dumps(value, ensure_ascii=False), flush=True)
        return
    if not sys.stdout.isatty():

        def print_table(look: tuple[list[str], list[tuple[object, ...]]]) -> None:
            show_table(*look)
            print(flush=True)

        yield print_table
        return
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=console(), screen=False, auto_refresh=False) as live:

        def refresh(look: tuple[list[str], list[tuple[object, ...]]]) -> None:
            clock = time.strftime("%H:%M:%S")
            live.update(Group(Text(f"{clock}  Ctrl-C ends", style="dim"), table(*look)), refresh=True)

        yield refresh
