"""A tree of columns that grow while compiled code appends to them, and the Arrow array that it becomes without another copy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.records.columnar import tree_layout as k

Array = np.ndarray[Any, np.dtype[Any]]

MAX_COLUMNS: Final = 10_000
_LEAST_ENTRIES: Final = 64
_LEAST_BYTES: Final = 256
_WIDTHS: Final = {k.BYTE: 1, k.FOUR: 4, k.EIGHT: 8, k.SIXTEEN: 16, k.VARIABLE: 4, k.LIST: 4}


@dataclass(eq=False, slots=True)
class Column:
    """Numbered so that a column comes after the one that it is in."""

    number: int
    storage: int
    type: pa.DataType
    parent: int = -1
    children: list[Column] = field(default_factory=list)

    def filled_with_nulls(self) -> list[int]:
        """Which columns get an entry when this one is null: all within, but for what lists have."""
        found = [self.number]
        if self.storage == k.STRUCT:
            for child in self.children:
                found += child.filled_with_nulls()
        return found

    def within(self) -> list[Column]:
        return [self, *(each for child in self.children for each in child.within())]


class Growing:
    """The memory of a tree's columns, and the table of it for compiled code."""

    def __init__(self, root: Column, rows: int, data_bytes: int) -> None:
        self._root = root
        self._columns = root.within()
        assert [each.number for each in self._columns] == list(range(len(self._columns)))
        self.table: Final = np.zeros((len(self._columns), k.COLUMN_WORDS), dtype=np.int64)
        self._validity: list[Array] = []
        self._values: list[Array] = []
        self._data: list[Array] = []
        share = data_bytes // max(1, sum(each.storage == k.VARIABLE for each in self._columns))
        for each in self._columns:
            entries = max(rows, _LEAST_ENTRIES)
            width = _WIDTHS.get(each.storage, 0)
            self._validity.append(np.empty(entries, dtype=np.uint8))
            self._values.append(np.empty((entries + 1) * width, dtype=np.uint8))
            self._values[-1][:width] = 0  # where the first entry begins
            room = max(share, _LEAST_BYTES) if each.storage == k.VARIABLE else 0
            self._data.append(np.empty(room, dtype=np.uint8))
            self.table[each.number, k.CAPACITY] = entries
            self.table[each.number, k.SHAPE] = (each.parent << 8) | each.storage
            self._tell(each.number)

    def _tell(self, number: int) -> None:
        row = self.table[number]
        row[k.VALIDITY] = self._validity[number].ctypes.data
        row[k.VALUES] = self._values[number].ctypes.data
        row[k.DATA] = self._data[number].ctypes.data
        row[k.DATA_CAPACITY] = len(self._data[number])

    def grow(self, number: int, needed: int) -> bool:
        """Twice the room for a column, or for `needed` bytes of data; False where it has as much as it may."""
        row = self.table[number]
        used, count, capacity = int(row[k.USED]), int(row[k.COUNT]), int(row[k.CAPACITY])
        data = self._data[number]
        is_data = self._columns[number].storage == k.VARIABLE and needed > len(data)
        if max(len(data), needed) > k.LARGEST_DATA or capacity * 16 > k.LARGEST_DATA:
            return False
        if is_data:
            self._data[number] = _enlarged(data, max(2 * len(data), needed), used)
        else:
            width = _WIDTHS.get(self._columns[number].storage, 0)
            self._validity[number] = _enlarged(self._validity[number], 2 * capacity, count)
            values = (2 * capacity + 1) * width
            self._values[number] = _enlarged(self._values[number], values, (count + 1) * width)
            row[k.CAPACITY] = 2 * capacity
        self._tell(number)
        return True

    def array(self) -> pa.Array:
        return self._array(self._root)

    def _array(self, column: Column) -> pa.Array:
        number, kind = column.number, column.type
        count = int(self.table[number, k.COUNT])
        if column.storage == k.NOTHING:
            return pa.nulls(count)
        validity, nulls = _validity(self._validity[number][:count])
        values = self._values[number]
        if column.storage == k.BYTE:
            bits = pa.py_buffer(np.packbits(values[:count], bitorder="little"))
            return pa.Array.from_buffers(kind, count, [validity, bits], nulls)
        if column.storage == k.STRUCT:
            children = [self._array(child) for child in column.children]
            return pa.Array.from_buffers(kind, count, [validity], nulls, children=children)
        width = _WIDTHS[column.storage]
        if column.storage == k.VARIABLE:
            ends = pa.py_buffer(values[: (count + 1) * 4])
            used = int(self.table[number, k.USED])
            data = pa.py_buffer(self._data[number][:used])
            return pa.Array.from_buffers(kind, count, [validity, ends, data], nulls)
        if column.storage == k.LIST:
            ends = pa.py_buffer(values[: (count + 1) * 4])
            items = self._items(column)
            return pa.Array.from_buffers(kind, count, [validity, ends], nulls, children=[items])
        return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(values[: count * width])], nulls)

    def _items(self, column: Column) -> pa.Array:
        found = [self._array(child) for child in column.children]
        if not pa.types.is_map(column.type):
            return found[0]
        return pa.StructArray.from_arrays(found, fields=[column.type.key_field, column.type.item_field])


def _validity(flags: Array) -> tuple[pa.Buffer | None, int]:
    nulls = len(flags) - int(np.count_nonzero(flags))
    return (pa.py_buffer(np.packbits(flags, bitorder="little")), nulls) if nulls else (None, 0)


def _enlarged(array: Array, size: int, used: int) -> Array:
    larger = np.empty(size, dtype=array.dtype)
    larger[:used] = array[:used]
    return larger
