"""penstock sql: a query over topics as they are now, shown as a table, JSON or CSV."""

from __future__ import annotations

import csv
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

import click

from penstock.cli.verbs.common_options import connected, output_choice
from penstock.cli.verbs.value_formats import query_formats
from penstock.client.clients import Connection
from penstock.client.errors import UserError

PARTITION_OFFSETS = re.compile(r"\d+:\d+(,\d+:\d+)*")
MAX_TABLE_ROWS = 1000
PROGRESS_EVERY_S = 0.1
# What a client file may say to any client and means nothing here is left out; what is about security is not.
HEEDED = ("client.id", "fetch.", "max.partition.fetch.bytes", "request.timeout.ms", "default.api.timeout.ms")
SECURITY = ("security.protocol", "sasl.", "ssl.")


@click.command()
@click.argument("query", metavar="QUERY")
@click.option(
    "--start", "start_text", default="earliest", show_default=True, metavar="PLACE", help="First record."
)
@click.option(
    "--end",
    "end_text",
    default="latest",
    show_default=True,
    metavar="PLACE",
    help="The first record that is left out.",
)
@click.option("--raw", is_flag=True, help="Keys and values as bytes (BLOB), not as text.")
@click.option("--uncommitted", is_flag=True, help="Also what was aborted or is not committed yet.")
@query_formats
@output_choice("table", "json", "csv", help="Tables for people, JSON or CSV for programs.")
@connected
def sql(
    connection: Connection,
    query: str,
    start_text: str,
    end_text: str,
    raw: bool,
    uncommitted: bool,
    formats: Callable[[Connection], dict[str, Any]],
    output: str,
) -> None:
    """Ask topics in SQL. Each topic is a table of the records it holds now.

    Columns: key, value, topic, partition, "offset", timestamp, timestampType, and headers where the query names them.
    Keys and values are text; what is not UTF-8 is shown with \\x escapes. JSON is taken apart with -> and ->>, for
    example value->>'$.amount'; try(…) makes NULL of what cannot be read. Topics with dashes stand in double quotes,
    and so does "offset", which is a word of SQL's own. QUERY may be - for stdin. The SQL is DuckDB's: files can be
    joined ('prices.csv') and written (COPY … TO 'out.parquet').

    With --value-format, values have the columns of their schemas: value.amount. What cannot be read is NULL. Topics of
    which the registry knows nothing stay text.

    PLACE is earliest, latest, an offset, 0:100,1:250 (partition:offset), a time (2026-11-16T08:00) or 10m (ago).

    \b
    Example:
      penstock sql "select key, count(*) from orders group by key order by 2 desc limit 10"
      penstock sql "select sum((value->>'$.amount')::double) from orders" --start 1h
      penstock sql 'select * from "my-topic" limit 5' -o json
      penstock sql "select value.id, value.note from orders" --value-format avro
    """
    _check_extra()
    from penstock.arrow.query import TopicQuery

    text = sys.stdin.read() if query == "-" else query
    now_s = time.time()
    start = parse_place(start_text, option="--start", now_s=now_s)
    end = parse_place(end_text, option="--end", now_s=now_s)
    connection.check()
    arguments = formats(connection)
    heeded = {
        name: value for name, value in connection.properties.items() if name.startswith(HEEDED + SECURITY)
    }
    asked = TopicQuery(
        text,
        bootstrap=connection.bootstrap,
        **{**arguments, "options": {**heeded, **arguments["options"]}},
        start=start,
        end=end,
        raw=raw,
        uncommitted=uncommitted,
    )
    with closing(asked):
        with _progress() as asked.watch:
            columns, rows = asked.run()
            first = next(rows, None)  # the reading happens here
        _show(columns, _chained(first, rows), output)


def parse_place(text: str, *, option: str, now_s: float) -> Any:
    """A place as penstock.arrow takes it."""
    from penstock.cli.verbs.consume import parse_time

    if text in ("earliest", "latest"):
        return text
    if text.isdigit():
        return int(text)
    if PARTITION_OFFSETS.fullmatch(text):
        return {int(part.split(":")[0]): int(part.split(":")[1]) for part in text.split(",")}
    try:
        return datetime.fromtimestamp(parse_time(text, now_s=now_s) / 1000, tz=UTC)
    except UserError:
        raise UserError(
            f"{option}: '{text}' is not earliest, latest, an offset, partition:offset pairs, a time or 10m (ago)"
        ) from None


def _check_extra() -> None:
    try:
        import duckdb  # noqa: F401
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(
            f"sql needs {error.name}, which is not installed: pip install 'penstock[arrow]'"
        ) from None


class _Watch:
    """A line per topic on the terminal, drawn by rich."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._tasks: dict[str, Any] = {}

    def begin(self, topic: str, rows: int) -> None:
        if topic not in self._tasks:
            self._tasks[topic] = self._progress.add_task(topic, total=rows)

    def advance(self, topic: str, rows: int) -> None:
        self._progress.advance(self._tasks[topic], rows)


@contextmanager
def _progress() -> Iterator[_Watch | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from penstock.cli.verbs.output import console

    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=console(stderr=True), transient=True, refresh_per_second=1 / PROGRESS_EVERY_S,
    ) as progress:  # fmt: skip
        yield _Watch(progress)


def _chained(first: tuple[Any, ...] | None, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    if first is not None:
        yield first
        yield from rows


def _show(columns: list[str], rows: Iterator[tuple[Any, ...]], output: str) -> None:
    from penstock.cli.verbs.output import show_array

    if output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(["" if cell is None else _text(cell) for cell in row] for row in rows)
    elif output == "json":
        show_array((dict(zip(columns, row, strict=True)) for row in rows), _text)
    else:
        _show_table(columns, rows)


def _show_table(columns: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    from penstock.cli.verbs.output import show_table

    shown: list[tuple[Any, ...]] = []
    for row in rows:
        if len(shown) == MAX_TABLE_ROWS:
            click.echo(
                f"Only the first {MAX_TABLE_ROWS} rows are shown; -o csv and -o json give all.", err=True
            )
            break
        shown.append(tuple(cell if isinstance(cell, int) else _text(cell) for cell in row))
    if columns:
        show_table(columns, shown)


def _text(cell: Any) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace")
    if isinstance(cell, datetime):
        return cell.isoformat(timespec="milliseconds")
    if isinstance(cell, list | dict):
        return json.dumps(cell, ensure_ascii=False, default=_text)
    return str(cell)
