"""The command: `python -m simulation.chaos --minutes 10 [--seed N] [--peer mixed] [--severe]`."""

import argparse
import secrets
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.testing.processes import ProcessFailed
from simulation.chaos.ledger import Ledger, Wrong
from simulation.chaos.loop_lag import quantile
from simulation.chaos.plan import FaultKind
from simulation.chaos.run import Report, Settings, run_chaos

SHOWN_CHARACTERS = 60


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m simulation.chaos",
        description="Kill, pause and restart the brokers and ZooKeeper under load; check that no acknowledged record "
        "is lost, none is there twice and none is out of order.",
    )
    parser.add_argument("--minutes", type=float, default=10, help="of faults (default 10)")
    parser.add_argument("--seed", type=int, help="of the faults (default: a new one, which is shown)")
    parser.add_argument(
        "--peer",
        choices=("penstock", "kafka", "mixed"),
        default="penstock",
        help="kafka: Apache Kafka 3.9, to test the test; mixed: two brokers of it and one of Penstock",
    )
    parser.add_argument("--acks", choices=("all", "1"), default="all", help="1: losses are to be expected")
    parser.add_argument(
        "--unclean", action="store_true", help="allow unclean leader elections: losses are too"
    )
    parser.add_argument("--severe", action="store_true", help="hurt several brokers at the same time")
    parser.add_argument("--rate", type=int, help="records a second (default: as many as the machine bears)")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument(
        "--directory",
        type=Path,
        help="keep data and logs here (default: temporary, kept if anything is wrong)",
    )
    options = parser.parse_args()
    given = (options.minutes, options.partitions, 1 if options.rate is None else options.rate)
    if min(given) <= 0:
        parser.error("--minutes, --rate and --partitions must be more than 0")
    return options


def stop_on_sigterm(_: int, __: FrameType | None) -> NoReturn:
    # An ordinary exit, so that the with blocks stop the processes.
    raise SystemExit(143)


def main() -> int:
    options = parse_options()
    signal.signal(signal.SIGTERM, stop_on_sigterm)
    seed = options.seed if options.seed is not None else secrets.randbelow(1_000_000)
    settings = Settings(
        seconds=options.minutes * 60,
        seed=seed,
        peer=options.peer,
        acks=options.acks,
        unclean=options.unclean,
        severe=options.severe,
        rate=options.rate,
        partitions=options.partitions,
    )
    console = Console()
    directory = options.directory or Path(tempfile.mkdtemp(prefix="penstock-chaos-"))
    console.print(
        f"chaos: seed {seed}, {options.minutes:g} minutes on three brokers of {options.peer}, acks={options.acks}"
    )
    try:
        report = run_with_progress(settings, directory, console)
    except KeyboardInterrupt:
        console.print(f"chaos: interrupted; all processes are stopped, {directory} is left as it is")
        return 130
    except ProcessFailed as problem:
        console.print(f"chaos: {problem}", markup=False)
        return 1
    show(report, console)
    if report.is_clean and options.directory is None:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        console.print(f"chaos: what happened when is in {directory / 'chaos.log'}", markup=False)
    return 0 if report.is_clean else 1


def run_with_progress(settings: Settings, directory: Path, console: Console) -> Report:
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=1.0)

        def told(share: float, text: str, ledger: Ledger) -> None:
            bad = sum(ledger.wrong.values())
            counted = f"{ledger.acknowledged_count:,} acknowledged, {bad} wrong"
            bar.update(task, completed=share, description=f"{counted} · {text[:SHOWN_CHARACTERS]}")

        return run_chaos(settings, directory, progress=told)


def show(report: Report, console: Console) -> None:
    ledger = report.ledger
    faults = Table("fault", "times", title=f"seed {report.settings.seed}")
    for kind in FaultKind:
        faults.add_row(kind.value, str(report.faults[kind]))
    console.print(faults)
    counts = Table("records", "count")
    counts.add_row("sent", f"{ledger.sent_count:,}")
    counts.add_row("a second, faults included", f"{ledger.sent_count / max(report.load_seconds, 1):,.0f}")
    counts.add_row("acknowledged", f"{ledger.acknowledged_count:,}")
    counts.add_row("consumed while it went on", f"{ledger.consumed_count:,}")
    counts.add_row("offsets committed by consumers", f"{ledger.commit_count:,}")
    counts.add_row("read back", f"{ledger.read_back_count:,}")
    for wrong in Wrong:
        counts.add_row(
            wrong.value, f"{ledger.wrong[wrong]:,}", style="bold red" if ledger.wrong[wrong] else None
        )
    console.print(counts)
    show_lag(report, console)
    for text in (*report.problems, *ledger.examples):
        console.print(text, markup=False, soft_wrap=True)
    console.print(
        "nothing is wrong" if report.is_clean else "FAILED", style="green" if report.is_clean else "red"
    )


def show_lag(report: Report, console: Console) -> None:
    buckets = report.loop_lag
    if not buckets:
        return
    title = f"{max(buckets.values()):,} moments"
    lag = Table("lag of the brokers' event loops", "ms", "without waits for a core, ms", title=title)
    for fraction in (0.5, 0.99, 0.999, 0.9999):
        whole, own = (1000 * quantile(each, fraction) for each in (buckets, report.own_loop_lag))
        lag.add_row(f"p{100 * fraction:g}", f"{whole:,.1f}", f"{own:,.1f}")
    console.print(lag)


if __name__ == "__main__":
    sys.exit(main())
