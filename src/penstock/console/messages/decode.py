"""Bytes of keys and values into what a person reads: by a chosen format, or by what they look like.

AUTO tries, in this order: records of Kafka's own topics; values that begin with the id of a schema which the registry has; JSON;
text; numbers of four and eight bytes that are no text; text with some bytes that are none; hexadecimal digits. So one topic may
have records of several kinds. Calls may ask the registry and block: use it in a thread.
"""

from __future__ import annotations

import base64
import enum
import json
import math
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from penstock.client.errors import Refused, Unreachable, UserError, one_line
from penstock.client.schema_registry import SchemaRegistry
from penstock.client.schema_values import ValueReader
from penstock.console.access.masking import HIDDEN, Mask
from penstock.console.messages.internal import internal_record
from penstock.schemas.model import InvalidSchema, InvalidValue

REGISTRY_TIMEOUT_S: Final = 3.0
SILENCE_S: Final = 20.0
"""So long a registry that did not answer is not asked again."""
LARGE_BYTES: Final = 1 << 20
"""A value that is larger is not taken apart for a row of a table."""
_SCHEMA_KINDS: Final = {"AVRO": "avro", "JSON": "json-schema", "PROTOBUF": "protobuf"}


class Format(enum.Enum):
    AUTO = "auto"
    TEXT = "text"
    JSON = "json"
    REGISTRY = "registry"
    HEX = "hex"
    BASE64 = "base64"
    SHORT = "short"
    INTEGER = "integer"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"


_LAYOUTS: Final = {
    Format.SHORT: struct.Struct(">h"), Format.INTEGER: struct.Struct(">i"), Format.LONG: struct.Struct(">q"),
    Format.FLOAT: struct.Struct(">f"), Format.DOUBLE: struct.Struct(">d"),
}  # fmt: skip


class Shown(NamedTuple):
    """One key or value, read."""

    kind: str
    """null, empty, text, json, avro, protobuf, json-schema, kafka, hex, base64, short … double, hidden."""
    text: str
    """All of it; JSON on one line where it was made of something else."""
    document: Any = None
    """Of JSON and what has a schema."""
    has_document: bool = False
    schema: str = ""
    """`id 3` of what the registry reads."""
    problem: str = ""
    """Why it is not shown as what was asked for."""


NULL: Final = Shown("null", "")


class Registry:
    """A schema registry that may be down: then nobody waits for it record by record. Shared between threads."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._reader = ValueReader(registry, plain=True)
        self._silent_until_s = 0.0
        self._silence = ""
        self._lock = threading.Lock()

    def read(self, data: bytes) -> Shown:
        """InvalidValue where it cannot be read."""
        with self._lock:
            if time.monotonic() < self._silent_until_s:
                raise InvalidValue(self._silence)
        try:
            value, schema = self._reader.read(data)
        except (Unreachable, ModuleNotFoundError) as error:
            with self._lock:
                self._silence = f"the schema registry: {one_line(error)}"
                self._silent_until_s = time.monotonic() + SILENCE_S
            raise InvalidValue(self._silence) from None
        except (InvalidSchema, Refused) as error:
            raise InvalidValue(one_line(error)) from None
        text = json.dumps(value, ensure_ascii=False, default=str)
        return Shown(_SCHEMA_KINDS[schema.schema.kind], text, value, True, f"id {schema.id}")


class PartDecoder:
    """Of the keys or of the values of one topic, for one visitor."""

    def __init__(
        self,
        topic: str,
        *,
        is_key: bool,
        form: Format = Format.AUTO,
        registry: Registry | None = None,
        mask: Mask | None = None,
    ) -> None:
        self._topic = topic
        self._is_key = is_key
        self._form = form
        self._registry = registry
        self._mask = mask

    def shown(self, data: bytes | None, *, is_row: bool = False, key: bytes | None = None) -> Shown:
        """As the visitor may see it. `is_row`: for a table, where what is very large need not be taken apart. `key`:
        of the record, which says what a value of Kafka's own topics is."""
        found = self._read(data, is_row=is_row and self._mask is None, key=key)
        if self._mask is None or found.kind == "null":
            return found
        if not found.has_document:
            hidden = self._mask.key_text(found.text) if self._is_key else self._mask.text(found.text)
            return found if hidden == found.text else Shown("hidden", hidden)
        document = self._mask.key(found.document) if self._is_key else self._mask.value(found.document)
        if document == HIDDEN:
            return Shown("hidden", HIDDEN)
        text = json.dumps(document, ensure_ascii=False, default=str)
        return found._replace(document=document, text=text)

    def searchable(self, data: bytes | None) -> bytes | None:
        """What a visitor from whom something is hidden may look through: the bytes, where nothing of them is hidden."""
        found = self._read(data, is_row=False, key=None)
        shown = self.shown(data)
        if data is None or shown == found:
            return data
        if not shown.has_document:
            return shown.text.encode("utf-8", "replace")
        # With blanks and without: nobody knows how it was written. What follows an object does not matter to a path.
        compact = json.dumps(shown.document, ensure_ascii=False, default=str, separators=(",", ":"))
        return f"{compact}\n{shown.text}".encode("utf-8", "replace")

    def document(self, data: bytes) -> Any:
        """For conditions on JSON: what the visitor may see of it. ValueError where it is none."""
        if self._registry is not None and data[:1] in (b"\0", b"\1") and len(data) > 4:
            found = self._registry.read(data)
        elif data[:1].lstrip()[:1] in (b"", b"{", b"[", b'"', b"t", b"f", b"n", b"-") or data[:1].isdigit():
            found = _json(data)
        else:
            raise InvalidValue("it is not JSON")
        if self._mask is None:
            return found.document
        return self._mask.key(found.document) if self._is_key else self._mask.value(found.document)

    def _read(self, data: bytes | None, *, is_row: bool, key: bytes | None) -> Shown:
        if data is None:
            return NULL
        if not data:
            return Shown("empty", "")
        if self._form == Format.AUTO:
            return self._guessed(data, is_row=is_row, key=key)
        try:
            return self._as(self._form, data)
        except ValueError as error:
            return self._guessed(data, is_row=is_row, key=key)._replace(problem=one_line(error))

    def _as(self, form: Format, data: bytes) -> Shown:
        if form == Format.TEXT:
            return Shown("text", data.decode("utf-8", "replace"))
        if form == Format.JSON:
            return _json(data)
        if form == Format.HEX:
            return Shown("hex", data.hex(" "))
        if form == Format.BASE64:
            return Shown("base64", base64.b64encode(data).decode())
        if form == Format.REGISTRY:
            if self._registry is None:
                raise InvalidValue("the console has no schema registry for this cluster")
            return self._registry.read(data)
        layout = _LAYOUTS[form]
        if len(data) != layout.size:
            raise InvalidValue(f"a number of this kind has {layout.size} bytes, and here are {len(data)}")
        return Shown(form.value, repr(layout.unpack(data)[0]))

    def _guessed(self, data: bytes, *, is_row: bool, key: bytes | None) -> Shown:
        internal = internal_record(
            self._topic, key=data if self._is_key else key, value=None if self._is_key else data
        )
        if internal is not None:
            return Shown("kafka", json.dumps(internal, ensure_ascii=False), internal, True)
        problem = ""
        if self._registry is not None and data[0] in (0, 1) and len(data) > 4:
            try:
                return self._registry.read(data)
            except InvalidValue as error:
                problem = one_line(error)
        if is_row and len(data) > LARGE_BYTES:
            return _large(data)._replace(problem=problem)
        return _by_looks(data)._replace(problem=problem)


