"""A record as a row of a table: cut, decoded, and with what is hidden from the visitor hidden. Small, whatever the
record holds."""

from __future__ import annotations

from typing import Any, Final

from penstock.console.access.masking import Mask
from penstock.console.messages.decode import NULL, PartDecoder, Shown
from penstock.console.messages.model import Cell, Control, Headers, Raw, Row
from penstock.console.messages.texts import preview

HEADERS_IN_ROW: Final = 8


class Rows:
    """Makes rows for one visitor of one topic."""

    def __init__(self, key: PartDecoder, value: PartDecoder, mask: Mask | None) -> None:
        self.key = key
        self.value = value
        self.mask = mask

    def row(self, record: Raw) -> Row:
        value = self.value.shown(record.value, is_row=True, key=record.key)
        return Row(
            record.partition, record.offset, record.timestamp_ms, record.is_append_time,
            _cell(self.key.shown(record.key, is_row=True), record.key), _cell(value, record.value),
            self._headers(record.headers), len(record.headers),
        )  # fmt: skip

    def headers(self, headers: Headers) -> list[tuple[str, Any]]:
        """With what the visitor may see of each."""
        if self.mask is None:
            return list(headers)
        return [(name, self.mask.header(name, value)) for name, value in headers]

    def _headers(self, headers: Headers) -> str:
        shown = [f"{name}={header_text(value)}" for name, value in self.headers(headers[:HEADERS_IN_ROW])]
        return preview(", ".join(shown) + (", …" if len(headers) > HEADERS_IN_ROW else ""))


def control_row(control: Control) -> Row:
    text = f"producer {control.producer_id}, epoch {control.producer_epoch}"
    return Row(
        control.partition, control.offset, control.timestamp_ms, False, Cell("", "null", -1),
        Cell(text, "control", -1), "", 0, control.kind,
    )  # fmt: skip


def header_text(value: Any) -> str:
    if value is None:
        return "null"
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex(" ")


def _cell(shown: Shown, data: bytes | None) -> Cell:
    size = -1 if data is None else len(data)
    return Cell(preview(shown.text), NULL.kind if data is None else shown.kind, size, preview(shown.problem))
