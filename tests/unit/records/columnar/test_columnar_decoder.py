"""What the decoder promises beyond equal rows: transactions, sizes, choice of columns, where to go on."""

import hashlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

from penstock.records.batch import InvalidRecord
from penstock.records.build import NewRecord, build_batch, sign
from penstock.records.columnar import kernels, transaction_kernels
from penstock.records.columnar.crc_kernel import _crc_by_instruction, _crc_by_table
from penstock.records.columnar.decode import Decoder
from penstock.records.crc import crc32c
from penstock.records.marker import build_marker

Aborted = list[tuple[int, int]] | None


def records(*values: str) -> list[NewRecord]:
    return [(None, value.encode(), (), 1000) for value in values]


def transactional(offset: int, producer_id: int, *values: str, codec: int = 0) -> bytes:
    return bytes(
        build_batch(
            records(*values), base_offset=offset, producer_id=producer_id, producer_epoch=0, base_sequence=0,
            transactional=True, codec=codec,
        )
    )  # fmt: skip


def marker(offset: int, producer_id: int, *, committed: bool) -> bytes:
    batch = build_marker(
        producer_id=producer_id, producer_epoch=0, committed=committed, coordinator_epoch=0, timestamp_ms=1000
    )
    batch[0:8] = offset.to_bytes(8, "big")
    return bytes(batch)


def values(buffer: bytes, aborted: Aborted = None, *, start_offset: int = 0) -> list[str]:
    decoder = Decoder("orders", ["value"])
    made = [*decoder.decode(buffer, partition=0, start_offset=start_offset, aborted=aborted), decoder.flush()]
    return [
        value.decode() for batch in made if batch is not None for value in batch.column("value").to_pylist()
    ]


def test_control_batches_leave_no_row() -> None:
    buffer = transactional(0, 5, "a") + marker(1, 5, committed=True) + transactional(2, 5, "b")
    assert values(buffer) == ["a", "b"]


def test_an_aborted_transaction_is_skipped_until_its_marker() -> None:
    buffer = (
        transactional(0, 5, "gone")
        + transactional(1, 6, "kept")
        + transactional(2, 5, "gone too", codec=4)
        + marker(3, 5, committed=False)
        + transactional(4, 5, "next")
        + marker(5, 5, committed=True)
        + marker(6, 6, committed=True)
    )
    assert values(buffer, [(5, 0)]) == ["kept", "next"]
    assert values(buffer, []) == ["gone", "kept", "gone too", "next"]
    assert values(buffer, None) == ["gone", "kept", "gone too", "next"]


def test_two_aborted_transactions_of_one_producer_are_both_skipped() -> None:
    buffer = (
        transactional(0, 5, "x")
        + marker(1, 5, committed=False)
        + transactional(2, 5, "a")
        + marker(3, 5, committed=True)
        + transactional(4, 5, "y")
        + marker(5, 5, committed=False)
        + bytes(build_batch(records("z"), base_offset=6, producer_id=5, producer_epoch=0, base_sequence=9))
    )
    assert values(buffer, [(5, 4), (5, 0)]) == ["a", "z"]


def test_a_batch_without_transaction_of_an_aborted_producer_stays() -> None:
    plain = bytes(build_batch(records("a"), base_offset=0, producer_id=5, producer_epoch=0, base_sequence=0))
    assert values(plain, [(5, 0)]) == ["a"]


def test_markers_count_before_the_first_wanted_offset() -> None:
    buffer = transactional(0, 5, "x") + marker(1, 5, committed=False) + transactional(2, 5, "a")
    assert values(buffer, [(5, 0)], start_offset=2) == ["a"]


def test_a_control_batch_that_cannot_be_read_is_told() -> None:
    broken = bytearray(marker(8, 5, committed=False))
    broken[61] = 0x7E
    sign(memoryview(broken))
    with pytest.raises(InvalidRecord, match="orders-0 offset 8: a control batch"):
        values(bytes(broken), [])


def test_an_old_message_format_is_told() -> None:
    old = bytearray(build_batch(records("a"), base_offset=4))
    old[16] = 1
    with pytest.raises(InvalidRecord, match="orders-0 offset 4: no record batch of format 2"):
        values(bytes(old))


def test_batches_are_as_large_as_asked_for() -> None:
    buffer = b"".join(bytes(build_batch(records(*"abcde"), base_offset=5 * n)) for n in range(8))
    decoder = Decoder("orders", max_rows=10)
    sizes = [batch.num_rows for batch in decoder.decode(buffer, partition=0, start_offset=0)]
    assert sizes == [10, 10, 10, 10]
    assert decoder.flush() is None
    small = Decoder("orders", max_bytes=1)
    assert [batch.num_rows for batch in small.decode(buffer, partition=0, start_offset=0)] == [5] * 8


