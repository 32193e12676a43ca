"""Replicas that move, shown while they do."""

from __future__ import annotations

import sys
from collections.abc import Callable

from penstock.admin.moves.watching import Progress, Show
from penstock.cli.verbs.output import console, say


def moved(move: Callable[[Show], int], sentence: str) -> None:
    """Moves, and says the sentence when it is done. Ctrl-C ends the watching, not the moves."""
    try:
        count = _watched(move)
    except KeyboardInterrupt:
        print(
            "penstock: interrupted: what is under way goes on in the cluster; run the same command again for the rest",
            file=sys.stderr,
        )
        raise
    say(f"{sentence} ({count} {'partition' if count == 1 else 'partitions'} moved)")


def _watched(move: Callable[[Show], int]) -> int:
    if not sys.stderr.isatty():
        return move(_Lines())
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console(stderr=True), transient=True) as bars:
        task = bars.add_task("partitions moved", total=None)

        def show(progress: Progress) -> None:
            described = f"partitions moved, {progress.moved_bytes / 1e6:,.0f} MB of those under way"
            bars.update(task, completed=progress.done, total=progress.total, description=described)

        return move(show)


class _Lines:
    """A line each time another partition has arrived."""

    def __init__(self) -> None:
        self._shown = (-1, -1)

    def __call__(self, progress: Progress) -> None:
        if (progress.done, progress.total) != self._shown:
            self._shown = (progress.done, progress.total)
            print(f"  {progress.done} of {progress.total} partitions moved", file=sys.stderr, flush=True)
