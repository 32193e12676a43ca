"""penstock sql: a query over topics as they are now, answered by DuckDB inside this process.

A topic becomes a view when DuckDB says that it misses a table of that name, so that whatever DuckDB understands works:
joins, windows, PIVOT, COPY to a file, files beside topics.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.clients import Connection
from penstock.cli.failures import Refused, UserError
from penstock.cli.verbs.common_options import connected

if TYPE_CHECKING:
    from penstock.arrow.scan import TopicScan

MISSING_TABLE = re.compile(r'^Catalog Error: Table with name "?([^"\n]+?)"? does not exist')
PARTITION_OFFSETS = re.compile(r"\d+:\d+(,\d+:\d+)*")
ROWS_AT_ONCE = 1000
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
    "--end", "end_text", default="latest", show_default=True, metavar="PLACE", help="Up to, not with."
)
@click.option("--raw", is_flag=True, help="Keys and values as bytes (BLOB), not as text.")
@click.option("--uncommitted", is_flag=True, help="Also what was aborted or is not committed yet.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Tables for people, JSON or CSV for programs.",
)
@connected
def sql(
    connection: Connection,
    query: str,
    start_text: str,
    end_text: str,
    raw: bool,
    uncommitted: bool,
    output: str,
) -> None:
    """Ask topics in SQL. Each topic is a table of the records it holds now.

    Columns: key, value, topic, partition, "offset", timestamp, timestampType, and headers where the query names them.
    Keys and values are text; what is not UTF-8 is shown with \\x escapes. JSON is taken apart with -> and ->>, for
    example value->>'$.amount'; try(…) makes NULL of what cannot be read. Topics with dashes stand in double quotes,
    and so does "offset", which is a word of SQL's own. QUERY may be - for stdin. The SQL is DuckDB's: files can be
    joined ('prices.csv') and written (COPY … TO 'out.parquet').

    PLACE is earliest, latest, an offset, 0:100,1:250 (partition:offset), a time (2026-11-16T08:00) or 10m (ago).

    \b
    Example:
      penstock sql "select key, count(*) from orders group by key order by 2 desc limit 10"
      penstock sql "select sum((value->>'$.amount')::double) from orders" --start 1h
      penstock sql 'select * from "my-topic" limit 5' -o json
    """
    engine = _import_engine()
    text = sys.stdin.read() if query == "-" else query
    now_s = time.time()
    start = parse_place(start_text, option="--start", now_s=now_s)
    end = parse_place(end_text, option="--end", now_s=now_s)
    connection.check()
    session = _Session(engine, connection, text, start=start, end=end, raw=raw, uncommitted=uncommitted)
    try:
        with _progress() as session.watch:
            columns, rows = session.run()
            first = next(rows, None)  # the reading happens here
        _show(columns, _chained(first, rows), output)
    except engine.Error as error:
        raise session.explained(error) from None
    finally:
        session.close()


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


def _import_engine() -> Any:
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(
            f"sql needs {error.name}, which is not installed: pip install 'penstock[arrow]'"
        ) from None
    return duckdb


class _Session:
    def __init__(
        self,
        engine: Any,
        connection: Connection,
        text: str,
        *,
        start: Any,
        end: Any,
        raw: bool,
        uncommitted: bool,
    ) -> None:
        self.watch: _Watch | None = None
        self._engine = engine
        self._connection = connection
        self._text = text
        self._raw = raw
        self._with_headers = re.search(r"\bheaders\b", text, re.IGNORECASE) is not None
        self._arguments = {
            "start": start,
            "end": end,
            "isolation": "read_uncommitted" if uncommitted else "read_committed",
            "bootstrap": connection.bootstrap,
            "options": {
                name: value
                for name, value in connection.properties.items()
                if name.startswith(HEEDED + SECURITY)
            },
        }
        self._scans: dict[str, TopicScan] = {}
        self._schemas: list[str] = []
        # Nothing is fetched from elsewhere, and no variable of ours is a table.
        self._database = engine.connect(
            config={"autoinstall_known_extensions": "false", "python_enable_replacements": "false"}
        )
        self._database.execute("SET TimeZone = 'UTC'")

    def close(self) -> None:
        self._database.close()

    def run(self) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """The names and rows of the last statement."""
        statements = self._database.extract_statements(self._text)
        if not statements:
            raise UserError("the query is empty")
        for statement in statements:
            self._execute(statement)
        columns = [column[0] for column in self._database.description or ()]
        return columns, self._rows()

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        while rows := self._database.fetchmany(ROWS_AT_ONCE):
            yield from rows

    def _execute(self, statement: Any) -> None:
        """A statement is bound before it is run, so that a missing table is known before anything has happened."""
        while True:
            try:
                self._database.execute(statement)
                return
            except self._engine.CatalogException as error:
                missing = MISSING_TABLE.match(str(error))
                if missing is None:
                    raise
                self._add(missing[1])

    def _add(self, name: str) -> None:
        """Makes a view of a topic. `a.b` without quotes is DuckDB's table b in the schema a, so there is one there, too."""
        from penstock.client.errors import NoSuchTopic

        candidates = [name, *(f"{schema}.{name}" for schema in self._schemas)]
        failure: NoSuchTopic | None = None
        for topic in candidates:
            if topic in self._scans:
                continue
            try:
                scan = self._scan(topic)
            except NoSuchTopic as error:
                failure = failure or error
                continue
            self._scans[topic] = scan
            self._create_view(topic, scan)
            return
        if failure is None:
            raise UserError(
                f"the table '{name}' cannot be found; is it a topic? Write its whole name in double quotes"
            )
        raise UserError(self._advice(failure))

    def _scan(self, topic: str) -> TopicScan:
        from penstock.arrow.scan import TopicScan
        from penstock.client.errors import BadOption, NoSuchTopic, ReadFailed

        try:
            return TopicScan(topic, include_headers=self._with_headers, **self._arguments)
        except BadOption as error:
            raise UserError(str(error)) from None
        except NoSuchTopic:
            raise
        except ReadFailed as error:
            raise Refused(str(error)) from None

    def _create_view(self, topic: str, scan: TopicScan) -> None:
        source = f"topic {topic}"
        self._database.register(source, _Watched(self, scan))
        columns = ", ".join(
            f'coalesce(try(decode("{name}")), "{name}"::varchar) AS "{name}"'
            if name in ("key", "value") and not self._raw
            else f'"{name}"'
            for name in scan.names
        )
        self._database.execute(f'CREATE VIEW "{topic}" AS SELECT {columns} FROM "{source}"')
        schema, dot, table = topic.rpartition(".")
        if not dot:
            return
        if schema not in self._schemas:
            self._database.execute(f'CREATE SCHEMA "{schema}"')
            self._schemas.append(schema)
        self._database.execute(f'CREATE VIEW "{schema}"."{table}" AS FROM main."{topic}"')

    def _advice(self, failure: Any) -> str:
        near = failure.near[0] if failure.near else ""
        if near and not near.isidentifier():
            return f'{failure} Write it in double quotes: "{near}"'
        return str(failure)

    def explained(self, error: Exception) -> Exception:
        """DuckDB's words in one line, or what the cluster said while a topic was read."""
        for scan in self._scans.values():
            if scan.failure is not None:
                return Refused(str(scan.failure))
        said, _, _ = str(error).partition("\n\nLINE ")
        line = " ".join(said.split())
        if line.startswith("Parser Error") and 'near "-"' in line:
            line += '. Names with dashes stand in double quotes: "my-topic"'
        elif line.startswith("Parser Error") and re.search(r"\boffset\b", self._text, re.IGNORECASE):
            line += '. The column offset stands in double quotes: "offset"'
        return UserError(line)


class _Watched:
    """What DuckDB reads: a scan that tells how far it is. It is opened anew for each time the query names the topic."""

    def __init__(self, session: _Session, scan: TopicScan) -> None:
        self._session = session
        self._scan = scan

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow

        reader = pyarrow.RecordBatchReader.from_batches(self._scan.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[Any]:
        watch = self._session.watch
        if watch is not None:
            watch.begin(self._scan.topic.name, self._scan.offsets_count)
        for batch in self._scan.batches():
            if watch is not None:
                watch.advance(self._scan.topic.name, batch.num_rows)
            yield batch


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
    if output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(["" if cell is None else _text(cell) for cell in row] for row in rows)
    elif output == "json":
        _show_json(columns, rows)
    else:
        _show_table(columns, rows)


def _show_json(columns: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    """One object per line inside an array, written as they come."""
    separator = "[\n"
    for row in rows:
        line = json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, default=_text)
        print(f"{separator}  {line}", end="")
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


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
