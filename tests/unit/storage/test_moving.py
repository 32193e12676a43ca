"""A log copied to another directory while it is in use: the copy is the log, whatever happened meanwhile."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.ids import TopicPartition
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.moving import FutureLog
from penstock.storage.options import LogOptions
from tests.unit.storage.batches import StillClock, append, stored_bytes

ORDERS = TopicPartition("orders", 0)
OPTIONS = LogOptions(segment_bytes=2000, index_interval_bytes=200)

operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 30)),
        st.tuples(st.just("append"), st.integers(1, 30)),
        st.tuples(st.just("roll"), st.just(0)),
        st.tuples(st.just("delete"), st.integers(0, 40)),
        st.tuples(st.just("cut"), st.integers(1, 60)),
        st.tuples(st.just("copy"), st.just(0)),
        st.tuples(st.just("flush"), st.just(0)),
    ),
    max_size=20,
)


def do(log: Log, future: FutureLog, name: str, number: int) -> None:
    if name == "append":
        append(log, number, producer_id=7, base_sequence=log.end_offset)
    elif name == "roll":
        log.roll()
    elif name == "delete":
        removal = log.advance_start_offset(min(log.start_offset + number, log.end_offset))
        if removal is not None:
            removal.run()
    elif name == "cut":
        log.truncate_to(max(log.start_offset, log.end_offset - number))
    elif name == "flush":
        log.flush()
    else:
        future.copy(future.plan())


@settings(max_examples=100)
@given(operations)
def test_any_sequence_of_changes_gives_an_equal_log(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as parent:
        clock = StillClock()
        source = LogDirectory(OsDisk(), f"{parent}/a", clock)
        target = LogDirectory(OsDisk(), f"{parent}/b", clock)
        log = source.open_log(ORDERS, OPTIONS, topic_id=bytes(range(16)))
        append(log, 3, producer_id=7)
        future = FutureLog(OsDisk(), log, target.path, bytes(16))
        future.create()
        for name, number in steps:
            do(log, future, name, number)
        copy = target.adopt(future.finish(), OPTIONS)
        assert copy.report.lines == []
        assert copy.report.recovered_segments == 0
        assert stored_bytes(copy) == stored_bytes(log)
        assert [s.base_offset for s in copy.segments] == [s.base_offset for s in log.segments]
        assert (copy.start_offset, copy.end_offset) == (log.start_offset, log.end_offset)
        # An epoch that has written nothing yet is written down again with its first batch, as after a restart.
        assert copy.leader_epochs.entries == [e for e in log.leader_epochs.entries if e[1] < log.end_offset]
        assert copy.recovery_point == log.recovery_point
        assert copy.producers.snapshot() == log.producers.snapshot()
        assert target.list_logs() == [(ORDERS, bytes(range(16)))]
        for closed in list(copy.segments)[:-1]:
            assert list(closed.time_index.entries())
        append(copy, 1, producer_id=7, base_sequence=copy.end_offset)
        assert future.size_bytes == log.size_bytes
        for directory in (source, target):
            directory.release()


def test_a_rewritten_segment_is_copied_again(tmp_path: Path) -> None:
    """Compaction puts a new object with the same base offset in the row."""
    log = Log.open(OsDisk(), str(tmp_path / "a" / "orders-0"), OPTIONS, StillClock())
    append(log, 5)
    log.roll()
    future = FutureLog(OsDisk(), log, str(tmp_path / "b"), bytes(16))
    future.create()
    future.copy(future.plan())
    assert [part.segment.base_offset for part in future.plan()] == []
    again = Log.open(OsDisk(), log.directory, OPTIONS, StillClock())
    log.segments.replace(list(again.segments))
    assert [(part.segment.base_offset, part.position) for part in future.plan()] == [(0, 0), (5, 0)]
    future.copy(future.plan())
    assert future.size_bytes == log.size_bytes
    future.discard()
    assert not (tmp_path / "b").exists() or not list((tmp_path / "b").iterdir())
