"""What was written with one schema, read as another: a program for avro_kernel.py, by Avro's rules of schema resolution.

    writer {id: int, old: string}   reader {id: long, at: long = 0}
    THERE root, LONG id, SKIP_BYTES, CONSTANT 0 … → LONG at, RETURN

Fields are found by name or alias, numbers widened, strings and bytes taken for each other, enums read by their symbols, what
the reader has not is skipped, what the writer has not is the reader's default. As in Java, the names of records are not
compared outside of unions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from penstock.records.columnar import tree_layout as k
from penstock.records.columnar.avro_defaults import default_bytes
from penstock.records.columnar.avro_schema import MISSING, AvroField, AvroType, UnreadableSchema
from penstock.records.columnar.avro_types import branches_of, columns_of
from penstock.records.columnar.tree_columns import Array, Column

MAX_OPERATIONS: Final = 200_000
_PROMOTIONS: Final = {
    ("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double"),
    ("string", "bytes"), ("bytes", "string"),
}  # fmt: skip
_FACTORS: Final = {"timestamp-millis": 1000, "local-timestamp-millis": 1000}


class NotResolvable(ValueError):
    """The reader's schema cannot read what the writer's has written; the message says where and why."""


class Tables(NamedTuple):
    operations: Array
    lists: Array
    constants: Array


class Programs:
    """Those of all writers that one reader meets, one after the other."""

    def __init__(self, reader: AvroType) -> None:
        self.reader: Final = reader
        self.root: Final = columns_of(reader)
        self._operations: list[tuple[int, ...]] = []
        self._lists: list[int] = []
        self._constants = bytearray()
        self._nulls: dict[int, tuple[int, int]] = {}
        self._kept: Tables | None = None
        self.root_nulls: Final = self._nulls_of(self.root)

    def add(self, writer: AvroType) -> int:
        """The entry of the writer's program. NotResolvable, UnreadableSchema."""
        before = len(self._operations), len(self._lists), len(self._constants)
        self._kept = None
        try:
            compiler = _Compiler(self._operations, self._lists, self._constants, self._nulls_of)
            compiler.read(writer, self.reader, self.root, "")
            compiler.emit(k.RETURN)
            compiler.finish()
        except (NotResolvable, UnreadableSchema, RecursionError) as error:
            # A list that a column of nulls was entered in may be gone with it.
            del self._operations[before[0] :], self._lists[before[1] :], self._constants[before[2] :]
            self._nulls = {key: place for key, place in self._nulls.items() if sum(place) <= before[1]}
            if isinstance(error, RecursionError):
                raise UnreadableSchema("the schema is nested too deeply") from None
            raise
        return before[0]

    def tables(self) -> Tables:
        if self._kept is None:
            # One more entry each: numpy's addresses of empty arrays are of nothing.
            operations = np.zeros((len(self._operations) + 1, k.OPERATION_WORDS), dtype=np.uint64)
            for number, one in enumerate(self._operations):
                for place, value in enumerate(one):
                    operations[number, place] = value & 0xFFFF_FFFF_FFFF_FFFF
            self._kept = Tables(
                operations.reshape(-1).view(np.int64),
                np.array([*self._lists, 0], dtype=np.int64),
                np.frombuffer(bytes(self._constants) + b"\0", dtype=np.uint8),
            )
        return self._kept

    def _nulls_of(self, column: Column) -> tuple[int, int]:
        if column.number not in self._nulls:
            numbers = column.filled_with_nulls()
            self._nulls[column.number] = (len(self._lists), len(numbers))
            self._lists += numbers
        return self._nulls[column.number]


