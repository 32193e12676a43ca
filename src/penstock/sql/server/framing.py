"""Results as the bytes of an answer: the array of `/query`, the lines of `/query-stream`, and the objects of KSQL 5.1."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, Protocol

import orjson

from penstock.sql.engine.refusals import GENERIC, SERVER_ERROR
from penstock.sql.engine.results import Header, ResultRow, Results
from penstock.sql.server.json_rows import row_writer


class Framing(Protocol):
    def begin(self, header: Header) -> bytes: ...

    def rows(self, rows: list[ResultRow]) -> bytes: ...

    def end(self, final: str | None, error: str | None) -> bytes: ...


def _types(header: Header) -> list[Any]:
    return [column.type for column in (*header.schema.key, *header.schema.value)]


def error_document(message: str) -> dict[str, Any]:
    return {"@type": GENERIC, "error_code": SERVER_ERROR, "message": message}


class ArrayFraming:
    """One array over time: `[{"header":…},\\n{"row":…},\\n{"finalMessage":…}]`."""

    def begin(self, header: Header) -> bytes:
        self._write = row_writer(_types(header))
        document = {"header": {"queryId": header.query_id, "schema": header.text}}
        return b"[" + orjson.dumps(document)

    def rows(self, rows: list[ResultRow]) -> bytes:
        found = []
        for row in rows:
            columns: dict[str, Any] = {"columns": self._write(row.values)}
            if row.is_tombstone:
                columns["tombstone"] = True
            found.append(b",\n" + orjson.dumps({"row": columns}))
        return b"".join(found)

    def end(self, final: str | None, error: str | None) -> bytes:
        if error is not None:
            return b",\n" + orjson.dumps({"errorMessage": error_document(error)}) + b"]"
        if final is not None:
            return b",\n" + orjson.dumps({"finalMessage": final}) + b"]"
        return b"]"


class LegacyFraming:
    """KSQL 5.1: an object a line. An idle query sends empty lines (`IDLE`)."""

    def begin(self, header: Header) -> bytes:
        self._write = row_writer(_types(header))
        return b""

    def rows(self, rows: list[ResultRow]) -> bytes:
        return b"".join(
            self._line(row={"columns": self._write(row.values)}) for row in rows if not row.is_tombstone
        )

    def end(self, final: str | None, error: str | None) -> bytes:
        if error is not None:
            return self._line(error=error_document(error) | {"stackTrace": []})
        return self._line(final=final) if final is not None else b""

    def _line(self, *, row: Any = None, error: Any = None, final: str | None = None) -> bytes:
        return orjson.dumps({"row": row, "errorMessage": error, "finalMessage": final}) + b"\n"


class DelimitedFraming:
    """`/query-stream`: a line about the query, then a line for each row. It has no form for deletions."""

    def begin(self, header: Header) -> bytes:
        self._write = row_writer(_types(header))
        return orjson.dumps(metadata(header)) + b"\n"

    def rows(self, rows: list[ResultRow]) -> bytes:
        return b"".join(orjson.dumps(self._write(row.values)) + b"\n" for row in rows if not row.is_tombstone)

    def end(self, final: str | None, error: str | None) -> bytes:
        return b"" if error is None else orjson.dumps(error_document(error)) + b"\n"


class JsonArrayFraming:
    """`/query-stream` with Accept: application/json."""

    def begin(self, header: Header) -> bytes:
        self._write = row_writer(_types(header))
        return b"[" + orjson.dumps(metadata(header))

    def rows(self, rows: list[ResultRow]) -> bytes:
        return b"".join(
            b",\n" + orjson.dumps(self._write(row.values)) for row in rows if not row.is_tombstone
        )

    def end(self, final: str | None, error: str | None) -> bytes:
        return b"]" if error is None else b",\n" + orjson.dumps(error_document(error)) + b"]"


def metadata(header: Header) -> dict[str, Any]:
    columns = (*header.schema.key, *header.schema.value)
    return {
        "queryId": header.query_id,
        "columnNames": [column.name for column in columns],
        "columnTypes": [str(column.type) for column in columns],
    }


def at_once(results: Results, framing: Framing) -> bytes | None:
    """The whole answer, where it is there already: most lookups are."""
    rows = results.whole()
    if rows is None:
        return None
    try:
        begin = framing.begin(results.header)
        return begin + (framing.rows(rows) if rows else b"") + framing.end(results.final, results.error)
    finally:
        results.close()


async def framed(results: Results, framing: Framing) -> AsyncIterator[bytes]:
    try:
        yield framing.begin(results.header)
        while rows := await results.take():
            yield framing.rows(rows)
        yield framing.end(results.final, results.error)
    finally:
        results.close()


IDLE: Final = b"\n"
