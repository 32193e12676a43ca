"""Many seeds after one another, or one with all it does.

    python -m penstock.testing.simulation --seeds 1000 [--first 1] [--jobs 2]
    python -m penstock.testing.simulation --seed 17 --trace

A seed is a whole run (see `scenario`). The same seed of the same code is the same run in every process: strings hash alike in
all of them, since the command starts itself again with PYTHONHASHSEED=0 when that is not set.
"""

import argparse
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from time import monotonic
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.testing.simulation.edge import load_handlers
from penstock.testing.simulation.scenario import Report, simulate

HASH_SEED: Final = "0"
SHOWN_FAILURES: Final = 20
SHOWN_VIOLATIONS: Final = 5
SEEDS_PER_LINE: Final = 500
"""Where there is no terminal for a bar of progress, a line after so many."""
COMMAND: Final = "python -m penstock.testing.simulation"


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        given = sys.argv[1:] if arguments is None else arguments
        command = [sys.executable, "-m", "penstock.testing.simulation", *given]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": HASH_SEED})
    if options.seed is not None:
        return _run_one(options.seed, options.brokers, trace=options.trace)
    return _run_many(options.first, options.seeds, options.brokers, jobs=options.jobs)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=COMMAND, description="Simulate whole clusters, one for each seed.")
    parser.add_argument("--seeds", type=_positive, default=1000, help="how many (1000)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--trace", action="store_true", help="with --seed: show what happens")
    parser.add_argument("--brokers", type=_positive, help="so many in every run (else the seed decides)")
    parser.add_argument(
        "--jobs", type=_positive, default=os.cpu_count() or 1, help="processes (one per core)"
    )
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def _run_one(seed: int, brokers: int | None, *, trace: bool) -> int:
    report = simulate(seed, brokers=brokers, verbose=trace)
    if trace:
        print(f"{report.plan}")
        for fault in report.faults:
            print(f"  {fault}")
    counts = _figures(report.counts)
    print(f"seed {seed}: {report.virtual_seconds:.1f} virtual seconds, {counts}, digest {report.digest:08x}")
    for violation in report.violations:
        print(f"  broken: {violation}")
    return 1 if report.violations else 0


def _run_many(first: int, count: int, brokers: int | None, *, jobs: int) -> int:
    console = Console(stderr=True)
    began = monotonic()
    failed: list[Report] = []
    totals: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    progress = Progress(
        TextColumn("simulating"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeElapsedColumn(),
        console=console,
    )
    with progress:
        shown = progress.add_task("", total=count, failed=0)
        for done, report in enumerate(_reports(range(first, first + count), brokers, jobs=jobs), start=1):
            totals.update(report.counts)
            totals["virtual seconds"] += int(report.virtual_seconds)
            totals["faults"] += sum(report.kinds.values())
            kinds.update(report.kinds)
            if report.violations:
                failed.append(report)
                if len(failed) <= SHOWN_FAILURES:
                    _show(console, report, brokers)
            progress.update(shown, advance=1, failed=len(failed))
            if not console.is_terminal and done % SEEDS_PER_LINE == 0:
                console.print(f"{done} of {count} seeds, {len(failed)} failed, {monotonic() - began:.0f} s")
    print(
        f"{count} seeds from {first}: {len(failed)} failed; {_figures(totals)}; {monotonic() - began:.0f} s"
    )
    print(f"faults by kind: {_figures(kinds)}")
    if failed:
        print("failed seeds: " + " ".join(str(report.seed) for report in failed))
    return 1 if failed else 0


def _reports(seeds: Iterable[int], brokers: int | None, *, jobs: int) -> Iterator[Report]:
    if jobs == 1:
        _prepare()
        for seed in seeds:
            yield simulate(seed, brokers=brokers)
        return
    waiting = iter(seeds)
    with ProcessPoolExecutor(jobs, initializer=_prepare) as pool:
        running: set[Future[Report]] = set()
        while True:
            for seed in islice(waiting, 2 * jobs - len(running)):
                running.add(pool.submit(simulate, seed, brokers=brokers))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def _prepare() -> None:
    """What is there before the first run is not looked through again after each."""
    load_handlers()
    gc.collect()
    gc.freeze()


def _figures(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items()))


def _show(console: Console, report: Report, brokers: int | None) -> None:
    more = f" --brokers {brokers}" if brokers is not None else ""
    console.print(
        f"seed {report.seed} failed; again: {COMMAND} --seed {report.seed}{more} --trace", soft_wrap=True
    )
    for violation in report.violations[:SHOWN_VIOLATIONS]:
        console.print(f"  {violation}", markup=False, soft_wrap=True)
