"""Records as the bytes of a file. The same records give the same bytes."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import cramjam
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connect.connectors.columns import joined, table_of
from penstock.connect.converters.avro_schemas import AvroForm, to_avro
from penstock.connect.converters.avro_values import avro_writer
from penstock.connect.converters.json import SCHEMAS_ENABLE, JsonConverter
from penstock.connect.data.schema import Schema
from penstock.connect.errors import DataError, InvalidConfig
from penstock.schemas.avro.schema import AvroSchema
from penstock.schemas.model import AVRO
from penstock.schemas.parsing import parse

BLOCK_BYTES: Final = 64 * 1024
Part = tuple[Schema | None, Sequence[Any] | pa.Table]
"""Values of one schema, one after the other, or columns of them."""


class Format(Protocol):
    extension: str

    def encode(self, parts: Sequence[Part]) -> bytes | pa.Buffer:
        """DataError."""


class JsonLines:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self._is_packed = values["s3.compression.type"] == "gzip"
        self.extension = ".json.gz" if self._is_packed else ".json"
        self._converter = JsonConverter()
        self._converter.configure({SCHEMAS_ENABLE: "false", "converter.type": "value"})

    def encode(self, parts: Sequence[Part]) -> bytes:
        convert = self._converter.from_value
        lines = [convert("", schema, value) or b"null" for schema, values in parts for value in values]
        return _packed(b"".join([line + b"\n" for line in lines]), self._is_packed)


class Bytes:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self._is_packed = values["s3.compression.type"] == "gzip"
        self.extension = values["format.bytearray.extension"] + (".gz" if self._is_packed else "")
        separator = values["format.bytearray.separator"]
        self._separator = b"\n" if separator is None else separator.encode().decode("unicode_escape").encode()

    def encode(self, parts: Sequence[Part]) -> bytes:
        values = [value for _, each in parts for value in each]
        for value in values:
            if not isinstance(value, bytes):
                raise DataError(
                    f"ByteArrayFormat takes bytes, not {type(value).__name__}: use the ByteArrayConverter"
                )
        return _packed(b"".join([value + self._separator for value in values]), self._is_packed)


class AvroFile:
    """An object container file: https://avro.apache.org/docs/current/specification/"""

    extension = ".avro"

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._codec: str = values["avro.codec"]
        self._form = AvroForm()

    def encode(self, parts: Sequence[Part]) -> bytes:
        schema = parts[0][0]
        if schema is None:
            raise DataError(
                "AvroFormat needs values with a schema: use a converter that gives one, or JsonFormat"
            )
        own = parse(AVRO, to_avro(schema, self._form))
        assert isinstance(own, AvroSchema)
        write = avro_writer(schema, own, self._form, is_own=True, keeps_null=False)
        meta = {"avro.schema": own.text.encode(), "avro.codec": self._codec.encode()}
        # Where a reader may look for the next block: any 16 bytes, but the same each time.
        mark = hashlib.md5(own.text.encode(), usedforsecurity=False).digest()
        entries = b"".join([_text(name.encode()) + _text(data) for name, data in meta.items()])
        out = [b"Obj\x01", _long(len(meta)), entries, b"\0", mark]
        block: list[bytes] = []
        size = 0
        for _, values in parts:
            for value in values:
                block.append(write(value))
                size += len(block[-1])
                if size >= BLOCK_BYTES:
                    out += self._block(block, mark)
                    block, size = [], 0
        if block:
            out += self._block(block, mark)
        return b"".join(out)

    def _block(self, values: list[bytes], mark: bytes) -> list[bytes]:
        data = b"".join(values)
        if self._codec == "deflate":
            packing = zlib.compressobj(wbits=-15)
            data = packing.compress(data) + packing.flush()
        elif self._codec == "snappy":
            data = bytes(cramjam.snappy.compress_raw(data)) + zlib.crc32(data).to_bytes(4, "big")
        elif self._codec == "bzip2":
            data = bz2.compress(data)
        return [_long(len(values)), _long(len(data)), data, mark]


class Parquet:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self._codec = values["parquet.codec"]
        shown = "gz" if self._codec == "gzip" else self._codec
        self.extension = ".parquet" if shown == "none" else f".{shown}.parquet"

    def encode(self, parts: Sequence[Part]) -> pa.Buffer:
        table = joined([
            values if isinstance(values, pa.Table) else table_of(schema, values) for schema, values in parts
        ])  # fmt: skip
        if not table.column_names:
            raise DataError("a parquet file has one column or more: these records have none")
        sink = pa.BufferOutputStream()
        # Where the parts began must not be seen in the file.
        pq.write_table(table.combine_chunks(), sink, compression=self._codec)
        return sink.getvalue()


_FORMATS: Final[Mapping[str, Any]] = {
    "JsonFormat": JsonLines, "AvroFormat": AvroFile, "ParquetFormat": Parquet, "ByteArrayFormat": Bytes,
}  # fmt: skip


def format_of(values: Mapping[str, Any], name: str = "format.class") -> Format:
    """InvalidConfig."""
    found = _FORMATS.get(str(values[name]).rpartition(".")[2])
    if found is None:
        raise InvalidConfig(f"{name}: there is no {values[name]} ({', '.join(_FORMATS)})")
    made: Format = found(values)
    return made


def _packed(data: bytes, is_packed: bool) -> bytes:
    return gzip.compress(data, mtime=0) if is_packed else data


def _long(number: int) -> bytes:
    out = bytearray()
    left = number << 1
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _text(data: bytes) -> bytes:
    return _long(len(data)) + data


def plain_text(value: Any) -> str | None:
    """Of a header."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return json.dumps(value, default=str)
