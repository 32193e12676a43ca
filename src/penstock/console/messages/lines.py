"""A record as a line of JSON or CSV ◇, as a visitor may see it.

A line of JSON has the names of `penstock consume -o json`, and `produce.parse_lines` reads it back: what is no UTF-8 is under
`key_base64` or `value_base64`. In CSV a cell that a spreadsheet would take for a formula begins with an apostrophe.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from datetime import UTC, datetime
from typing import Any, Final

from penstock.console.messages.decode import Shown
from penstock.console.messages.model import Raw
from penstock.console.messages.rows import Rows

COLUMNS: Final = ("partition", "offset", "timestamp", "key", "value", "headers")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def json_line(topic: str, record: Raw, rows: Rows, *, as_documents: bool = False) -> bytes:
    """One record."""
    return JsonLines(topic, as_documents=as_documents).line(record, rows)


class JsonLines:
    def __init__(self, topic: str, *, as_documents: bool) -> None:
        self._topic = topic
        self._as_documents = as_documents

    def head(self) -> bytes:
        return b""

    def line(self, record: Raw, rows: Rows) -> bytes:
        shown: dict[str, Any] = {
            "topic": self._topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            **self._part("key", record.key, rows.key.shown(record.key)),
            **self._part("value", record.value, rows.value.shown(record.value, key=record.key)),
        }
        if record.headers:
            shown["headers"] = [
                {"name": name, **_field("value", value)} for name, value in rows.headers(record.headers)
            ]
        return json.dumps(shown, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"

    def _part(self, name: str, data: bytes | None, shown: Shown) -> dict[str, Any]:
        if shown.has_document and (shown.kind != "json" or self._as_documents):
            return {name: shown.document}
        if shown.kind in ("null", "empty", "text", "json", "hidden"):
            is_text = data is not None and shown.text.encode("utf-8", "replace") == data
            return (
                _field(name, data)
                if is_text or shown.kind in ("null", "empty")
                else self._other(name, data, shown)
            )
        return self._other(name, data, shown)

    @staticmethod
    def _other(name: str, data: bytes | None, shown: Shown) -> dict[str, Any]:
        """Hidden parts and masked documents as they are shown; everything else as bytes."""
        if shown.kind == "hidden" or shown.has_document:
            return {name: shown.text}
        return _field(name, data)


class CsvLines:
    def head(self) -> bytes:
        return self._written(COLUMNS)

    def line(self, record: Raw, rows: Rows) -> bytes:
        when = datetime.fromtimestamp(max(0, record.timestamp_ms) / 1000, UTC).isoformat(
            timespec="milliseconds"
        )
        headers = {name: _said(value) for name, value in rows.headers(record.headers)}
        return self._written(
            (
                str(record.partition), str(record.offset), when, _safe(rows.key.shown(record.key).text),
                _safe(rows.value.shown(record.value, key=record.key).text),
                json.dumps(headers, ensure_ascii=False) if headers else "",
            )
        )  # fmt: skip

    @staticmethod
    def _written(cells: tuple[str, ...]) -> bytes:
        line = io.StringIO()
        csv.writer(line).writerow(cells)
        return line.getvalue().encode("utf-8", "replace")


def _safe(cell: str) -> str:
    if not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell


def _said(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _field(name: str, data: bytes | str | None) -> dict[str, str | None]:
    if data is None or isinstance(data, str):
        return {name: data}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
