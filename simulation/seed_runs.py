"""Many seeds after one another, in several processes: how far it is, what failed, and how to see that again."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from itertools import islice
from multiprocessing.context import BaseContext
from time import monotonic
from types import FrameType
from typing import Final, Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

SHOWN_FAILURES: Final = 20
SHOWN_VIOLATIONS: Final = 5


class SeedReport(Protocol):
    @property
    def seed(self) -> int: ...
    @property
    def violations(self) -> Sequence[str]: ...


R = TypeVar("R", bound=SeedReport)


def positive(text: str) -> int:
    """A type of argparse's."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def figures(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items())) or "none"


def run_seeds(
    reports: Iterator[R],
    seeds: range,
    *,
    doing: str,
    seeds_per_line: int,
    tally: Callable[[R], None],
    again: Callable[[R], str],
    totals: Callable[[], list[str]],
) -> int:
    """Follows the reports and prints what came of them; 1 when a seed failed.

    `tally` takes each report as it comes, `totals` says at the end what was counted: the first goes into the line with the
    failures. `again` is the command that repeats a seed. Where there is no terminal for a bar of progress, a line is printed
    after `seeds_per_line`.
    """
    console = Console(stderr=True)
    began = monotonic()
    failed: list[R] = []
    progress = Progress(
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeElapsedColumn(),
        console=console,
    )
    with progress:
        shown = progress.add_task("", total=len(seeds), failed=0)
        for done, report in enumerate(reports, start=1):
            tally(report)
            if report.violations:
                failed.append(report)
                if len(failed) <= SHOWN_FAILURES:
                    _show(console, report, again(report))
            progress.update(shown, advance=1, failed=len(failed))
            if not console.is_terminal and done % seeds_per_line == 0:
                console.print(
                    f"{done} of {len(seeds)} seeds, {len(failed)} failed, {monotonic() - began:.0f} s"
                )
    first_total, *other_totals = totals()
    print(
        f"{len(seeds)} seeds from {seeds.start}: {len(failed)} failed; {first_total}; {monotonic() - began:.0f} s"
    )
    for line in other_totals:
        print(line)
    if failed:
        print("failed seeds: " + " ".join(str(report.seed) for report in failed))
    return 1 if failed else 0


def reports_of_processes(
    perform: Callable[[int], R],
    seeds: range,
    *,
    jobs: int,
    prepare: Callable[[], None],
    context: BaseContext | None = None,
) -> Iterator[R]:
    """`prepare` is called once in each process. Never more seeds are on their way than keep all of them busy.

    On SIGTERM the processes end as on Ctrl-C, which reaches them by itself: they stop what `prepare` has started.
    """
    waiting = iter(seeds)
    signal.signal(signal.SIGTERM, _end)
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=partial(_begin, prepare)) as pool:
        running: set[Future[R]] = set()
        while True:
            for seed in islice(waiting, 2 * jobs - len(running)):
                running.add(pool.submit(perform, seed))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def _begin(prepare: Callable[[], None]) -> None:
    signal.signal(signal.SIGTERM, _end)
    prepare()


def _end(number: int, frame: FrameType | None) -> None:
    for process in multiprocessing.active_children():
        if process.pid is not None:
            os.kill(process.pid, signal.SIGINT)
    sys.exit(128 + number)


def _show(console: Console, report: SeedReport, again: str) -> None:
    console.print(f"seed {report.seed} failed; again: {again}", soft_wrap=True)
    for violation in report.violations[:SHOWN_VIOLATIONS]:
        console.print(f"  {violation}", markup=False, soft_wrap=True)
