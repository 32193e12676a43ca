"""All that is printed: on a terminal with bars that move, elsewhere line by line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column, Table

from examples.demo import topics
from examples.demo.pipeline import REFUSAL_QUERY, SUMMARY_GROUP, SUMMARY_QUERY, TABLE
from examples.demo.watch import EPOCH, Seen
from examples.demo.way import Way

if TYPE_CHECKING:
    from examples.demo.verify import Averages, Outcome, Summary

BAR_WIDTH = 40
GROUPS = {
    "spark": SUMMARY_GROUP,
    "streams": "bioimpedancia-streams",
    "sql": "_confluent-ksql-demo_query_CTAS_SUMMARY_6",
}


class Screen:
    def __init__(self, console: Console) -> None:
        self.console = console
        self.is_interrupted = False

    def interrupt(self, *_: object) -> None:
        """For signals. A library that is being imported may swallow what is raised here: the next step raises it again."""
        self.is_interrupted = True
        raise KeyboardInterrupt

    def step(self, text: str) -> None:
        if self.is_interrupted:
            raise KeyboardInterrupt
        self.console.print(f"[green]✓[/green] {text}", highlight=False, soft_wrap=True)

    def problem(self, text: str) -> None:
        self.console.print(f"[red]✗[/red] {escape(text)}", highlight=False, soft_wrap=True)

    def line(self, text: str = "") -> None:
        self.console.print(text, highlight=False, soft_wrap=True)

    def command(self, text: str) -> None:
        self.console.print(f"  {escape(text)}", highlight=False, soft_wrap=True)

    @contextmanager
    def counting(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        with self._bars() as bars:
            task = bars.add_task(what, total=total, detail="")
            yield lambda count: bars.advance(task, count)

    @contextmanager
    def streaming(self, total: int) -> Iterator[Streaming]:
        with self._bars() as bars:
            yield Streaming(self, bars, total)

    def _bars(self) -> Progress:
        return Progress(
            TextColumn("  {task.description:<6}"),
            BarColumn(bar_width=14),
            TextColumn("{task.fields[detail]}", style="dim", table_column=Column(no_wrap=True)),
            console=self.console,
            disable=not self.console.is_terminal,
        )


class Streaming:
    """What was sent, and what the two queries have read of it."""

    def __init__(self, screen: Screen, bars: Progress, total: int) -> None:
        self._screen = screen
        self._bars = bars
        self._total = total
        self._tasks = {
            name: bars.add_task(name, total=total, detail="")
            for name in ("sent", SUMMARY_QUERY, REFUSAL_QUERY)
        }
        self._read = 0

    def update(self, sent: int, summary: Seen, refusals: Seen) -> None:
        self._bars.update(self._tasks["sent"], completed=sent, detail=f"{sent:,} of {self._total:,}")
        for name, seen in ((SUMMARY_QUERY, summary), (REFUSAL_QUERY, refusals)):
            self._bars.update(self._tasks[name], completed=seen.records, detail=detail(seen, sent))
        if self._bars.disable and summary.records > self._read:
            self._screen.line(f"  {SUMMARY_QUERY}: {detail(summary, sent)}")
            self._read = summary.records


def detail(seen: Seen, sent: int) -> str:
    parts = [
        f"{seen.records:,}",
        f"{seen.rows_per_second:,.0f} rows/s",
        f"lag {max(0, sent - seen.records):,}",
    ]
    if seen.watermark > EPOCH:
        parts.append(f"watermark {seen.watermark:%a %H:%M}")
    return " · ".join(parts)


def show_checks(screen: Screen, outcome: Outcome) -> None:
    refused = " · ".join(f"{cause} {count:,}" for cause, count in sorted(outcome.refused.items()))
    screen.step(f"{topics.DEAD_LETTERS}: {outcome.refused.total():,} refused, with the cause ({refused})")
    screen.step(f"{outcome.too_late:,} measurements came behind the watermark and were dropped")
    if not outcome.problems:
        screen.step(
            f"{topics.SUMMARY}: {len(outcome.summary)} rows, each once, and the same as plain Python computes"
        )
    for problem in outcome.problems[:10]:
        screen.problem(problem)


def show_summary(screen: Screen, summary: Summary) -> None:
    sectors: dict[str, list[Averages]] = defaultdict(list)
    hours: dict[str, list[Averages]] = defaultdict(list)
    for (begin, sector), averages in sorted(summary.items()):
        sectors[sector].append(averages)
        hours[f"{begin:%H:%M}"].append(averages)
    table = Table(title="Body composition by sector", title_justify="left")
    table.add_column("sector")
    for name in ("measurements", "fat-free mass", "body fat", "phase angle"):
        table.add_column(name, justify="right")
    for sector, rows in sectors.items():
        count, lean_kg, fat, angle = _over(rows)
        table.add_row(sector, f"{count:,}", f"{lean_kg:.1f} kg", f"{fat:.1f} %", f"{angle:.2f}°")
    screen.line()
    screen.console.print(table)
    _show_chart(screen, {hour: _over(rows)[0] for hour, rows in hours.items()})
    screen.line(
        "  [dim]Fat-free mass by the equation of Kyle et al., Nutrition 17 (2001), pages 248–253[/dim]"
    )


def _show_chart(screen: Screen, counts: dict[str, int]) -> None:
    screen.line("\n[italic]Measurements by hour, late ones where they belong[/italic]")
    most = max(counts.values(), default=1)
    for hour, count in counts.items():
        bar = _bar(count / most * BAR_WIDTH)
        screen.line(f"  {hour} [cyan]{bar:<{BAR_WIDTH}}[/cyan] {count:,}")


def _bar(length: float) -> str:
    """In eighths of a character."""
    whole, eighths = divmod(round(length * 8), 8)
    return "█" * whole + (chr(0x2590 - eighths) if eighths else "")


def _over(rows: list[Averages]) -> tuple[int, float, float, float]:
    """The average of averages, each with its weight."""
    count = sum(row.measurements for row in rows)
    lean_kg, fat, angle = (sum(row[place] * row.measurements for row in rows) / count for place in (1, 2, 3))
    return count, lean_kg, fat, angle


def commands(way: Way, directory: Path, pipeline: str, services: Mapping[str, str]) -> list[str]:
    """`services`: where the registry, the SQL server and so on are."""
    group = GROUPS[pipeline]
    table, bootstrap = directory / TABLE, way.bootstrap
    login = f" --command-config {way.config}" if way.config is not None else ""
    found = [
        f"bin/penstock topics list -b {bootstrap}{login}",
        f"bin/kafka-console-consumer.sh --bootstrap-server {bootstrap}{login} --topic {topics.SUMMARY} --from-beginning"
        " --isolation-level read_committed --max-messages 5",
        f"bin/kafka-consumer-groups.sh --bootstrap-server {bootstrap}{login} --describe --group {group}",
        f"bin/penstock groups describe {group} -b {bootstrap}{login}",
        f"bin/penstock dlq show {topics.DEAD_LETTERS} --limit 5 -b {bootstrap}{login}",
        f"bin/penstock consume {topics.LOG} --from-beginning --exit -b {bootstrap}{login}",
        "bin/penstock sql \"select value->>'$.sector' as sector, sum((value->>'$.measurements')::int) as count"
        f' from {topics.SUMMARY} group by 1 order by 1" -b {bootstrap}{login}',
    ]
    if pipeline == "spark":
        found.append(
            f"bin/penstock sql \"select * from '{table}/*.parquet' order by fat_percent limit 5\" -b {bootstrap}{login}"
        )
    login_there = f" --config-file {way.config}" if way.config is not None else ""
    found.append(f"bin/ksql {services['sql']}{login_there} -e 'SHOW STREAMS; SHOW TABLES;'")
    found.append(f"bin/penstock status --data {directory / 'stack'}")
    return found
