"""Replicas that move, shown while they do."""

from __future__ import annotations

import sys

from penstock.cli.clients import Connection
from penstock.cli.moves.following import PARTITIONS_AT_ONCE, Plan, Progress, carry_out
from penstock.cli.verbs.output import console, say


def move(
    connection: Connection,
    plan: Plan,
    sentence: str,
    *,
    throttle: int | None = None,
    at_once: int = PARTITIONS_AT_ONCE,
) -> None:
    """Carries out the plan and says the sentence when it is done. Ctrl-C ends the watching, not the moves."""
    try:
        moved = _carry_out(connection, plan, throttle, at_once)
    except KeyboardInterrupt:
        print(
            "penstock: interrupted: what is under way goes on in the cluster; run the same command again for the rest",
            file=sys.stderr,
        )
        raise
    say(f"{sentence} ({moved} {'partition' if moved == 1 else 'partitions'} moved)")


def _carry_out(connection: Connection, plan: Plan, throttle: int | None, at_once: int) -> int:
    if not sys.stderr.isatty():
        return carry_out(connection, plan, throttle=throttle, at_once=at_once, show=_Lines())
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console(stderr=True), transient=True) as bars:
        task = bars.add_task("partitions moved", total=None)

        def show(progress: Progress) -> None:
            described = f"partitions moved, {progress.moved_bytes / 1e6:,.0f} MB of those under way"
            bars.update(task, completed=progress.done, total=progress.total, description=described)

        return carry_out(connection, plan, throttle=throttle, at_once=at_once, show=show)


class _Lines:
    """A line each time another partition has arrived."""

    def __init__(self) -> None:
        self._shown = (-1, -1)

    def __call__(self, progress: Progress) -> None:
        if (progress.done, progress.total) != self._shown:
            self._shown = (progress.done, progress.total)
            print(f"  {progress.done} of {progress.total} partitions moved", file=sys.stderr, flush=True)
