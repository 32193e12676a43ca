"""The command: `python -m bench [--quick] [--only NAME …] [--servers kafka,penstock,null] [--rounds N] [--list]`."""

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType
from typing import NoReturn

from bench.machine import describe_machine, foreign_load
from bench.measure import Scale
from bench.report import markdown, merge, read_results, summarise_all, write_results
from bench.runner import run_rounds
from bench.servers import KAFKA_3, KARAPACE, SERVER_KINDS
from bench.services import check_karapace
from bench.workloads import WORKLOADS
from bench.workloads.form import Workload
from simulation.apache.java import DEFAULT_VERSION
from simulation.apache.kafka_cluster import ZOOKEEPER_MODE_VERSION

ROOT = Path(__file__).resolve().parents[1]
JAVA_SETUP_TIMEOUT_S = 900
FOREIGN_LOAD_LIMIT = 0.1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Penstock beside Apache Kafka, same clients, same machine."
    )
    parser.add_argument(
        "--quick", action="store_true", help="under three minutes; for noticing, not for quoting"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="a workload or a pattern such as 'java-*'"
    )
    parser.add_argument(
        "--servers", default=",".join(SERVER_KINDS), help=f"of {', '.join(SERVER_KINDS)} (default: all)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="folder for RESULTS.md and results.json (default: bench; with --only, --rounds or --servers, nowhere); "
        "with --only, the rows of other workloads that are already there stay",
    )
    parser.add_argument(
        "--karapace",
        type=Path,
        metavar="DIR",
        help="a checkout of Karapace with its packages in DIR/.venv; without it, the rows beside it are left out",
    )
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="at most so many rounds; the table says so of its rows"
    )
    parser.add_argument("--list", action="store_true", help="show the workloads and stop")
    return parser.parse_args()


def choose_workloads(patterns: Sequence[str] | None) -> list[Workload]:
    if patterns is None:
        return list(WORKLOADS)
    for pattern in patterns:
        if not any(fnmatch(workload.name, pattern) for workload in WORKLOADS):
            raise SystemExit(f"bench: no workload is called {pattern!r}; --list shows them")
    return [each for each in WORKLOADS if any(fnmatch(each.name, pattern) for pattern in patterns)]


def measured_at(date: str, *, busiest: float, rounds: int | None = None) -> str:
    """What the table says of a run, also when other rows were measured in other runs."""
    if rounds is not None:
        date += f", {rounds} round{'s' if rounds > 1 else ''} only"
    if busiest <= FOREIGN_LOAD_LIMIT:
        return date
    return f"{date}, while others kept up to {busiest:.0%} of the cores busy"


def stop_on_sigterm(_: int, __: FrameType | None) -> NoReturn:
    # An ordinary exit, so that the with blocks stop the servers and remove the directories.
    raise SystemExit(143)


def main() -> int:
    options = parse_options()
    workloads = choose_workloads(options.only)
    if options.list:
        for workload in workloads:
            print(f"{workload.name:22} {workload.about}")
        return 0
    if options.rounds is not None and options.rounds < 1:
        raise SystemExit(f"bench: --rounds must be at least 1, not {options.rounds}")
    server_names = options.servers.split(",")
    if unknown := [name for name in server_names if name not in SERVER_KINDS]:
        raise SystemExit(f"bench: no server is called {unknown[0]!r}; there are {', '.join(SERVER_KINDS)}")
    is_whole = options.only is None and options.rounds is None and set(server_names) == set(SERVER_KINDS)
    if options.karapace is None:
        server_names = [name for name in server_names if name != KARAPACE]
    else:
        check_karapace(options.karapace)
    signal.signal(signal.SIGTERM, stop_on_sigterm)
    versions = [DEFAULT_VERSION]
    if any(KAFKA_3 in workload.server_names for workload in workloads):
        versions.append(ZOOKEEPER_MODE_VERSION)
    for version in versions:
        setup = [str(ROOT / "scripts" / "java-setup"), version]
        if subprocess.run(setup, timeout=JAVA_SETUP_TIMEOUT_S, check=False).returncode:
            return 1
    scale = Scale(quick=options.quick, karapace=options.karapace and options.karapace.resolve())
    load_before = foreign_load()
    if load_before > FOREIGN_LOAD_LIMIT:
        print(
            f"bench: others keep {load_before:.0%} of the cores busy; do not quote this run", file=sys.stderr
        )
    try:
        results = run_rounds(workloads, server_names, scale, most_rounds=options.rounds)
    except KeyboardInterrupt:
        print("\nbench: interrupted; the servers are stopped, nothing was written", file=sys.stderr)
        return 130
    machine = describe_machine()
    load_after = foreign_load()
    lines = summarise_all(
        workloads,
        results,
        measured_at(machine["date"], busiest=max(load_before, load_after), rounds=options.rounds),
    )
    machine["other load, before and after"] = f"{load_before:.0%}, {load_after:.0%} of the cores"
    directory = options.output or (ROOT / "bench" if is_whole else None)
    earlier = read_results(directory) if directory and options.only else {"rows": [], "extra": {}}
    lines = merge(WORKLOADS, earlier["rows"], lines)
    text = markdown(lines, machine, results, scale)
    print(text)
    if directory:
        write_results(directory, text, lines, machine, results, earlier_extra=earlier["extra"])
        print(f"bench: written to {directory / 'RESULTS.md'} and results.json", file=sys.stderr)
    for failure in results.failures:
        print(f"bench: FAILED {failure}", file=sys.stderr)
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
