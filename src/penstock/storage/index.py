"""The two sparse indexes of a segment, in Kafka's form.

Offset index: 8-byte entries (offset relative to the segment's base, position in the .log file), about one per
index.interval.bytes of log. An entry (o, p) says: the batch that starts at p has the last offset o.
    example: base 100, entries (9, 0) (24, 5000): offset 120 is looked for from byte 0, offset 124 and up from
    byte 5000.
Time index: 12-byte entries (largest timestamp so far, relative last offset of its batch).
    an entry (t, o) says: every record with a timestamp above t has an offset above o.

No checksum is attempted: after a crash the files are rebuilt from the log. New entries gather in memory and
are appended to the file in blocks, at roll, at flush and at close; files are never preallocated. An index
keeps no file open.
"""

import struct
from collections.abc import Iterator

from penstock.runtime.files import Disk, DiskFile
from penstock.runtime.page_cache import NotInMemory

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
OFFSET_ENTRY_SIZE = 8
TIME_ENTRY_SIZE = 12

_PENDING_BYTES = 2048  # gathered before a write; small, since every idle partition may hold as much
_BLOCK_ENTRIES = 256  # a search narrows the file down to as many entries, then reads them at once


class _Index:
    """What both indexes share: fixed-size entries in a file plus a pending tail, ordered by their first
    field.
    """

    __slots__ = ("_disk", "_entry", "_entry_size", "_file_entries", "_path", "_pending", "base_offset")

    def __init__(self, disk: Disk, path: str, base_offset: int, entry: struct.Struct, file_size: int) -> None:
        self._disk = disk
        self._path = path
        self._entry = entry
        self._entry_size = entry.size
        self.base_offset = base_offset
        self._file_entries = file_size // entry.size
        self._pending = bytearray()

    @property
    def path(self) -> str:
        return self._path

    def follow(self, path: str) -> None:
        """The file was renamed."""
        self._path = path

    @property
    def entries_count(self) -> int:
        return self._file_entries + len(self._pending) // self._entry_size

    @property
    def size_bytes(self) -> int:
        return self.entries_count * self._entry_size

    def write(self) -> bool:
        """Hands the pending entries to the file system (not to the device: see Flush); False when there are none."""
        wrote = bool(self._pending)
        if wrote:
            file = self._disk.open(self._path, create=True)
            try:
                file.append(self._pending)
            finally:
                file.close()
            self._file_entries += len(self._pending) // self._entry_size
            self._pending = bytearray()
        return wrote

    def _write_block(self) -> None:
        """As `write`, but a failure only means that the entries wait for the next one.

        They are added when their batch is already in the log, which must not fail any more; an index can be
        rebuilt.
        """
        try:
            self.write()
        except OSError:
            pass

    def load(self) -> None:
        """Into memory, all of it."""
        if self._file_entries:
            self._disk.read(self._path)

    def reset(self) -> None:
        """No entries, and an empty file."""
        self._pending = bytearray()
        self._file_entries = 0
        self._disk.write(self._path, b"")

    def entry(self, number: int) -> tuple[int, int]:
        """The entry at 0 … entries_count - 1."""
        in_pending = number - self._file_entries
        if in_pending >= 0:
            first, second = self._entry.unpack_from(self._pending, in_pending * self._entry_size)
        else:
            first, second = self._entry.unpack(self._read_block(number, 1))
        return first, second

    def entries(self) -> Iterator[tuple[int, int]]:
        data = self._read_block(0, self._file_entries) if self._file_entries else b""
        yield from self._entry.iter_unpack(data)
        yield from self._entry.iter_unpack(bytes(self._pending))

    def keep(self, count: int) -> None:
        """Drops all entries after the first `count`."""
        if count >= self._file_entries:
            del self._pending[(count - self._file_entries) * self._entry_size :]
            return
        self._pending = bytearray()
        file = self._disk.open(self._path, create=True)
        try:
            file.truncate(count * self._entry_size)
        finally:
            file.close()
        self._file_entries = count

    def _floor(self, target: int) -> tuple[int, int] | None:
        """The last entry whose first field is not above target."""
        pending = self._pending
        if pending and self._entry.unpack_from(pending, 0)[0] <= target:
            return self._floor_in(pending, target)
        if self._file_entries == 0:
            return None
        return self._floor_in_file(target)

    def _floor_in_file(self, target: int) -> tuple[int, int] | None:
        file = self._disk.open(self._path)
        entry = self._entry
        size = self._entry_size
        low, high = 0, self._file_entries
        while high - low > _BLOCK_ENTRIES:
            middle = (low + high) // 2
            if entry.unpack(_read(file, middle * size, size))[0] <= target:
                low = middle
            else:
                high = middle
        return self._floor_in(_read(file, low * size, (high - low) * size), target)

    def _floor_in(self, block: bytes | bytearray, target: int) -> tuple[int, int] | None:
        unpack = self._entry.unpack_from
        size = self._entry_size
        low, high = 0, len(block) // size
        last: tuple[int, int] = unpack(block, (high - 1) * size)
        if last[0] <= target:  # readers are mostly at the end
            return last
        while low < high:
            middle = (low + high) // 2
            if unpack(block, middle * size)[0] <= target:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return None
        found: tuple[int, int] = unpack(block, (low - 1) * size)
        return found

    def _read_block(self, first: int, count: int) -> bytes:
        return _read(self._disk.open(self._path), first * self._entry_size, count * self._entry_size)


