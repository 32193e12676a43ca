"""The compiled walks against the same thing in Python, record by record."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.records.batch import read_header
from penstock.records.build import build_batch
from penstock.records.columnar.crc_kernel import _crc_by_table, crc_kernel
from penstock.records.crc import crc32c
from penstock.records.walk import iterate_records
from penstock.storage.compaction import filter_kernels, layout, map_kernels
from penstock.storage.compaction.key_kernels import key_hash
from penstock.storage.compaction.key_map import KeyMap

texts = st.one_of(st.none(), st.binary(max_size=40))
new_records = st.tuples(
    texts,
    texts,
    st.lists(st.tuples(st.text(max_size=5), texts), max_size=2),
    st.integers(min_value=0, max_value=2**41),
)


def as_array(data: bytes | bytearray) -> layout.Bytes:
    return np.frombuffer(bytes(data), dtype=np.uint8)


def new_map(**options: int) -> KeyMap:
    return KeyMap(max_bytes=options.get("max_bytes", 1 << 20), load_factor=0.9)


@given(st.binary(max_size=200))
def test_both_crc_walks_agree_with_the_crc_library(data: bytes) -> None:
    array = as_array(data)
    address = array.ctypes.data
    assert _crc_by_table(address, 0, len(data)) == crc_kernel(address, 0, len(data)) == crc32c(data)


@given(st.lists(new_records, min_size=1, max_size=20), st.integers(min_value=0, max_value=2**40))
def test_parsing_finds_what_the_python_walk_finds(records: list[tuple], base_offset: int) -> None:  # type: ignore[type-arg]
    batch = build_batch(records, base_offset=base_offset)
    header = read_header(batch)
    scratch = np.zeros((layout.SCRATCH_ROWS, 20), dtype=np.int64)
    keys = new_map()
    count = header.records_count
    found = map_kernels.parse_records(
        as_array(batch), 61, count, header.base_offset, header.base_timestamp, keys.secret, scratch
    )
    assert found
    for number, record in enumerate(iterate_records(batch, header)):
        flags = int(scratch[layout.FLAGS, number])
        assert scratch[layout.OFFSET, number] == record.offset
        assert scratch[layout.TIMESTAMP, number] == record.timestamp
        assert bool(flags & layout.HAS_KEY) == (record.key is not None)
        assert bool(flags & layout.HAS_VALUE) == (record.value is not None)
    assert scratch[layout.END, count - 1] == len(batch)


@given(st.binary(max_size=120), st.integers(min_value=1, max_value=8))
def test_parsing_of_nonsense_ends_without_reading_past_the_end(data: bytes, count: int) -> None:
    scratch = np.zeros((layout.SCRATCH_ROWS, 8), dtype=np.int64)
    map_kernels.parse_records(as_array(data), 0, count, 0, 0, new_map().secret, scratch)


@given(st.lists(st.binary(max_size=12), min_size=1, max_size=200))
def test_the_map_holds_the_last_offset_of_each_key_through_all_its_growth(keys: list[bytes]) -> None:
    held = new_map()
    held._allocate(2)
    scratch = np.zeros((layout.SCRATCH_ROWS, 1), dtype=np.int64)
    state = np.zeros(layout.STATE_WORDS, dtype=np.int64)

    def parse(key: bytes, offset: int) -> None:
        batch = as_array(build_batch([(key, b"", (), 0)]))
        assert map_kernels.parse_records(batch, 61, 1, offset, 0, held.secret, scratch)

    for offset, key in enumerate(keys):
        parse(key, offset)
        while map_kernels.map_parsed(scratch, 1, 0, held.table, held.max_entries, state) == layout.MAP_FULL:
            assert held.grow()
    last = {key: offset for offset, key in enumerate(keys)}
    assert state[layout.ENTRIES] == len(last)
    for offset, key in enumerate(keys):
        parse(key, offset)
        kept = filter_kernels.choose_parsed(scratch, 1, held.table, len(keys), -1, 0, state)
        assert kept == (offset == last[key])


def test_a_map_does_not_grow_past_its_bound() -> None:
    held = new_map(max_bytes=24 * 10_000)
    assert held.grow()
    assert held.slots == 10_000
    assert not held.grow()
    assert held.max_entries == 9_000


def test_two_maps_hash_by_different_secrets() -> None:
    assert (new_map().secret != new_map().secret).any()


@pytest.mark.parametrize("length", range(25))
def test_the_hash_depends_on_every_byte_and_on_the_length(length: int) -> None:
    secret = np.array([1, 2], dtype=np.uint64)
    seen = set()
    variants = [bytes(length), bytes(length + 1)]
    variants += [bytes(at) + b"\x01" + bytes(length - at - 1) for at in range(length)]
    for key in variants:
        seen.add(key_hash(as_array(key), 0, len(key), secret[0], secret[1]))
    assert len(seen) == length + 2
