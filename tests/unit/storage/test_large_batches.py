"""Batches from a time when segment.bytes was larger: a leader takes no more of them, a replica copies those that there are."""

from collections.abc import Callable

import pytest

from penstock.model.errors import ApiError, ErrorCode
from penstock.storage.log import Log
from tests.unit.storage.batches import append, base_offsets, close_cleanly, make_batch, stored_bytes

OpenLog = Callable[..., Log]
SEGMENT_BYTES = 200


def copied(open_log: OpenLog) -> tuple[Log, bytes]:
    """A small batch, a large one, and two small ones, as a leader sends them."""
    sizes = ((0, 10), (1, 1000), (2, 10), (3, 10))
    batches = [make_batch(value_bytes=size, base_offset=offset)[0] for offset, size in sizes]
    data = b"".join(bytes(batch) for batch in batches)
    log = open_log(segment_bytes=SEGMENT_BYTES)
    assert log.append_as_follower(memoryview(data)) == 4
    return log, data


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_batch_larger_than_a_segment_gets_one_of_its_own_at_a_follower(open_log: OpenLog) -> None:
    log, data = copied(open_log)
    assert bases(log) == [0, 1, 2]
    assert stored_bytes(log) == data
    found = log.read(1, 10)
    assert found.file.read_at(found.position, found.size_bytes) == bytes(
        make_batch(value_bytes=1000, base_offset=1)[0]
    )


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_with_such_a_batch_is_opened_as_it_was(open_log: OpenLog, clean: bool) -> None:
    log, data = copied(open_log)
    if clean:
        close_cleanly(log)
    again = open_log(segment_bytes=SEGMENT_BYTES, clean=clean)
    assert bases(again) == [0, 1, 2]
    assert base_offsets(again) == [0, 1, 2, 3]
    assert stored_bytes(again) == data
    assert (again.end_offset, again.report.truncated_bytes, again.report.removed_segments) == (4, 0, 0)


def test_a_log_that_ends_with_such_a_batch_goes_on_in_another_segment(open_log: OpenLog) -> None:
    log = open_log(segment_bytes=SEGMENT_BYTES)
    log.append_as_follower(make_batch(value_bytes=1000)[0])
    log = open_log(segment_bytes=SEGMENT_BYTES)
    assert append(log) == 1
    assert bases(log) == [0, 1]


def test_a_leader_refuses_such_a_batch_and_stays_as_it_was(open_log: OpenLog) -> None:
    log, _ = copied(open_log)
    with pytest.raises(ApiError) as refusal:
        append(log, value_bytes=1000)
    assert refusal.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert (bases(log), log.end_offset) == ([0, 1, 2], 4)