class _Compiler:
    def __init__(self, operations, lists, constants, nulls_of) -> None:  # type: ignore[no-untyped-def]
        self._operations: list[tuple[int, ...]] = operations
        self._lists: list[int] = lists
        self._constants: bytearray = constants
        self._nulls_of = nulls_of
        self._skipping: dict[int, int] = {}  # where the routine that skips a record begins; by identity
        self._calls: list[tuple[int, AvroType]] = []  # those whose routine has no place yet
        self._steps = 0

    @property
    def here(self) -> int:
        return len(self._operations)

    def emit(self, *operation: int) -> int:
        if self.here >= MAX_OPERATIONS:
            raise UnreadableSchema("the two schemas together are too large")
        self._operations.append(operation)
        return self.here - 1

    def finish(self) -> None:
        """Adds the routines that are called."""
        while self._calls:
            place, record = self._calls.pop()
            if id(record) not in self._skipping:
                self._skipping[id(record)] = self.here
                for field in record.fields:
                    self.skip(field.type)
                self.emit(k.RETURN)
            self._operations[place] = (k.CALL, self._skipping[id(record)])

    def nulls(self, column: Column) -> None:
        self.emit(k.NULLS, *self._nulls_of(column))

    def read(self, writer: AvroType, reader: AvroType, column: Column, path: str) -> None:
        # Branches that are tried in vain leave no operations, and unions within unions would try without end.
        self._steps += 1
        if self._steps > MAX_OPERATIONS:
            raise UnreadableSchema("the two schemas together are too large")
        if writer.kind == "union":
            self._read_union(writer, reader, column, path)
        elif reader.kind == "union":
            self._read_into_union(writer, reader, column, path)
        elif writer.kind == reader.kind == "record":
            self._read_record(writer, reader, column, path)
        elif writer.kind == reader.kind and writer.kind in ("array", "map"):
            self._read_items(writer, reader, column, path)
        else:
            self._read_scalar(writer, reader, column, path)

    def _read_union(self, writer: AvroType, reader: AvroType, column: Column, path: str) -> None:
        kinds = [each.kind for each in writer.branches]
        if len(kinds) == 2 and "null" in kinds and _takes_null(reader):
            null = kinds.index("null")
            at = self.emit(k.OPTIONAL)
            self._attempt(writer.branches[1 - null], reader, column, path)
            self._operations[at] = (k.OPTIONAL, null, *self._nulls_of(column), self.here)
            return
        first = len(self._lists)
        self._lists += [0] * len(kinds)
        self.emit(k.UNION, first, len(kinds))
        jumps = []
        for number, branch in enumerate(writer.branches):
            self._lists[first + number] = self.here
            self._attempt(branch, reader, column, path)
            jumps.append(self.emit(k.JUMP))
        for jump in jumps:
            self._operations[jump] = (k.JUMP, self.here)

    def _attempt(self, branch: AvroType, reader: AvroType, column: Column, path: str) -> None:
        """A branch that the reader cannot read is broken only where it is used."""
        before, calls = self.here, len(self._calls)
        try:
            self.read(branch, reader, column, path)
        except NotResolvable:
            del self._operations[before:], self._calls[calls:]
            self.emit(k.FAIL, k.NOT_RESOLVED)

    def _read_into_union(self, writer: AvroType, reader: AvroType, column: Column, path: str) -> None:
        if writer.kind == "null" and _takes_null(reader):
            self.nulls(column)
            return
        branches = branches_of(reader)
        if len(branches) == 1:
            self.read(writer, branches[0], column, path)
            return
        chosen = _branch_for(writer, branches)
        if chosen is None:
            raise NotResolvable(f"{path or 'the value'}: the reader's union has no {_shown(writer)}")
        self.emit(k.THERE, column.number)
        for branch, member in zip(branches, column.children, strict=True):
            if branch is chosen:
                self.read(writer, branch, member, path)
            else:
                self.nulls(member)

    def _read_record(self, writer: AvroType, reader: AvroType, column: Column, path: str) -> None:
        self.emit(k.THERE, column.number)
        children = dict(zip((field.name for field in reader.fields), column.children, strict=True))
        found = matched_fields(writer.fields, reader.fields)
        for field in writer.fields:
            wanted = found.get(field.name)
            if wanted is None:
                self.skip(field.type)
            else:
                self.read(field.type, wanted.type, children[wanted.name], f"{path}/{wanted.name}")
        filled = {field.name for field in found.values()}
        for field in reader.fields:
            if field.name not in filled:
                self._default(field, children[field.name], f"{path}/{field.name}")

    def _default(self, field: AvroField, column: Column, path: str) -> None:
        if field.default is MISSING:
            raise NotResolvable(f"{path}: it is not written, and the reader's schema has no default for it")
        if field.default is None and _takes_null(field.type):
            self.nulls(column)
            return
        try:
            constant = default_bytes(field.type, field.default)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise NotResolvable(f"{path}: its default does not fit its type") from None
        start = len(self._constants)
        self._constants += constant
        at = self.emit(k.CONSTANT)
        jump = self.emit(k.JUMP)
        self._operations[at] = (k.CONSTANT, start, len(constant), self.here)
        self.read(field.type, field.type, column, path)
        self.emit(k.RETURN)
        self._operations[jump] = (k.JUMP, self.here)

    def _read_items(self, writer: AvroType, reader: AvroType, column: Column, path: str) -> None:
        smallest = smallest_bytes(writer.element) + (writer.kind == "map")
        opened = self.emit(k.LIST_OPEN)
        body = self.here
        if writer.kind == "map":
            self.emit(k.BYTES, column.children[0].number, 1)
        self.read(writer.element, reader.element, column.children[-1], f"{path}/{writer.kind}")
        self.emit(k.LIST_NEXT, body, smallest)
        self._operations[opened] = (k.LIST_OPEN, self.here, smallest)
        self.emit(k.LIST_CLOSE, column.number, column.children[0].number)

    def _read_scalar(self, writer: AvroType, reader: AvroType, column: Column, path: str) -> None:
        kinds = (writer.kind, reader.kind)
        if writer.kind != reader.kind and kinds not in _PROMOTIONS:
            raise NotResolvable(f"{path or 'the value'}: {_shown(writer)} is not read as {_shown(reader)}")
        number = column.number
        if writer.kind == "enum":
            self._enum(writer, reader, number)
        elif writer.kind == "null":
            self.nulls(column)
        elif column.storage == k.SIXTEEN:
            self._decimal(writer, reader, number, path)
        elif writer.kind == "fixed":
            if writer.size != reader.size:
                raise NotResolvable(
                    f"{path or 'the value'}: a fixed of {writer.size} bytes is not one of {reader.size}"
                )
            self.emit(k.FIXED, number, writer.size)
        elif reader.kind in ("bytes", "string"):
            self.emit(k.BYTES, number, reader.kind == "string")
        elif kinds == ("float", "double"):
            self.emit(k.FLOAT_AS_DOUBLE, number)
        elif reader.kind == "double":
            self.emit(k.DOUBLE if writer.kind == "double" else k.LONG_AS_DOUBLE, number)
        elif reader.kind == "float":
            self.emit(k.FLOAT if writer.kind == "float" else k.LONG_AS_FLOAT, number)
        elif reader.kind == "long":
            self.emit(k.LONG, number, _factor(writer, reader))
        else:
            self.emit(k.INT if reader.kind == "int" else k.BOOLEAN, number)

    def _enum(self, writer: AvroType, reader: AvroType, number: int) -> None:
        """The symbols of the reader; what it has not is its default, or not known."""
        first = len(self._lists)
        for symbol in writer.symbols:
            known = symbol if symbol in reader.symbols else reader.default_symbol
            if known is None:
                self._lists += [-1, 0]
            else:
                text = known.encode()
                self._lists += [len(self._constants), len(text)]
                self._constants += text
        self.emit(k.ENUM, number, first, len(writer.symbols))

    def _decimal(self, writer: AvroType, reader: AvroType, number: int, path: str) -> None:
        if writer.logical == "decimal" and writer.scale != reader.scale:
            raise NotResolvable(
                f"{path or 'the value'}: a decimal with {writer.scale} digits behind the point is not one with {reader.scale}"
            )
        bound = 10**reader.precision
        size = writer.size if writer.kind == "fixed" else -1
        self.emit(k.DECIMAL, number, size, bound >> 64, bound & 0xFFFF_FFFF_FFFF_FFFF)

    def skip(self, writer: AvroType) -> None:
        kind = writer.kind
        if kind in ("int", "long", "enum"):
            self.emit(k.SKIP_VARINT)
        elif kind in ("bytes", "string"):
            self.emit(k.SKIP_BYTES)
        elif kind in ("float", "double", "boolean", "fixed"):
            size = {"float": 4, "double": 8, "boolean": 1}.get(kind, writer.size)
            if size:
                self.emit(k.SKIP, size)
        elif kind == "record":
            if not is_always_empty(writer):
                self._calls.append((self.emit(k.CALL), writer))
        elif kind == "union":
            first = len(self._lists)
            self._lists += [0] * len(writer.branches)
            self.emit(k.UNION, first, len(writer.branches))
            jumps = []
            for number, branch in enumerate(writer.branches):
                self._lists[first + number] = self.here
                self.skip(branch)
                jumps.append(self.emit(k.JUMP))
            for jump in jumps:
                self._operations[jump] = (k.JUMP, self.here)
        elif kind in ("array", "map"):
            smallest = smallest_bytes(writer.element) + (kind == "map")
            opened = self.emit(k.LIST_OPEN)
            body = self.here
            if kind == "map":
                self.emit(k.SKIP_BYTES)
            self.skip(writer.element)
            self.emit(k.LIST_NEXT, body, smallest)
            self._operations[opened] = (k.LIST_OPEN, self.here, smallest)


