"""Many seeds after one another, or one with all it does.

    python -m simulation.seeds --seeds 1000 [--first 1] [--jobs 2]
    python -m simulation.seeds --seed 17 --trace

A seed is a whole run (see `scenario`). The same seed of the same code is the same run in every process: strings hash alike in
all of them, since the command starts itself again with PYTHONHASHSEED=0 when that is not set.
"""

import argparse
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Final

from simulation.seed_runs import figures, positive, reports_of_processes, run_seeds
from simulation.seeds.edge import load_handlers
from simulation.seeds.scenario import Report, simulate

HASH_SEED: Final = "0"
SEEDS_PER_LINE: Final = 500
COMMAND: Final = "python -m simulation.seeds"


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        given = sys.argv[1:] if arguments is None else arguments
        command = [sys.executable, "-m", "simulation.seeds", *given]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": HASH_SEED})
    if options.seed is not None:
        return _run_one(options.seed, options.brokers, trace=options.trace)
    return _run_many(range(options.first, options.first + options.seeds), options.brokers, jobs=options.jobs)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=COMMAND, description="Simulate whole clusters, one for each seed.")
    parser.add_argument("--seeds", type=positive, default=1000, help="how many (1000)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--trace", action="store_true", help="with --seed: show what happens")
    parser.add_argument("--brokers", type=positive, help="so many in every run (else the seed decides)")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="processes (one per core)")
    return parser.parse_args(arguments)


def _run_one(seed: int, brokers: int | None, *, trace: bool) -> int:
    report = simulate(seed, brokers=brokers, verbose=trace)
    if trace:
        print(f"{report.plan}")
        for fault in report.faults:
            print(f"  {fault}")
    counts = figures(report.counts)
    print(f"seed {seed}: {report.virtual_seconds:.1f} virtual seconds, {counts}, digest {report.digest:08x}")
    for violation in report.violations:
        print(f"  broken: {violation}")
    return 1 if report.violations else 0


def _run_many(seeds: range, brokers: int | None, *, jobs: int) -> int:
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()

    def tally(report: Report) -> None:
        counts.update(report.counts)
        counts["virtual seconds"] += int(report.virtual_seconds)
        counts["faults"] += sum(report.kinds.values())
        kinds.update(report.kinds)

    more = f" --brokers {brokers}" if brokers is not None else ""
    return run_seeds(
        _reports(seeds, brokers, jobs=jobs),
        seeds,
        doing="simulating",
        seeds_per_line=SEEDS_PER_LINE,
        tally=tally,
        again=lambda report: f"{COMMAND} --seed {report.seed}{more} --trace",
        totals=lambda: [figures(counts), f"faults by kind: {figures(kinds)}"],
    )


def _reports(seeds: range, brokers: int | None, *, jobs: int) -> Iterator[Report]:
    perform = partial(simulate, brokers=brokers)
    if jobs > 1:
        return reports_of_processes(perform, seeds, jobs=jobs, prepare=_prepare)
    _prepare()
    return map(perform, seeds)


def _prepare() -> None:
    """What is there before the first run is not looked through again after each."""
    load_handlers()
    gc.collect()
    gc.freeze()
