"""Many seeds after one another, or one with all it was told.

python -m simulation.liar --seeds 200 [--first 1] [--jobs 2]
python -m simulation.liar --seed 17 --trace [--scenario process] [--times 20]
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
from collections import Counter
from functools import partial
from multiprocessing.util import Finalize
from typing import Final

from simulation.liar.act import Report
from simulation.liar.seeds import SCENARIOS, perform
from simulation.liar.world import World
from simulation.seed_runs import figures, positive, reports_of_processes, run_seeds

COMMAND: Final = "python -m simulation.liar"
SEEDS_PER_LINE: Final = 50


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    if options.seed is not None:
        return _run_one(options.seed, options.scenario, times=options.times, trace=options.trace)
    return _run_many(range(options.first, options.first + options.seeds), options.scenario, jobs=options.jobs)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description="Run our clients against a broker that lies, once for each seed."
    )
    parser.add_argument("--seeds", type=positive, default=200, help="how many (200)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument(
        "--times", type=positive, default=1, help="with --seed: so many times, until it fails"
    )
    parser.add_argument("--trace", action="store_true", help="with --seed: show what was told")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), help="this one (else the seed decides)")
    parser.add_argument("--jobs", type=positive, default=2, help="processes, each with a broker (2)")
    return parser.parse_args(arguments)


def _run_one(seed: int, scenario: str | None, *, times: int, trace: bool) -> int:
    _be_quiet()
    with World() as world:
        for _ in range(times):
            report = perform(seed, world, scenario=scenario)
            if trace:
                print("\n".join(report.trace))
            print(
                f"seed {seed}: {report.scenario}, {report.seconds:.1f} s; lies: {figures(report.lies)}; "
                f"errors: {figures(report.errors)}"
            )
            if report.violations:
                print("\n".join(f"  wrong: {each}" for each in report.violations))
                return 1
    return 0


def _run_many(seeds: range, scenario: str | None, *, jobs: int) -> int:
    scenarios: Counter[str] = Counter()
    lies: Counter[str] = Counter()
    errors: Counter[str] = Counter()

    def tally(report: Report) -> None:
        scenarios[report.scenario] += 1
        lies.update(report.lies)
        errors.update(report.errors)

    return run_seeds(
        reports_of_processes(
            partial(_perform, scenario=scenario),
            seeds,
            jobs=jobs,
            prepare=_open_world,
            # Not forked: clients have threads, which a copy of the process would not have.
            context=multiprocessing.get_context("spawn"),
        ),
        seeds,
        doing="lying",
        seeds_per_line=SEEDS_PER_LINE,
        tally=tally,
        again=lambda report: (
            f"{COMMAND} --seed {report.seed} --scenario {report.scenario} --trace --times 20"
        ),
        totals=lambda: [
            figures(scenarios),
            f"lies by kind: {figures(lies)}",
            f"errors told by clients: {figures(errors)}",
        ],
    )


_world: World | None = None


def _open_world() -> None:
    """In each process that runs seeds."""
    global _world
    _be_quiet()
    _world = World()
    Finalize(None, _world.close, exitpriority=10)
    assert _world.library  # made before the first seed's time runs


def _perform(seed: int, *, scenario: str | None) -> Report:
    assert _world is not None
    report = perform(seed, _world, scenario=scenario)
    return report if report.violations else report._replace(trace=[])


def _be_quiet() -> None:
    """The clients complain of every lie."""
    logging.getLogger("penstock").setLevel(logging.CRITICAL)
