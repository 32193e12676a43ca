from penstock.storage.compaction.choose import LogFacts, SegmentFacts, dirtiest, examine

NOW = 1_000_000


def facts(
    *sizes: int,
    checkpoint: int | None = None,
    start_offset: int = 0,
    stable: int | None = None,
    ratio: float = 0.5,
    min_lag: int = 0,
    max_lag: int = 2**63 - 1,
    times: tuple[int, ...] = (),
) -> LogFacts:
    """Segments at 0, 10, 20 …; the last one is active."""
    segments = [
        SegmentFacts(number * 10, size, *([times[number]] * 2 if times else [NOW, NOW]))
        for number, size in enumerate(sizes)
    ]
    end = len(sizes) * 10
    return LogFacts(
        segments=segments,
        start_offset=start_offset,
        log_end_offset=end,
        last_stable_offset=end if stable is None else stable,
        checkpoint=checkpoint,
        min_cleanable_dirty_ratio=ratio,
        min_compaction_lag_ms=min_lag,
        max_compaction_lag_ms=max_lag,
    )


def test_a_log_never_cleaned_is_dirty_up_to_its_active_segment() -> None:
    found = examine(facts(100, 100, 100), now_ms=NOW)
    assert (found.first_dirty_offset, found.end_offset, found.dirty_bytes, found.dirty_ratio) == (
        0,
        20,
        200,
        1.0,
    )
    assert found.is_due


def test_only_an_active_segment_is_nothing_to_clean() -> None:
    found = examine(facts(100), now_ms=NOW)
    assert (found.end_offset, found.is_due, found.dirty_ratio) == (0, False, 0.0)


def test_a_log_is_due_when_more_than_its_dirty_ratio_is_dirty() -> None:
    half = facts(100, 100, 100, checkpoint=10)
    assert examine(half, now_ms=NOW).dirty_ratio == 0.5
    assert not examine(half, now_ms=NOW).is_due
    assert examine(half._replace(min_cleanable_dirty_ratio=0.49), now_ms=NOW).is_due


def test_a_log_cleaned_up_to_its_active_segment_is_not_due_even_at_ratio_zero() -> None:
    assert not examine(facts(100, 100, checkpoint=10, ratio=0.0), now_ms=NOW).is_due


def test_nothing_past_the_last_stable_offset_is_cleaned() -> None:
    assert examine(facts(100, 100, 100, stable=15), now_ms=NOW).end_offset == 10


def test_segments_younger_than_min_compaction_lag_stay_dirty() -> None:
    young = facts(100, 100, 100, times=(NOW - 5000, NOW - 500, NOW), min_lag=1000)
    assert examine(young, now_ms=NOW).end_offset == 10
    assert examine(young, now_ms=NOW + 600).end_offset == 20


def test_a_log_past_max_compaction_lag_is_due_whatever_its_ratio() -> None:
    late = facts(1000, 1, 100, checkpoint=10, times=(NOW - 9000, NOW - 2000, NOW), max_lag=2000)
    assert not examine(late, now_ms=NOW).is_due
    assert examine(late, now_ms=NOW + 1).is_due
    assert examine(late, now_ms=NOW + 1).overdue_ms == 1


def test_a_checkpoint_outside_of_the_log_is_not_believed() -> None:
    assert examine(facts(100, 100, checkpoint=500), now_ms=NOW).first_dirty_offset == 0
    assert examine(facts(100, 100, checkpoint=3, start_offset=5), now_ms=NOW).first_dirty_offset == 5


def test_a_segment_mapped_only_in_part_counts_as_dirty() -> None:
    found = examine(facts(100, 100, 100, checkpoint=15), now_ms=NOW)
    assert (found.clean_bytes, found.dirty_bytes) == (100, 100)


def test_the_dirtiest_log_that_is_due_is_chosen() -> None:
    found = {
        "clean": examine(facts(100, 100, checkpoint=10), now_ms=NOW),
        "half": examine(facts(100, 200, 100, checkpoint=10), now_ms=NOW),
        "all": examine(facts(1, 100), now_ms=NOW),
    }
    assert dirtiest(found.items()) == "all"
    assert dirtiest([("clean", found["clean"])]) is None