def matched_fields(writer: Sequence[AvroField], reader: Sequence[AvroField]) -> dict[str, AvroField]:
    """By the writer's name, the reader's field that it is read into."""
    written = {field.name for field in writer}
    found: dict[str, AvroField] = {}
    for field in reader:
        if field.name in written:
            found[field.name] = field
            continue
        for alias in field.aliases:
            if alias in written and alias not in found:
                found[alias] = field
                break
    return found


def _takes_null(reader: AvroType) -> bool:
    return reader.kind == "null" or (
        reader.kind == "union" and any(branch.kind == "null" for branch in reader.branches)
    )


def _branch_for(writer: AvroType, branches: Sequence[AvroType]) -> AvroType | None:
    """The one with the same name or kind, then one that is wider."""
    same = [branch for branch in branches if branch.kind == writer.kind]
    if writer.name:
        named = [branch for branch in same if writer.name in (branch.name, *branch.aliases)]
        named = named or [branch for branch in same if branch.short_name == writer.short_name]
        if named:
            return named[0]
    if same:
        return same[0]
    for branch in branches:
        if (writer.kind, branch.kind) in _PROMOTIONS:
            return branch
    return None


def _factor(writer: AvroType, reader: AvroType) -> int:
    """What the reader's unit is in microseconds, for those that are timestamps there."""
    if "timestamp" not in reader.logical or reader.logical.endswith("nanos"):
        return 1
    meant = writer.logical if writer.logical.endswith(("-millis", "-micros")) else reader.logical
    return _FACTORS.get(meant, 1)


def is_always_empty(schema: AvroType, seen: frozenset[int] = frozenset()) -> bool:
    """Whether its values take no byte at all. Not those of a type that is within itself."""
    if schema.kind == "record":
        if id(schema) in seen:
            return False
        return all(is_always_empty(field.type, seen | {id(schema)}) for field in schema.fields)
    return schema.kind == "null" or (schema.kind == "fixed" and schema.size == 0)


def smallest_bytes(schema: AvroType) -> int:
    """How many bytes a value takes at least."""
    return _smallest(schema, {})


def _smallest(schema: AvroType, known: dict[int, int]) -> int:
    kind = schema.kind
    if kind == "record":
        if id(schema) not in known:
            known[id(schema)] = 0  # within itself: where it is asked for again, it counts nothing
            total = sum(_smallest(field.type, known) for field in schema.fields)
            known[id(schema)] = min(total, 1 << 30)
        return known[id(schema)]
    if kind == "fixed":
        return schema.size
    return {"null": 0, "float": 4, "double": 8}.get(kind, 1)


def _shown(schema: AvroType) -> str:
    return f"{schema.kind} {schema.name}".strip() if schema.name else schema.kind
