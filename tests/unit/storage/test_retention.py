"""Retention against a model: the same appends, rolls, restarts, deletions and changes of options leave the same segments."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.storage.retention import MAX_SEGMENTS
from tests.unit.storage.batches import NOW_MS, StillClock, append, close_cleanly, make_batch

HOUR_MS = 3_600_000

operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(-5, 2)),
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(-5, 0)),
        st.tuples(st.just("roll"), st.just(0), st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("retention.ms"), st.integers(-1, 4), st.just(0)),
        st.tuples(st.just("retention.bytes"), st.integers(-1, 6), st.just(0)),
        st.tuples(st.just("cleanup.policy"), st.booleans(), st.just(0)),
        st.tuples(st.just("delete records"), st.integers(0, 8), st.just(0)),
        st.tuples(st.just("restart"), st.booleans(), st.just(0)),
        st.tuples(st.just("check"), st.integers(0, 3), st.just(0)),
    ),
    max_size=30,
)


class Model:
    """Kafka's three passes over plain tuples (base offset, size, largest timestamp); the last one is active."""

    def __init__(self) -> None:
        self.segments: list[tuple[int, int, int]] = [(0, 0, -1)]
        self.start = self.end = 0

    def append(self, count: int, size: int, timestamp: int) -> None:
        base, held, largest = self.segments[-1]
        self.segments[-1] = (base, held + size, max(largest, timestamp))
        self.end += count

    def roll(self) -> None:
        if self.segments[-1][1]:
            self.segments.append((self.end, 0, -1))

    def check(self, options: LogOptions, *, now_ms: int, high_watermark: int) -> None:
        self._drop(lambda number: self._next(number) <= self.start, high_watermark, closed_only=True)
        if not options.delete_enabled:
            return
        if options.retention_bytes >= 0:
            excess = sum(size for _, size, _ in self.segments) - options.retention_bytes
            count = 0
            while (
                count < len(self.segments)
                and excess >= self.segments[count][1]
                and self._is_below(count, high_watermark)
            ):
                excess -= self.segments[count][1]
                count += 1
            self._drop_first(count)
        if options.retention_ms >= 0:
            self._drop(
                lambda number: now_ms - self.segments[number][2] > options.retention_ms, high_watermark
            )

    def _next(self, number: int) -> int:
        return self.segments[number + 1][0] if number + 1 < len(self.segments) else self.end

    def _is_below(self, number: int, high_watermark: int) -> bool:
        is_last = number + 1 == len(self.segments)
        return self._next(number) <= high_watermark and not (is_last and self.segments[number][1] == 0)

    def _drop(self, expired: object, high_watermark: int, *, closed_only: bool = False) -> None:
        count = 0
        while count < len(self.segments) - closed_only and self._is_below(count, high_watermark):
            if not expired(count):  # type: ignore[operator]
                break
            count += 1
        self._drop_first(count)

    def _drop_first(self, count: int) -> None:
        if count == len(self.segments):
            self.roll()
        del self.segments[:count]
        self.start = max(self.start, self.segments[0][0])


class Pair:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.clock = StillClock()
        self.values = {"retention_ms": 2 * HOUR_MS, "retention_bytes": -1, "delete_enabled": True}
        self.model = Model()
        self.log = self.open(clean=False)

    def options(self) -> LogOptions:
        return LogOptions(**self.values)  # type: ignore[arg-type]

    def open(self, *, clean: bool) -> Log:
        return Log.open(
            OsDisk(), self.directory, self.options(), self.clock, clean=clean, start_offset=self.model.start
        )

    def do(self, name: str, number: int, hours: int) -> None:
        model, log = self.model, self.log
        if name == "append":
            timestamp = self.clock.ms + hours * HOUR_MS
            size = len(make_batch(number)[0])
            assert append(log, number, timestamp=timestamp) == model.end
            model.append(number, size, timestamp)
        elif name == "roll":
            log.roll()
            model.roll()
        elif name == "wait":
            self.clock.ms += number * HOUR_MS
        elif name == "retention.ms":
            self.values["retention_ms"] = number * HOUR_MS if number >= 0 else -1
        elif name == "retention.bytes":
            self.values["retention_bytes"] = number * 100 if number >= 0 else -1
        elif name == "cleanup.policy":
            self.values["delete_enabled"] = bool(number)
        elif name == "delete records":
            offset = min(model.start + number, model.end)
            log.advance_start_offset(offset)
            if offset > model.start:
                model.start = offset
                model.check(LogOptions(delete_enabled=False), now_ms=0, high_watermark=model.end)
        elif name == "restart":
            if number:
                close_cleanly(log)
            else:
                log.close()
            self.log = self.open(clean=bool(number))
        else:
            high_watermark = max(model.end - number, model.start)
            log.options = self.options()
            while log.apply_retention(now_ms=self.clock.ms, end_offset=high_watermark) is not None:
                pass
            model.check(log.options, now_ms=self.clock.ms, high_watermark=high_watermark)
        self.agree()

    def agree(self) -> None:
        model, log = self.model, self.log
        held = [(segment.base_offset, segment.size_bytes, segment.max_timestamp) for segment in log.segments]
        assert held == model.segments
        assert (log.start_offset, log.end_offset) == (model.start, model.end)
        on_disk = sorted(path.name for path in Path(self.directory).glob("*.log"))
        assert on_disk == [f"{base:020d}.log" for base, _, _ in model.segments]