def _json(data: bytes) -> Shown:
    """InvalidValue."""
    try:
        text = data.decode()
        return Shown("json", text, json.loads(text), True)
    except RecursionError:
        raise InvalidValue("it is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        raise InvalidValue(f"it is not JSON: {one_line(error)}") from None


def _large(data: bytes) -> Shown:
    """By its beginning. Kinds of what is shown of it are guesses."""
    start = data[: LARGE_BYTES // 16]
    text = start.decode("utf-8", "replace")
    if _badness(text) > 0.1:
        return Shown("hex", start[:1024].hex(" "))
    return Shown("json" if text.lstrip()[:1] in ("{", "[") else "text", text)


def _by_looks(data: bytes) -> Shown:
    if data.lstrip()[:1] in (b"{", b"[", b'"'):
        try:
            return _json(data)
        except InvalidValue:
            pass
    text = data.decode("utf-8", "replace")
    badness = _badness(text)
    if badness == 0:
        return Shown("text", text)
    number = _number(data)
    if number is not None:
        return number
    return Shown("text", text) if badness <= 0.1 else Shown("hex", data.hex(" "))


def _number(data: bytes) -> Shown | None:
    if len(data) == 4:
        return Shown("integer", str(_LAYOUTS[Format.INTEGER].unpack(data)[0]))
    if len(data) != 8:
        return None
    whole: int = _LAYOUTS[Format.LONG].unpack(data)[0]
    fraction: float = _LAYOUTS[Format.DOUBLE].unpack(data)[0]
    if abs(whole) > 1 << 53 and math.isfinite(fraction) and 1e-9 < abs(fraction) < 1e15:
        return Shown("double", repr(fraction))
    return Shown("long", str(whole))


def _badness(text: str) -> float:
    """How much of it is no text."""
    start = text[:4096]
    bad = sum(
        1 for each in start if each == "\ufffd" or (ord(each) < 32 and each not in "\t\n\r") or each == "\x7f"
    )
    return bad / max(1, len(start))


def commonest(kinds: Iterable[str]) -> str:
    """What the records of a topic look like, mostly: for the head of a column."""
    counts = Counter(kind for kind in kinds if kind not in ("null", "empty", "hidden"))
    return counts.most_common(1)[0][0] if counts else ""


def format_of(text: str) -> Format:
    """UserError for what is none."""
    try:
        return Format(text)
    except ValueError:
        raise UserError(
            f"'{text[:40]}' is no format: there are {', '.join(each.value for each in Format)}"
        ) from None
