"""penstock log: the files of a log directory, without a broker."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from penstock.cli.verbs.common_options import output_option
from penstock.cli.verbs.log_strays import strays
from penstock.cli.verbs.output import show as present
from penstock.cli.verbs.output import show_lines

PROGRESS_FROM_BYTES = 256 * 1024 * 1024
"""Less than this is checked before anybody could watch."""


@click.group()
def log() -> None:
    """Check, repair and look at the files of a log directory; list and restore strays.

    \b
    Example:
      penstock log verify ./data
      penstock log show ./data orders
      penstock log strays list
    """


log.add_command(strays)


@log.command()
@click.argument("directory", metavar="DIR", type=click.Path())
@click.option("--deep", is_flag=True, help="Take every record apart too, not only every batch. Slower.")
@click.option("--repair", is_flag=True, help="Mend what can be mended without losing anything good.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before a repair.")
@output_option
def verify(directory: str, deep: bool, repair: bool, yes: bool, output: str) -> int:
    """Check every batch, index and checkpoint of a directory.

    DIR is a broker's data directory or one partition's. Each problem is one line: file, byte, offset, cause. The exit
    code is 1 when something is wrong. Nothing is written without --repair, which cuts torn tails, rebuilds indexes and
    removes leftovers, and asks first on a terminal.

    \b
    Example:
      penstock log verify ./data
      penstock log verify ./data/orders-0 --deep
      penstock log verify ./data --repair
    """
    from penstock.client.errors import UserError
    from penstock.inspection.places import look_at
    from penstock.inspection.problems import Problem
    from penstock.inspection.verify import Counts, check, total_bytes

    place = look_at(directory)
    if repair and place.is_in_use:
        raise UserError(f"a broker is using {place.log_directory}: stop it before a repair")
    counts = Counts()
    found: list[Problem] = []
    begun = time.monotonic()
    try:
        with _progress(total_bytes(place)) as advance:

            def problems() -> Iterator[Problem]:
                for problem in check(place, counts, deep=deep, progress=advance):
                    found.append(problem)
                    yield problem

            show_lines(output, problems(), lambda problem: _print_problem(problem, place.path))
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
    seconds = time.monotonic() - begun
    repaired = _repair(place, found, is_asked=not yes, output=output) if repair else {}
    left = [problem for problem in found if not problem.is_note and problem not in repaired]
    present(
        output,
        lambda: _as_json(place, counts, found, repaired),
        lambda: _summarise(place, counts, found, left, seconds, is_repair=repair),
    )
    return 1 if left else 0


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    if total < PROGRESS_FROM_BYTES or not sys.stderr.isatty():
        yield lambda size: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    from penstock.cli.verbs.output import console

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda size: bar.advance(task, size)


def _print_problem(problem: Any, root: str) -> None:
    mark = "note: " if problem.is_note else ""
    print(mark + problem.line(root=root))


def _repair(place: Any, found: list[Any], *, is_asked: bool, output: str) -> dict[Any, str]:
    from penstock.inspection.repair import repair

    offered = [problem for problem in found if problem.repair is not None]
    if not offered:
        return {}
    if is_asked and sys.stdin.isatty():
        for remedy in dict.fromkeys(problem.repair for problem in offered):
            count = sum(problem.repair == remedy for problem in offered)
            click.echo(f"  {remedy}: {count}", err=True)
        if not click.confirm("Do that?", err=True):
            raise click.Abort
    repaired: dict[Any, str] = {}

    def draw(mended: tuple[Any, str]) -> None:
        problem, outcome = mended
        if (problem.path, outcome) not in {(each.path, said) for each, said in repaired.items()}:
            print(f"repaired: {problem.line(root=place.path)}: {outcome}")
        repaired[problem] = outcome

    mended = repair(place, found)
    if output == "json":
        return dict(mended)
    show_lines(output, mended, draw)
    return repaired


def _as_json(place: Any, counts: Any, found: list[Any], repaired: dict[Any, str]) -> dict[str, Any]:
    def shown(problem: Any) -> dict[str, Any]:
        return {**problem.as_json(root=place.path), "repaired": repaired.get(problem)}

    return {
        "directory": place.path,
        "in_use": place.is_in_use,
        "logs": counts.logs,
        "segments": counts.segments,
        "batches": counts.batches,
        "bytes": counts.bytes,
        "problems": [shown(problem) for problem in found if not problem.is_note],
        "notes": [shown(problem) for problem in found if problem.is_note],
    }


def _summarise(
    place: Any, counts: Any, found: list[Any], left: list[Any], seconds: float, *, is_repair: bool
) -> None:
    from penstock.model.units import count_text, size_text

    what = (
        f"{count_text(counts.logs, 'log')}, {count_text(counts.segments, 'segment')}, "
        f"{count_text(counts.batches, 'batch', 'batches')}, {size_text(counts.bytes)} in {seconds:.1f} s"
    )
    wrong = [problem for problem in found if not problem.is_note]
    if not wrong:
        verdict = "nothing is wrong"
    else:
        verdict = count_text(len(wrong), "problem")
        if is_repair:
            verdict += f", {len(wrong) - len(left)} repaired"
        elif any(problem.repair for problem in wrong):
            verdict += " (--repair mends what can be mended)"
    if place.is_in_use:
        verdict += "; a broker is writing here, so what is not on disk yet was not looked at"
    click.echo(f"{verdict}: {what}", err=True)


@log.command()
@click.argument("directory", metavar="DIR", type=click.Path())
@click.argument("name", metavar="[TOPIC[-PARTITION]]", required=False)
@output_option
def show(directory: str, name: str | None, output: str) -> None:
    """Show the segments of logs as a picture.

    With sizes, offsets, times, index entries, and what compaction has cleaned. All logs of a data directory, or those
    of one topic or partition; DIR may also be one partition's directory.

    \b
    Example:
      penstock log show ./data
      penstock log show ./data orders-0
    """
    from penstock.cli.verbs.log_picture import show_details, show_overview
    from penstock.client.errors import UserError
    from penstock.inspection.layout import read_layouts
    from penstock.inspection.places import look_at
    from penstock.model.units import count_text
    from penstock.runtime.files import OsDisk
    from penstock.storage.strays import list_strays

    place = look_at(directory)
    if name is not None:
        chosen = [log for log in place.logs if name in (log.topic_partition.topic, str(log.topic_partition))]
        if not chosen:
            raise UserError(f"{place.path} has no log of {name}")
        place = place._replace(logs=chosen)
    try:
        layouts = read_layouts(place)
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from None

    def draw() -> None:
        if name is not None or not place.is_log_directory:
            show_details(layouts)
            return
        show_overview(layouts)
        count = len(list_strays(OsDisk(), place.path))
        if count:
            click.echo(f"{count_text(count, 'stray')}: penstock log strays list {directory}", err=True)

    present(output, lambda: [layout.as_json() for layout in layouts], draw)
