"""Rounds: every workload on one server after the other, each round on fresh servers and directories.

The null broker, which only shows the clients' limit, goes through the first round. A quick run starts its servers once, and
begins no further step of the later rounds when its time is up.
"""

import math
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.context import Context
from bench.measure import Sample, Scale
from bench.servers import NULL, SERVER_KINDS
from bench.workloads.form import Workload

CACHE_DIRECTORY = Path(__file__).resolve().parents[1] / ".cache" / "bench"
QUICK_BUDGET_S = 140.0


@dataclass
class Results:
    """By workload name, then server name: the samples in the order of the rounds, and what went wrong."""

    samples: dict[str, dict[str, list[Sample]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    left_out: int = 0  # steps for which a quick run had no time

    def add(self, workload: str, server: str, sample: Sample) -> None:
        self.samples.setdefault(workload, {}).setdefault(server, []).append(sample)


class Progress:
    """A line per finished step on standard error; on a terminal also what is running now."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._began = time.monotonic()
        self._live = sys.stderr.isatty()

    def _head(self) -> str:
        seconds = int(time.monotonic() - self._began)
        return f"{self._done:3}/{self._total} {seconds // 60:2}:{seconds % 60:02}"

    def running(self, text: str) -> None:
        if self._live:
            print(f"\r\033[K{self._head()}  {text} …", end="", file=sys.stderr, flush=True)

    def finished(self, text: str) -> None:
        self._done += 1
        start = "\r\033[K" if self._live else ""
        print(f"{start}{self._head()}  {text}", file=sys.stderr, flush=True)


def run_rounds(
    workloads: Sequence[Workload],
    server_names: Sequence[str],
    scale: Scale,
    *,
    most_rounds: int | None = None,
) -> Results:
    plan = [workload for workload in workloads if workload.rounds(scale)]
    round_count = max((workload.rounds(scale) for workload in plan), default=0)
    if most_rounds is not None:
        round_count = min(round_count, most_rounds)
    steps = [
        [
            (workload, name)
            for index, workload in enumerate(plan)
            if round_number < workload.rounds(scale)
            for name in turn_of(workload, server_names, round_number=round_number, index=index)
        ]
        for round_number in range(round_count)
    ]
    results, progress = Results(), Progress(sum(map(len, steps)))
    deadline = time.monotonic() + (QUICK_BUDGET_S if scale.quick else math.inf)
    CACHE_DIRECTORY.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="run-", dir=CACHE_DIRECTORY) as directory,
        ExitStack() as whole_run,
    ):
        contexts: dict[str, Context] = {}
        for round_number, round_steps in enumerate(steps):
            with ExitStack() as this_round:
                if not contexts or not scale.quick:
                    stack = whole_run if scale.quick else this_round
                    contexts = open_contexts(server_names, Path(directory) / f"{round_number}", scale, stack)
                for workload, name in round_steps:
                    # Every workload has had its first round before the clock may cut any short.
                    if round_number and time.monotonic() > deadline:
                        results.left_out += 1
                        continue
                    contexts[name].round_number = round_number
                    run_step(workload, contexts[name], results, progress)
    return results


def turn_of(
    workload: Workload, server_names: Sequence[str], *, round_number: int, index: int
) -> Sequence[str]:
    """Who goes first changes with every step, so that no server always finds the machine the warmer."""
    names = [name for name in server_names if name in workload.server_names]
    if round_number and names != [NULL]:
        names = [name for name in names if name != NULL]
    turn = (round_number + index) % max(1, len(names))
    return names[turn:] + names[:turn]


def open_contexts(
    server_names: Sequence[str], directory: Path, scale: Scale, stack: ExitStack
) -> dict[str, Context]:
    """Of those that were named, and of the servers that they share."""
    contexts: dict[str, Context] = {}
    hosts = [host for name in server_names if (host := SERVER_KINDS[name].host) is not None]
    for name in dict.fromkeys((*hosts, *server_names)):
        kind = SERVER_KINDS[name]
        contexts[name] = Context(
            kind, directory / name, scale, host=None if kind.host is None else contexts[kind.host]
        )
    for context in contexts.values():
        stack.callback(context.close)
    return contexts


def run_step(workload: Workload, context: Context, results: Results, progress: Progress) -> None:
    label = f"round {context.round_number + 1}  {workload.name:22} {context.kind.label:18}"
    progress.running(label)
    try:
        sample = workload.run(context)
    except Exception as error:
        # A failure is a result too: the others go on, the table shows the gap, the exit code tells.
        results.failures.append(f"{workload.name} on {context.kind.label}: {error}")
        progress.finished(f"{label} FAILED: {str(error).splitlines()[0][:150]}")
        return
    results.add(workload.name, context.kind.name, sample)
    shown = "  ".join(
        f"{row.key} {sample.values[row.key]:,.4g}" for row in workload.rows if row.key in sample.values
    )
    progress.finished(f"{label} {shown}")
