"""The book of offsets: what is pending, what counts, and that a place is kept once."""

import pytest

from penstock.groups.offset_book import OffsetBook
from penstock.groups.records import CommittedOffset, OffsetKey, write_offset, write_offset_key


def raw_topic_partition(topic: str, partition: int) -> bytes:
    return write_offset_key(OffsetKey("", topic, partition))[4:]


def value(offset: int) -> bytes:
    return write_offset(CommittedOffset(offset, -1, "", 0))


@pytest.fixture
def book() -> OffsetBook:
    book = OffsetBook()
    book.put("g", raw_topic_partition("orders", 0), value(5))
    return book


def test_a_pending_offset_leaves_no_trace_once_its_transaction_is_over(book: OffsetBook) -> None:
    before = repr(book.hard_state())
    book.put_pending("g", raw_topic_partition("orders", 0), value(8), 7)
    book.put_pending("h", raw_topic_partition("orders", 1), value(8), 7)
    assert book.has("h")
    book.end(7, committed=False)
    assert repr(book.hard_state()) == before
    assert not book.has("h")


def test_markers_of_producers_that_wrote_no_offsets_are_nothing(book: OffsetBook) -> None:
    before = repr(book.hard_state())
    book.end(99, committed=True)
    assert repr(book.hard_state()) == before


def test_forgetting_a_pending_offset_keeps_the_others_of_its_transaction(book: OffsetBook) -> None:
    book.put_pending("g", raw_topic_partition("orders", 0), value(8), 7)
    book.put_pending("g", raw_topic_partition("orders", 1), value(9), 7)
    book.remove("g", raw_topic_partition("orders", 0))
    book.end(7, committed=True)
    assert dict(book.committed("g")) == {("orders", 1): CommittedOffset(9, -1, "", 0)}


def test_groups_share_a_topic_partition(book: OffsetBook) -> None:
    book.put("h", raw_topic_partition("orders", 0), value(1))
    (mine,), (theirs,) = book.topic_partitions("g"), book.topic_partitions("h")
    assert mine is theirs


@pytest.mark.parametrize("raw", [b"", b"\0\5orders\0\0\0\0", b"\0\6orders\0\0\0", b"\0\1\xff\0\0\0\0"])
def test_a_place_that_makes_no_sense_is_refused(book: OffsetBook, raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"offset|codec"):
        book.put("g", raw, value(1))
