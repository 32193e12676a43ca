"""penstock migrate: topics and groups to another cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from penstock.cli.http_services import extra
from penstock.cli.mirror_start import stop_event
from penstock.cli.verbs.output import show_json, show_table
from penstock.client.errors import UserError
from penstock.client.property_files import read_properties

if TYPE_CHECKING:
    from penstock.mirror.migration import Migration
    from penstock.mirror.migration_plan import Plan

LOOK_S = 1.0
TELL_S = 5.0
HOW_TO_SWITCH = """In step. To switch:
  1. stop the producers, and wait until the consumers have read what there is
  2. stop the consumers
  3. stop this command, and run it again with --finish: it moves the groups
  4. start producers and consumers with the new cluster's address"""


@click.command()
@click.option("--from", "source", metavar="HOST:PORT", required=True, help="The cluster that is left.")
@click.option("--to", "target", metavar="HOST:PORT", required=True, help="The cluster that is moved to.")
@click.option(
    "--from-config", metavar="FILE", help="Properties of a client of the first: security and so on."
)
@click.option("--to-config", metavar="FILE", help="Properties of a client of the second.")
@click.option(
    "--topics", metavar="PATTERNS", default=".*", show_default=True, help="Which topics, with commas between."
)
@click.option("--exclude", metavar="PATTERNS", default="", help="Which topics not.")
@click.option("--groups", metavar="PATTERNS", default=".*", show_default=True, help="Which groups.")
@click.option(
    "--tasks", type=click.IntRange(1), default=1, show_default=True, help="How many copy side by side."
)
@click.option("--dry-run", is_flag=True, help="Show the plan, and do nothing.")
@click.option("--until-in-step", is_flag=True, help="End when everything is copied, before the groups move.")
@click.option("--finish", is_flag=True, help="Copy the rest, move the groups, and end.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def migrate(
    source: str,
    target: str,
    from_config: str | None,
    to_config: str | None,
    topics: str,
    exclude: str,
    groups: str,
    tasks: int,
    dry_run: bool,
    until_in_step: bool,
    finish: bool,
    output: str,
) -> int:
    """Move topics and groups to another cluster, of Penstock or of Apache Kafka.

    Topics keep their names, every record is copied exactly once, and groups go on behind the last record that they have read.
    It can be stopped at any time, and goes on where it was.

    \b
    Example:
      penstock migrate --from old:9092 --to new:9092 --dry-run
      penstock migrate --from old:9092 --to new:9092
      penstock migrate --from old:9092 --to new:9092 --finish
    """
    with extra("connect", command="migrate"):
        from penstock.mirror.migration import Migration, Side
    made = Migration(
        Side(source, {} if from_config is None else read_properties(from_config)),
        Side(target, {} if to_config is None else read_properties(to_config)),
        topics=_words(topics),
        excluded=_words(exclude),
        groups=_words(groups),
        tasks=tasks,
    )
    with made, stop_event() as stopped:
        plan = made.plan()
        if dry_run:
            _show_plan(plan, output)
            return 1 if plan.problems else 0
        for problem in plan.problems:
            click.echo(f"WARN: {problem}", err=True)
        made.start(stopped.is_set)
        if finish:
            return _finish(made, stopped.is_set, output)
        return _follow(made, stopped.wait, ends=until_in_step)


def _follow(made: Migration, wait: Callable[[float], bool], *, ends: bool) -> int:
    teller = _Teller()
    is_told = False
    while not wait(LOOK_S):
        found = made.look()
        teller.tell(found.records, found.size_bytes, found.lag, found.troubles)
        if not found.lag and not found.troubles:
            if ends:
                return 0
            if not is_told:
                click.echo(HOW_TO_SWITCH)
            is_told = True
    return 0


def _finish(made: Migration, is_stopping: Callable[[], bool], output: str) -> int:
    active = made.active_groups()
    if active:
        raise UserError(f"these groups still read from the old cluster, stop them first: {', '.join(active)}")
    teller = _Teller()
    done = made.wait_still(
        is_stopping, lambda found: teller.tell(found.records, found.size_bytes, found.lag, found.troubles)
    )
    if not done:
        return 130
    moved = made.move_groups()
    if output == "json":
        show_json({"groups": [one._asdict() for one in moved]})
    else:
        show_table(
            ["group", "partitions", "is set"],
            [[one.group, one.partitions, "yes" if one.is_set else "no"] for one in moved],
        )
    left = [one.group for one in moved if not one.is_set]
    if left:
        raise UserError(
            f"these groups could not be set, since somebody reads as them at the new cluster: {', '.join(left)}"
        )
    click.echo(
        "Everything is copied and the groups are set: start producers and consumers with the new address.",
        err=True,
    )
    return 0


class _Teller:
    """A line when there is something new to tell, and every few seconds."""

    def __init__(self) -> None:
        self._told = ""
        self._told_s = 0.0

    def tell(self, records: int, size_bytes: int, lag: int, troubles: tuple[str, ...]) -> None:
        line = f"{records:,} records copied ({size_bytes / 1e6:,.1f} MB), lag {lag:,}"
        line += "".join(f" · {one}" for one in troubles)
        now_s = time.monotonic()
        if line != self._told and (now_s - self._told_s >= TELL_S or not lag):
            click.echo(line, err=True)
            self._told, self._told_s = line, now_s


def _show_plan(plan: Plan, output: str) -> None:
    if output == "json":
        show_json(plan.document())
        return
    show_table(
        ["topic", "partitions", "records", "MB", "configs", "at the target"],
        [
            [
                one.name, one.partitions, one.offsets,
                "–" if one.size_bytes is None else round(one.size_bytes / 1e6, 1), one.configs, one.at_target,
            ]
            for one in plan.topics
        ],
    )  # fmt: skip
    if plan.groups:
        show_table(
            ["group", "state", "partitions"], [[one.name, one.state, one.partitions] for one in plan.groups]
        )
    click.echo("What does not come along:")
    for line in plan.left_behind:
        click.echo(f"  - {line}")
    for problem in plan.problems:
        click.echo(f"WARN: {problem}", err=True)


def _words(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]