class OffsetIndex(_Index):
    __slots__ = ()

    def __init__(self, disk: Disk, path: str, base_offset: int, file_size: int = 0) -> None:
        super().__init__(disk, path, base_offset, OFFSET_ENTRY, file_size)

    def append(self, offset: int, position: int) -> None:
        self._pending += OFFSET_ENTRY.pack(offset - self.base_offset, position)
        if len(self._pending) >= _PENDING_BYTES:
            self._write_block()

    def lookup(self, offset: int) -> int:
        """Where to start looking for the batch that contains an offset: the position of a batch at or before
        it.
        """
        found = self._floor(offset - self.base_offset)
        return found[1] if found is not None else 0

    def offset_from(self, position: int) -> int | None:
        """The last offset of the first indexed batch that begins at or behind a position; None when there is none."""
        low, high = 0, self.entries_count
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle)[1] < position:
                low = middle + 1
            else:
                high = middle
        return self.base_offset + self.entry(low)[0] if low < self.entries_count else None

    def last_position(self) -> int:
        """The position of the last indexed batch, 0 when there is none."""
        count = self.entries_count
        return self.entry(count - 1)[1] if count else 0

    def is_full(self, max_bytes: int) -> bool:
        return self.entries_count >= max_bytes // OFFSET_ENTRY_SIZE

    def truncate_to(self, offset: int) -> None:
        """Keeps only entries of batches that end below an offset."""
        self.keep(_count_below(self, offset - self.base_offset, field=0))


class TimeIndex(_Index):
    __slots__ = ("last_timestamp",)

    def __init__(self, disk: Disk, path: str, base_offset: int, file_size: int = 0) -> None:
        super().__init__(disk, path, base_offset, TIME_ENTRY, file_size)
        # None: not read from the file yet
        self.last_timestamp: int | None = -1 if self._file_entries == 0 else None

    def append_if_later(self, timestamp: int, offset: int) -> None:
        last = self.last_timestamp
        if last is None:
            last = self.last_entry()[0]
        if timestamp > last:
            self._pending += TIME_ENTRY.pack(timestamp, offset - self.base_offset)
            self.last_timestamp = timestamp
            if len(self._pending) >= _PENDING_BYTES:
                self._write_block()

    def lookup(self, timestamp: int) -> int:
        """An offset at or below which no record has a larger timestamp than asked; the base offset when
        unknown.
        """
        found = self._floor(timestamp)
        return self.base_offset + (found[1] if found is not None else 0)

    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset); (-1, base offset) when empty."""
        count = self.entries_count
        if count == 0:
            self.last_timestamp = -1
            return -1, self.base_offset
        timestamp, relative_offset = self.entry(count - 1)
        self.last_timestamp = timestamp
        return timestamp, self.base_offset + relative_offset

    def is_full(self, max_bytes: int) -> bool:
        return (
            self.entries_count >= max_bytes // TIME_ENTRY_SIZE - 1
        )  # one is kept for the entry written at roll

    def reset(self) -> None:
        super().reset()
        self.last_timestamp = -1

    def truncate_to(self, offset: int) -> None:
        self.keep(_count_below(self, offset - self.base_offset, field=1))
        self.last_timestamp = None


def _read(file: DiskFile, position: int, size: int) -> bytes:
    """Of a cold index all is asked for: a search goes from page to page. The last reference closes the file."""
    try:
        return file.read_at(position, size)
    except NotInMemory:
        raise NotInMemory(file, 0, file.size) from None


def _count_below(index: _Index, relative_offset: int, *, field: int) -> int:
    low, high = 0, index.entries_count
    while low < high:
        middle = (low + high) // 2
        if index.entry(middle)[field] < relative_offset:
            low = middle + 1
        else:
            high = middle
    return low
