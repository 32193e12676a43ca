"""Many seeds after one another, or one with all it was told.

python -m penstock.testing.liar --seeds 200 [--first 1] [--jobs 2]
python -m penstock.testing.liar --seed 17 --trace [--scenario process] [--times 20]
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing.util import Finalize
from time import monotonic
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.testing.liar.act import Report
from penstock.testing.liar.seeds import SCENARIOS, perform
from penstock.testing.liar.world import World

COMMAND: Final = "python -m penstock.testing.liar"
SHOWN_FAILURES: Final = 20
SHOWN_VIOLATIONS: Final = 5
SEEDS_PER_LINE: Final = 50
"""Where there is no terminal for a bar of progress, a line after so many."""
TRACED_LINES: Final = 200


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    if options.seed is not None:
        return _run_one(options.seed, options.scenario, times=options.times, trace=options.trace)
    return _run_many(options.first, options.seeds, options.scenario, jobs=options.jobs)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description="Run our clients against a broker that lies, once for each seed."
    )
    parser.add_argument("--seeds", type=_positive, default=200, help="how many (200)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument(
        "--times", type=_positive, default=1, help="with --seed: so many times, until it fails"
    )
    parser.add_argument("--trace", action="store_true", help="with --seed: show what was told")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), help="this one (else the seed decides)")
    parser.add_argument("--jobs", type=_positive, default=2, help="processes, each with a broker (2)")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def _run_one(seed: int, scenario: str | None, *, times: int, trace: bool) -> int:
    _be_quiet()
    with World() as world:
        for _ in range(times):
            report = perform(seed, world, scenario=scenario)
            if trace:
                print("\n".join(report.trace))
            print(
                f"seed {seed}: {report.scenario}, {report.seconds:.1f} s; lies: {_figures(report.lies)}; "
                f"errors: {_figures(report.errors)}"
            )
            if report.violations:
                print("\n".join(f"  wrong: {each}" for each in report.violations))
                return 1
    return 0


def _run_many(first: int, count: int, scenario: str | None, *, jobs: int) -> int:
    console = Console(stderr=True)
    began = monotonic()
    failed: list[Report] = []
    scenarios: Counter[str] = Counter()
    lies: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    progress = Progress(
        TextColumn("lying"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeElapsedColumn(),
        console=console,
    )
    with progress:
        shown = progress.add_task("", total=count, failed=0)
        for done, report in enumerate(_reports(range(first, first + count), scenario, jobs), start=1):
            scenarios[report.scenario] += 1
            lies.update(report.lies)
            errors.update(report.errors)
            if report.violations:
                failed.append(report)
                if len(failed) <= SHOWN_FAILURES:
                    _show(console, report, scenario)
            progress.update(shown, advance=1, failed=len(failed))
            if not console.is_terminal and done % SEEDS_PER_LINE == 0:
                console.print(f"{done} of {count} seeds, {len(failed)} failed, {monotonic() - began:.0f} s")
    print(
        f"{count} seeds from {first}: {len(failed)} failed; {_figures(scenarios)}; {monotonic() - began:.0f} s"
    )
    print(f"lies by kind: {_figures(lies)}")
    print(f"errors told by clients: {_figures(errors)}")
    if failed:
        print("failed seeds: " + " ".join(str(report.seed) for report in failed))
    return 1 if failed else 0


_world: World | None = None


def _open_world() -> None:
    """In each process that runs seeds."""
    global _world
    _be_quiet()
    _world = World()
    Finalize(None, _world.close, exitpriority=10)
    assert _world.library  # made before the first seed's time runs


def _perform(seed: int, scenario: str | None) -> Report:
    assert _world is not None
    report = perform(seed, _world, scenario=scenario)
    return report if report.violations else report._replace(trace=[])


def _reports(seeds: Iterable[int], scenario: str | None, jobs: int) -> Iterator[Report]:
    waiting = iter(seeds)
    # Not forked: clients have threads, which a copy of the process would not have.
    with ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_open_world
    ) as pool:
        running: set[Future[Report]] = set()
        while True:
            for seed in islice(waiting, 2 * jobs - len(running)):
                running.add(pool.submit(_perform, seed, scenario))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def _be_quiet() -> None:
    """The clients complain of every lie."""
    logging.getLogger("penstock").setLevel(logging.CRITICAL)


def _figures(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items())) or "none"


def _show(console: Console, report: Report, scenario: str | None) -> None:
    more = f" --scenario {scenario}" if scenario is not None else ""
    console.print(
        f"seed {report.seed} ({report.scenario}) failed; again: {COMMAND} --seed {report.seed}{more} --trace --times 20",
        soft_wrap=True,
    )
    for violation in report.violations[:SHOWN_VIOLATIONS]:
        console.print(f"  {violation}", markup=False, soft_wrap=True)