@settings(max_examples=150)
@given(operations)
def test_any_sequence_leaves_what_kafkas_rules_leave(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        pair = Pair(f"{directory}/orders-0")
        for step in steps:
            pair.do(*step)
        pair.log.close()


def filled(tmp_path: Path, count: int, **options: int) -> Log:
    log = Log.open(OsDisk(), str(tmp_path / "orders-0"), LogOptions(**options), StillClock())  # type: ignore[arg-type]
    for _ in range(count):
        append(log, timestamp=NOW_MS)
        log.roll()
    return log


def test_a_record_from_the_future_keeps_its_segment_and_all_after_it(tmp_path: Path) -> None:
    log = Log.open(OsDisk(), str(tmp_path / "orders-0"), LogOptions(retention_ms=HOUR_MS), StillClock())
    append(log, timestamp=NOW_MS + 100 * HOUR_MS)
    log.roll()
    append(log, timestamp=NOW_MS - 100 * HOUR_MS)
    assert log.apply_retention(now_ms=NOW_MS, end_offset=2) is None


def test_a_segment_of_exactly_retention_ms_stays(tmp_path: Path) -> None:
    log = filled(tmp_path, 1, retention_ms=HOUR_MS)
    assert log.apply_retention(now_ms=NOW_MS + HOUR_MS, end_offset=1) is None
    assert log.apply_retention(now_ms=NOW_MS + HOUR_MS + 1, end_offset=1) is not None


def test_many_old_segments_go_a_few_at_a_time(tmp_path: Path) -> None:
    log = filled(tmp_path, MAX_SEGMENTS + 3, retention_ms=0)
    removal = log.apply_retention(now_ms=NOW_MS + 1, end_offset=log.end_offset)
    assert removal is not None
    assert log.start_offset == MAX_SEGMENTS
    assert log.apply_retention(now_ms=NOW_MS + 1, end_offset=log.end_offset) is not None
    assert log.start_offset == log.end_offset
    assert log.apply_retention(now_ms=NOW_MS + 1, end_offset=log.end_offset) is None


def test_an_empty_closed_segment_does_not_keep_what_follows(tmp_path: Path) -> None:
    log = filled(tmp_path, 2, retention_bytes=0)
    log.segments[0].cut(0)
    log.apply_retention(now_ms=NOW_MS, end_offset=2)
    assert log.start_offset == 2


def emptied(tmp_path: Path, *timestamps: int | None) -> Log:
    """One closed segment for each timestamp; None: compaction has left nothing in it. Then the broker starts again, now."""
    log = Log.open(OsDisk(), str(tmp_path / "orders-0"), LogOptions(), StillClock())
    for timestamp in timestamps:
        append(log, timestamp=NOW_MS if timestamp is None else timestamp)
        log.roll()
    append(log, timestamp=NOW_MS)
    for segment, timestamp in zip(log.segments, timestamps, strict=False):
        if timestamp is None:
            segment.cut(0)
    close_cleanly(log)
    options = LogOptions(retention_ms=HOUR_MS, compacted=True)
    return Log.open(OsDisk(), str(tmp_path / "orders-0"), options, StillClock(), clean=True)


OLD = NOW_MS - 2 * HOUR_MS


def test_an_emptied_segment_goes_with_the_old_one_after_it_also_after_a_restart(tmp_path: Path) -> None:
    log = emptied(tmp_path, None, OLD, None, None, OLD)
    log.apply_retention(now_ms=NOW_MS, end_offset=log.end_offset)
    assert log.start_offset == 5


def test_an_emptied_segment_stays_with_the_young_one_after_it(tmp_path: Path) -> None:
    log = emptied(tmp_path, OLD, None, NOW_MS)
    log.apply_retention(now_ms=NOW_MS, end_offset=log.end_offset)
    assert [segment.base_offset for segment in log.segments] == [1, 2, 3]  # a reader at 1 is not thrown out
    assert log.apply_retention(now_ms=NOW_MS, end_offset=log.end_offset) is None


def test_files_are_renamed_at_once_and_removed_by_the_removal_after_their_delay(tmp_path: Path) -> None:
    log = filled(tmp_path, 1, retention_ms=0, file_delete_delay_ms=1234)
    removal = log.apply_retention(now_ms=NOW_MS + 1, end_offset=1)
    assert removal is not None
    assert removal.delay_ms == 1234
    files = {path.suffix for path in (tmp_path / "orders-0").glob("00000000000000000000*")}
    assert files == {".deleted"}
    removal.run()
    assert not list((tmp_path / "orders-0").glob("00000000000000000000*"))


def test_a_reader_in_the_middle_of_a_dropped_segment_finishes(tmp_path: Path) -> None:
    log = filled(tmp_path, 2, retention_ms=0)
    part = log.read(0, 1000)
    before = part.file.read_at(part.position, part.size_bytes)
    removal = log.apply_retention(now_ms=NOW_MS + 1, end_offset=2)
    assert removal is not None
    removal.run()
    assert part.file.read_at(part.position, part.size_bytes) == before