def test_compressed_batches_are_as_large_as_asked_for() -> None:
    buffer = b"".join(bytes(build_batch(records(*"abcde"), base_offset=5 * n, codec=3)) for n in range(8))
    decoder = Decoder("orders", max_rows=10)
    assert [batch.num_rows for batch in decoder.decode(buffer, partition=0, start_offset=0)] == [10] * 4


def test_columns_grow_with_what_comes() -> None:
    large = [(b"k" * 200_000, b"v" * 300_000, [("h" * 90_000, b"w" * 100_000)] * 3, 0)]
    many: list[NewRecord] = [(b"k", b"v", [("h", None)] * 3, 0)] * 9000
    buffer = bytes(build_batch(large)) + bytes(build_batch(many, base_offset=1, codec=4))
    decoder = Decoder("orders", ["key", "value", "headers"])
    assert list(decoder.decode(buffer, partition=0, start_offset=0)) == []
    batch = decoder.flush()
    assert batch is not None
    batch.validate(full=True)
    assert batch.num_rows == 9001
    assert batch.column("value")[0].as_py() == large[0][1]
    assert batch.column("headers")[9000].as_py() == [{"key": "h", "value": None}] * 3


def test_partitions_take_turns_in_one_batch() -> None:
    decoder = Decoder("orders", ["topic", "partition", "offset"])
    for partition, offset in ((1, 100), (0, 7)):
        buffer = bytes(build_batch(records("a", "b"), base_offset=offset))
        assert not list(decoder.decode(buffer, partition=partition, start_offset=0))
        assert decoder.next_offset == offset + 2
    batch = decoder.flush()
    assert batch is not None
    assert batch.to_pydict() == {
        "topic": ["orders"] * 4,
        "partition": [1, 1, 0, 0],
        "offset": [100, 101, 7, 8],
    }


def test_the_columns_have_the_names_and_types_of_sparks_kafka_source() -> None:
    names = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    schema = Decoder("orders", names).schema
    assert schema.names == names
    assert schema.field("timestamp").type == pa.timestamp("ms", tz="UTC")
    assert schema.field("headers").type.value_type.field("key").type == pa.string()


def test_what_was_handed_out_does_not_change_later() -> None:
    decoder = Decoder("orders", ["value"], max_rows=1)
    first = list(decoder.decode(bytes(build_batch(records("a"))), partition=0, start_offset=0))
    list(decoder.decode(bytes(build_batch(records("b"))), partition=0, start_offset=0))
    assert first[0].column("value").to_pylist() == [b"a"]


def test_the_next_offset_is_found_by_the_headers_alone() -> None:
    buffer = bytes(build_batch(records(*"abc"), base_offset=40)) + bytes(
        build_batch(records("d"), base_offset=50)
    )
    view = np.frombuffer(buffer, dtype=np.uint8)
    assert kernels.next_offset_of(view, 3) == 51
    assert kernels.next_offset_of(view[:-1], 3) == 43
    assert kernels.next_offset_of(view[:10], 3) == 3


def test_both_ways_to_a_crc_agree() -> None:
    data = bytes(range(256)) * 3
    view = np.frombuffer(data, dtype=np.uint8)
    for start, end in ((0, 0), (0, 1), (1, 8), (3, 700), (0, 768)):
        for function in (_crc_by_table, _crc_by_instruction):
            assert function(view.ctypes.data, start, end) == crc32c(data[start:end])


@pytest.mark.parametrize(
    ("module", "parts"),
    [
        (transaction_kernels, ["layout", "byte_kernels"]),
        (kernels, ["layout", "byte_kernels", "crc_kernel", "transaction_kernels"]),
    ],
    ids=["transaction_kernels", "kernels"],
)
def test_compiled_code_is_not_kept_when_a_part_of_it_changes(module: ModuleType, parts: list[str]) -> None:
    folder = Path(str(module.__file__)).parent
    sources = b"".join((folder / f"{part}.py").read_bytes() for part in parts)
    assert hashlib.sha256(sources).hexdigest()[:16] == module.MADE_FROM


def test_a_broker_imports_nothing_of_this() -> None:
    code = "import sys, penstock.broker.process; print([m for m in sys.modules if 'columnar' in m or m == 'pyarrow'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
