"""Batches made fit to be produced again."""

import pytest

from penstock.mirror.batches import Damaged, outgoing
from penstock.records.batch import read_header
from penstock.records.build import build_batch, sign, stamp_append_time
from penstock.records.compression import LZ4
from penstock.records.crc import crc32c
from penstock.records.marker import build_marker
from penstock.records.walk import Record, iterate_records

HEADERS = (("h", b"1"), ("n", None))


def batch(base: int, count: int, **options: object) -> bytearray:
    records = [
        (b"k%d" % (base + each), b"v%d" % (base + each), HEADERS, 1000 + each) for each in range(count)
    ]
    return build_batch(records, base_offset=base, **options)  # type: ignore[arg-type]


def marker(base: int, producer_id: int, *, committed: bool) -> bytearray:
    found = build_marker(
        producer_id=producer_id, producer_epoch=0, committed=committed, coordinator_epoch=0, timestamp_ms=0
    )
    found[:8] = base.to_bytes(8, "big")
    return found


def without(data: bytearray, *offsets: int) -> bytearray:
    """As a compaction leaves it."""
    header = read_header(data)
    kept = [one for one in iterate_records(data) if one.offset not in offsets]
    body = bytearray()
    for one in kept:
        whole = bytearray(build_batch([(one.key, one.value, one.headers, one.timestamp)])[61:])
        whole[3] = (one.offset - header.base_offset) << 1
        body += whole
    found = bytearray(data[:61]) + body
    found[8:12] = (len(found) - 12).to_bytes(4, "big")
    found[57:61] = len(kept).to_bytes(4, "big")
    sign(memoryview(found))
    return found


def read(data: bytearray) -> list[Record]:
    header = read_header(data)
    assert crc32c(memoryview(data)[21:]) == header.crc
    return list(iterate_records(data))


def test_a_whole_batch_goes_as_it_is() -> None:
    made = outgoing(memoryview(bytes(batch(100, 3, codec=LZ4))), 100, [])
    assert made.next_offset == 103
    (one,) = made.batches
    assert one.runs == [(100, 0, 3)]
    one.stamp(7, 2, 40, is_transactional=True)
    header = read_header(one.data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert header.is_transactional
    assert header.codec == LZ4
    assert [(each.offset, each.key, each.headers, each.timestamp) for each in read(one.data)] == [
        (number, b"k%d" % (100 + number), HEADERS, 1000 + number) for number in range(3)
    ]


def test_a_transactional_batch_is_an_ordinary_one_where_there_is_no_transaction() -> None:
    (one,) = outgoing(
        memoryview(bytes(batch(0, 1, producer_id=3, producer_epoch=0, base_sequence=0, transactional=True))),
        0,
        [],
    ).batches
    one.stamp(9, 0, 0, is_transactional=False)
    assert not read_header(one.data).is_transactional


def test_gaps_of_a_compaction_are_closed_and_remembered() -> None:
    data = without(batch(10, 6), 11, 14)
    made = outgoing(memoryview(bytes(data)), 10, [])
    assert made.next_offset == 16
    (one,) = made.batches
    assert one.runs == [(10, 0, 1), (12, 1, 2), (15, 3, 1)]
    assert [each.key for each in read(one.data)] == [b"k10", b"k12", b"k13", b"k15"]
    assert [each.offset for each in read(one.data)] == [0, 1, 2, 3]


def test_a_batch_without_records_is_passed_over() -> None:
    made = outgoing(memoryview(bytes(without(batch(0, 2), 0, 1) + batch(2, 1))), 0, [])
    assert [one.runs for one in made.batches] == [[(2, 0, 1)]]


def test_records_before_the_offset_are_left_out() -> None:
    made = outgoing(memoryview(bytes(batch(0, 5))), 3, [])
    assert made.batches[0].runs == [(3, 0, 2)]
    assert [one.key for one in read(made.batches[0].data)] == [b"k3", b"k4"]


def test_times_of_the_broker_become_times_of_the_record() -> None:
    data = batch(0, 2)
    stamp_append_time(memoryview(data), 5000)
    (one,) = outgoing(memoryview(bytes(data)), 0, []).batches
    assert not read_header(one.data).timestamp_type
    assert [each.timestamp for each in read(one.data)] == [5000, 5000]


def test_aborted_transactions_and_markers_are_left_out() -> None:
    def sent(base: int, producer_id: int) -> bytearray:
        return batch(base, 2, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)

    data = (
        sent(0, 1) + sent(2, 2) + marker(4, 1, committed=False) + sent(5, 1) + marker(7, 2, committed=True)
        + marker(8, 1, committed=True) + batch(9, 1)
    )  # fmt: skip
    made = outgoing(memoryview(bytes(data)), 0, [(1, 0)])
    assert [one.runs[0][0] for one in made.batches] == [2, 5, 9]
    assert made.next_offset == 10


def test_markers_alone_move_the_offset_on() -> None:
    made = outgoing(memoryview(bytes(marker(4, 1, committed=True))), 4, [])
    assert made.batches == []
    assert made.next_offset == 5


def test_a_damaged_batch_is_not_copied() -> None:
    data = batch(0, 1)
    data[-3] ^= 1
    with pytest.raises(Damaged, match="offset 0 is damaged"):
        outgoing(memoryview(bytes(data)), 0, [])


def test_half_a_batch_at_the_end_waits() -> None:
    made = outgoing(memoryview(bytes(batch(0, 1) + batch(1, 1)[:-5])), 0, [])
    assert made.next_offset == 1
