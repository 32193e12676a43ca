"""SQL over topics as they are now, answered by DuckDB inside this process.

A topic becomes a view when DuckDB says that it misses a table of that name, so that whatever DuckDB understands works:
joins, windows, PIVOT, COPY to a file, files beside topics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa

from penstock.arrow.registry_columns import NoSuchSchema, without_registry
from penstock.arrow.scan import TopicScan
from penstock.client.errors import NoSuchTopic, UserError

MISSING_TABLE = re.compile(r'^Catalog Error: Table with name "?([^"\n]+?)"? does not exist')
ROWS_AT_ONCE = 1000


class Watch(Protocol):
    """Hears how far the reading of topics is."""

    def begin(self, topic: str, rows: int) -> None:
        """So many records will be read, at most."""

    def advance(self, topic: str, rows: int) -> None:
        """So many more have been."""


class TopicQuery:
    """One text of SQL over the topics of a cluster. Close it in the end.

    `start`, `end`, `bootstrap` and `options` are those of `penstock.arrow.read`. Keys and values are text unless `raw`.
    With `value_format` (avro, protobuf, json, or registry for all three) and `schema_registry_url`, values are what their
    schemas say; those of topics that the registry does not know stay text. `key_format` is the same for keys. `watch` hears
    how far the reading is.

    >>> query = TopicQuery("select count(*) from orders", bootstrap="localhost:9092")
    >>> columns, rows = query.run()
    >>> list(rows)
    [(42,)]
    """

    def __init__(
        self,
        text: str,
        *,
        bootstrap: str,
        options: Mapping[str, str] | None = None,
        start: Any = "earliest",
        end: Any = "latest",
        raw: bool = False,
        uncommitted: bool = False,
        value_format: str | None = None,
        key_format: str | None = None,
        schema_registry_url: str | None = None,
        watch: Watch | None = None,
    ) -> None:
        import duckdb

        self.watch = watch
        self._engine = duckdb
        self._text = text
        self._raw = raw
        self._with_headers = re.search(r"\bheaders\b", text, re.IGNORECASE) is not None
        self._arguments = {
            "start": start,
            "end": end,
            "isolation": "read_uncommitted" if uncommitted else "read_committed",
            "bootstrap": bootstrap,
            "options": dict(options or {}),
            "value_format": value_format,
            "key_format": key_format,
            "schema_registry_url": schema_registry_url,
        }
        self._scans: dict[str, TopicScan] = {}
        self._schemas: list[str] = []
        # Nothing is fetched from elsewhere, and no variable of ours is a table.
        self._database = duckdb.connect(
            config={"autoinstall_known_extensions": "false", "python_enable_replacements": "false"}
        )
        self._database.execute("SET TimeZone = 'UTC'")

    def close(self) -> None:
        self._database.close()

    def run(self) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """The names and rows of the last statement. Topics are read while the rows are taken."""
        try:
            return self._run()
        except self._engine.Error as error:
            raise self._explained(error) from None

    def _run(self) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        statements = self._database.extract_statements(self._text)
        if not statements:
            raise UserError("the query is empty")
        for statement in statements:
            self._execute(statement)
        columns = [column[0] for column in self._database.description or ()]
        return columns, self._rows()

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        try:
            while rows := self._database.fetchmany(ROWS_AT_ONCE):
                yield from rows
        except self._engine.Error as error:
            raise self._explained(error) from None

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
        arguments = dict(self._arguments)
        while True:
            try:
                return TopicScan(topic, include_headers=self._with_headers, **arguments)
            except NoSuchSchema as error:
                arguments[f"{error.column}_format"] = None
                if not arguments["value_format"] and not arguments["key_format"]:
                    arguments["schema_registry_url"] = None
                    arguments["options"] = without_registry(arguments["options"])

    def _create_view(self, topic: str, scan: TopicScan) -> None:
        source = f"topic {topic}"
        self._database.register(source, _Watched(self, scan))
        columns = ", ".join(
            f'coalesce(try(decode("{name}")), "{name}"::varchar) AS "{name}"'
            if name in ("key", "value") and scan.schema.field(name).type == pa.binary() and not self._raw
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

    def _explained(self, error: Exception) -> Exception:
        """DuckDB's words in one line, or what the cluster said while a topic was read."""
        for scan in self._scans.values():
            if scan.failure is not None:
                return scan.failure
        said, _, _ = str(error).partition("\n\nLINE ")
        line = " ".join(said.split())
        if line.startswith("Parser Error") and 'near "-"' in line:
            line += '. Names with dashes stand in double quotes: "my-topic"'
        elif line.startswith("Parser Error") and re.search(r"\boffset\b", self._text, re.IGNORECASE):
            line += '. The column offset stands in double quotes: "offset"'
        return UserError(line)


class _Watched:
    """What DuckDB reads: a scan that tells how far it is. It is opened anew for each time the query names the topic."""

    def __init__(self, query: TopicQuery, scan: TopicScan) -> None:
        self._query = query
        self._scan = scan

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow

        reader = pyarrow.RecordBatchReader.from_batches(self._scan.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[Any]:
        watch = self._query.watch
        if watch is not None:
            watch.begin(self._scan.topic.name, self._scan.offsets_count)
        for batch in self._scan.batches():
            if watch is not None:
                watch.advance(self._scan.topic.name, batch.num_rows)
            yield batch
