"""An Arrow column → values in Avro, each behind its frame, without a Python object for any of them.

    writer = AvroWriter(parse_avro(text), column.type, frame=b"\\0\\0\\0\\0\\7")
    values = writer.write(column)

Fields are found by their names. A field that the column has not is written as its default, or null.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.records.columnar import avro_encode_kernel as k
from penstock.records.columnar.avro_defaults import default_bytes, varint
from penstock.records.columnar.avro_schema import MISSING, AvroField, AvroType

_REASONS: Final = {
    k.MISSING_VALUE: "a field is null that the schema requires",
    k.WRONG_SIZE: "bytes or a decimal do not have the size that the schema says",
    k.NO_SYMBOL: "an enum has no such symbol",
    k.TOO_LARGE: "the values of one batch are larger than 2 GiB",
}
_INTS: Final = (pa.int8(), pa.int16(), pa.int32())
_LEAST_BYTES: Final = 1 << 16
MAX_DEPTH: Final = 64
MAX_STEPS: Final = 100_000


class NotWritable(ValueError):
    """The column does not fit the schema; the message says where and why."""


class _TooLarge(ValueError):
    """No other branch of a union will go better."""


class BadRow(ValueError):
    def __init__(self, row: int, why: str) -> None:
        super().__init__(f"row {row}: {why}")
        self.row = row
        self.why = why


class _Leaf(NamedTuple):
    """How to get from the column to a source: steps into it, and what its values have to become."""

    steps: tuple[int, ...]
    kind: pa.DataType | None
    symbols: tuple[str, ...] = ()


_ITEMS, _KEYS, _VALUES = -1, -2, -3


class AvroWriter:
    """Of one schema and one type of columns. NotWritable where these do not fit."""

    def __init__(self, schema: AvroType, kind: pa.DataType, *, frame: bytes = b"") -> None:
        self.type: Final = kind
        self._frame = np.frombuffer(frame + b"\0", dtype=np.uint8)[: len(frame)]
        self._operations: list[tuple[int, ...]] = []
        self._constants = bytearray()
        self._leaves: list[_Leaf] = []
        self._open: list[AvroType] = []
        self._steps = 0
        self._write(schema, kind, (), "")
        self._emit(k.RETURN)
        table = np.zeros((len(self._operations), k.OPERATION_WORDS), dtype=np.int64)
        for number, one in enumerate(self._operations):
            table[number, : len(one)] = one
        self._program = table.reshape(-1)
        self._constant = np.frombuffer(bytes(self._constants) + b"\0", dtype=np.uint8)
        self._bytes_per_row = 32

    def write(self, column: pa.Array) -> pa.BinaryArray:
        """Null for a null row. BadRow."""
        if column.null_count:
            there = pc.is_valid(column)
            try:
                written = self.write(column.filter(there))
            except BadRow as error:
                row = np.flatnonzero(there.to_numpy(zero_copy_only=False))[error.row]
                raise BadRow(int(row), error.why) from None
            places = pc.if_else(there, pc.subtract(pc.cumulative_sum(there.cast(pa.int32())), 1), None)
            return written.take(places)
        rows = len(column)
        kept: list[pa.Array] = []
        sources = np.zeros(max(1, len(self._leaves)) * k.SOURCE_WORDS, dtype=np.int64)
        for number, leaf in enumerate(self._leaves):
            array = _followed(column, leaf)
            kept.append(array)  # its memory must last as long as the call
            sources[number * k.SOURCE_WORDS : (number + 1) * k.SOURCE_WORDS] = _addresses(array)
        state, stack = np.zeros(k.STATE_WORDS, dtype=np.int64), np.zeros(k.STACK_WORDS, dtype=np.int64)
        data = np.empty(max(_LEAST_BYTES, rows * self._bytes_per_row), dtype=np.uint8)
        ends = np.zeros(rows + 1, dtype=np.int32)
        while True:
            status = k.encode_rows(
                self._program, self._constant, sources, self._frame, stack, state, data, ends, 0
            )
            if status == k.DONE:
                break
            row = int(state[k.NEXT_ROW])
            if status == k.FAILED:
                raise BadRow(row, _REASONS[int(state[k.REASON])])
            used = int(ends[row])
            larger = np.empty(max(2 * len(data), used + int(state[k.NEEDED])), dtype=np.uint8)
            larger[:used] = data[:used]
            data = larger
        del kept
        used = int(ends[rows])
        if rows:
            self._bytes_per_row = used // rows + used // rows // 8 + 32
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(data[:used])]
        return pa.Array.from_buffers(pa.binary(), rows, buffers, 0)

    def _emit(self, *operation: int) -> int:
        self._operations.append(operation)
        return len(self._operations) - 1

    @property
    def _here(self) -> int:
        return len(self._operations)

    def _leaf(self, steps: tuple[int, ...], kind: pa.DataType | None, symbols: tuple[str, ...] = ()) -> int:
        self._leaves.append(_Leaf(steps, kind, symbols))
        return len(self._leaves) - 1

    def _constant_of(self, data: bytes) -> None:
        self._emit(k.CONSTANT, len(self._constants), len(data))
        self._constants += data

    def _write(self, schema: AvroType, kind: pa.DataType, steps: tuple[int, ...], path: str) -> None:
        """What is at `steps`, null or not."""
        self._steps += 1
        if len(self._open) > MAX_DEPTH or self._steps > MAX_STEPS:
            raise _TooLarge(f"{path}: the schema is too large, or nested too deeply")
        self._open.append(schema)
        if schema.kind == "union":
            self._union(schema, kind, steps, path)
        elif schema.kind == "null":
            if kind != pa.null():
                raise NotWritable(f"{path or 'the column'}: {kind} is not written as null")
        else:
            at = self._emit(k.WHEN)
            self._value(schema, kind, steps, path)
            jump = self._emit(k.JUMP, self._here + 2)
            self._operations[at] = (k.WHEN, self._leaf(steps, None), -1, self._here)
            self._emit(k.FAIL, k.MISSING_VALUE)
            assert self._operations[jump][1] == self._here
        self._open.pop()

    def _union(self, schema: AvroType, kind: pa.DataType, steps: tuple[int, ...], path: str) -> None:
        null = next((n for n, branch in enumerate(schema.branches) if branch.kind == "null"), None)
        others = [number for number, branch in enumerate(schema.branches) if branch.kind != "null"]
        jumps = []
        if pa.types.is_struct(kind) and [each.name for each in kind] == [
            f"member{n}" for n in range(len(others))
        ]:
            for member, number in enumerate(others):
                own = kind.field(member).type
                jumps.append(self._branch(number, schema.branches[number], own, (*steps, member), path))
        elif kind != pa.null():
            jumps.append(self._first_branch(schema, others, kind, steps, path))
        if null is None:
            self._emit(k.FAIL, k.MISSING_VALUE)
        else:
            self._constant_of(varint(null))
        for jump in jumps:
            self._operations[jump] = (k.JUMP, self._here)

    def _branch(
        self, number: int, branch: AvroType, kind: pa.DataType, steps: tuple[int, ...], path: str
    ) -> int:
        """Where it jumps behind the union, which has no place yet."""
        at = self._emit(k.WHEN)
        self._value(branch, kind, steps, path)
        jump = self._emit(k.JUMP)
        self._operations[at] = (k.WHEN, self._leaf(steps, None), number, self._here)
        return jump

    def _first_branch(
        self, schema: AvroType, others: list[int], kind: pa.DataType, steps: tuple[int, ...], path: str
    ) -> int:
        """That takes the column."""
        failure: NotWritable | None = None
        for number in others:
            before = len(self._operations), len(self._leaves), len(self._constants)
            try:
                return self._branch(number, schema.branches[number], kind, steps, path)
            except NotWritable as error:
                failure = failure or error
                del self._operations[before[0] :], self._leaves[before[1] :], self._constants[before[2] :]
        if failure is not None and len(others) == 1:
            raise failure
        raise NotWritable(f"{path or 'the column'}: no branch of the union takes {kind}")

    def _value(self, schema: AvroType, kind: pa.DataType, steps: tuple[int, ...], path: str) -> None:
        """What is at `steps` and there."""
        if schema.kind == "record" and pa.types.is_struct(kind):
            self._record(schema, kind, steps, path)
        elif schema.kind == "array" and pa.types.is_list(kind):
            at = self._emit(k.LIST_OPEN)
            body = self._here
            self._write(schema.element, kind.value_type, (*steps, _ITEMS), f"{path}/array")
            self._emit(k.LIST_NEXT, body)
            self._operations[at] = (k.LIST_OPEN, self._leaf(steps, None), self._here)
        elif schema.kind == "map" and pa.types.is_map(kind):
            at = self._emit(k.LIST_OPEN)
            body = self._here
            self._write(AvroType("string"), kind.key_type, (*steps, _KEYS), f"{path}/map")
            self._write(schema.element, kind.item_type, (*steps, _VALUES), f"{path}/map")
            self._emit(k.LIST_NEXT, body)
            self._operations[at] = (k.LIST_OPEN, self._leaf(steps, None), self._here)
        else:
            self._scalar(schema, kind, steps, path)

    def _record(self, schema: AvroType, kind: pa.DataType, steps: tuple[int, ...], path: str) -> None:
        numbers = {field.name: number for number, field in enumerate(kind)}
        for field in schema.fields:
            number = numbers.pop(field.name, None)
            if number is None:
                self._missing(field, f"{path}/{field.name}")
            else:
                self._write(field.type, kind.field(number).type, (*steps, number), f"{path}/{field.name}")
        if numbers:
            raise NotWritable(f"{path}/{next(iter(numbers))}: the schema has no such field")

    def _missing(self, field: AvroField, path: str) -> None:
        branches = field.type.branches if field.type.kind == "union" else ()
        null = next((n for n, branch in enumerate(branches) if branch.kind == "null"), None)
        if field.default is not MISSING:
            try:
                self._constant_of(default_bytes(field.type, field.default))
                return
            except (ValueError, TypeError, KeyError, AttributeError):
                raise NotWritable(f"{path}: its default does not fit its type") from None
        if null is not None:
            self._constant_of(varint(null))
        elif field.type.kind != "null":
            raise NotWritable(f"{path}: the column has no such field, and the schema has no default for it")

    def _scalar(self, schema: AvroType, kind: pa.DataType, steps: tuple[int, ...], path: str) -> None:
        operation = _operation(schema, kind)
        if operation is None:
            shown = f"{schema.kind} ({schema.logical})" if schema.logical else schema.kind
            raise NotWritable(f"{path or 'the column'}: {kind} is not written as {shown}")
        code, needed, more = operation
        symbols = schema.symbols if schema.kind == "enum" else ()
        self._emit(code, self._leaf(steps, needed, symbols), more)


def _operation(schema: AvroType, kind: pa.DataType) -> tuple[int, pa.DataType | None, int] | None:
    """(operation, the type that its source needs or None for what it has, its second number)"""
    is_int, is_text = kind in _INTS, pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    match schema.kind:
        case "boolean" if kind == pa.bool_():
            return k.BOOLEAN, None, 0
        case "int" if is_int:
            return k.INT, pa.int32(), 0
        case "int" if schema.logical == "date" and kind == pa.date32():
            return k.INT, None, 0
        case "long" if pa.types.is_timestamp(kind) and "timestamp" in schema.logical:
            return _timestamp(schema, kind)
        case "long" if is_int or kind == pa.int64():
            return k.LONG, pa.int64(), 1
        case "float" if kind == pa.float32():
            return k.FOUR, None, 0
        case "double" if kind in (pa.float32(), pa.float64()):
            return k.EIGHT, pa.float64(), 0
        case "bytes" | "fixed" if schema.logical == "decimal" and pa.types.is_decimal(kind):
            if kind.scale > schema.scale or kind.precision - kind.scale > schema.precision - schema.scale:
                return None
            size = schema.size if schema.kind == "fixed" else -1
            return k.SIXTEEN, pa.decimal128(schema.precision, schema.scale), size
        case "bytes" if is_text or is_bytes:
            return k.BYTES, pa.binary(), 0
        case "fixed" if is_bytes:
            return k.FIXED, pa.binary(), schema.size
        case "string" if is_text:
            return k.BYTES, pa.string(), 0
        case "enum" if is_text:
            return k.SYMBOL, pa.string(), 0
    return None


def _timestamp(schema: AvroType, kind: pa.TimestampType) -> tuple[int, pa.DataType, int] | None:
    is_local = schema.logical.startswith("local-")
    if is_local == (kind.tz is not None):
        return None
    if schema.logical.endswith("nanos"):
        return k.LONG, pa.timestamp("ns", tz=kind.tz), 1
    return k.LONG, pa.timestamp("us", tz=kind.tz), 1000 if schema.logical.endswith("millis") else 1


def _followed(column: pa.Array, leaf: _Leaf) -> pa.Array:
    for step in leaf.steps:
        if step == _ITEMS:
            column = column.values
        elif step == _KEYS:
            column = column.keys
        elif step == _VALUES:
            column = column.items
        else:
            column = column.field(step)
    if leaf.kind is not None and column.type != leaf.kind:
        try:
            column = column.cast(leaf.kind)
        except pa.ArrowInvalid as error:
            raise NotWritable(f"{column.type} is not written as {leaf.kind}: {error}") from None
    if leaf.symbols:
        numbers = pc.index_in(column, pa.array(leaf.symbols, column.type))
        return numbers.cast(pa.int32()).fill_null(-1)
    return column


def _addresses(array: pa.Array) -> tuple[int, int, int, int]:
    buffers = array.buffers()
    own = [0 if buffer is None else buffer.address for buffer in buffers[:3]] + [0, 0]
    return own[k.VALIDITY] if array.null_count else 0, array.offset, own[1], own[2]


Schema = Any
_NAMES: Final = {
    pa.bool_(): "boolean", pa.int8(): "int", pa.int16(): "int", pa.int32(): "int", pa.int64(): "long",
    pa.float32(): "float", pa.float64(): "double", pa.string(): "string", pa.large_string(): "string",
    pa.binary(): "bytes", pa.large_binary(): "bytes", pa.null(): "null",
}  # fmt: skip


def avro_of(kind: pa.DataType, name: str, namespace: str = "") -> Schema:
    """A schema for a column, as JSON: everything within it may be null, and is null by default. NotWritable."""
    if kind in _NAMES:
        return _NAMES[kind]
    if kind == pa.date32():
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-micros"}
    if pa.types.is_decimal128(kind):
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(avro_of(kind.value_type, name, namespace))}
    if pa.types.is_map(kind) and kind.key_type in (pa.string(), pa.large_string()):
        return {"type": "map", "values": _nullable(avro_of(kind.item_type, name, namespace))}
    if not pa.types.is_struct(kind):
        raise NotWritable(f"Avro has no type for {kind}")
    full = f"{namespace}.{name}" if namespace else name
    fields = []
    for field in kind:
        if not (field.name.isidentifier() and field.name.isascii()):
            raise NotWritable(f"'{field.name}' is no name in Avro: letters, digits and '_'")
        own = avro_of(field.type, field.name, full)
        if own == "null":
            fields.append({"name": field.name, "type": "null", "default": None})
        elif field.nullable:
            fields.append({"name": field.name, "type": ["null", own], "default": None})
        else:
            fields.append({"name": field.name, "type": own})
    return {
        "type": "record",
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "fields": fields,
    }


def _nullable(schema: Schema) -> Schema:
    return schema if schema == "null" else ["null", schema]
