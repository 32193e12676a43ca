"""Offsets translated exactly, whatever gaps there are on either side."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from penstock.mirror.formats import SLOTS, OffsetSync
from penstock.mirror.translation import Offsets, PartitionOffsets, Tracking, Translated


def known(*pairs: tuple[int, int], end: int | None = None) -> PartitionOffsets:
    offsets = PartitionOffsets()
    for slot, (upstream, downstream) in enumerate(pairs):
        offsets.add(OffsetSync("t", 0, upstream, downstream, slot))
    if end is not None:
        upstream, downstream = pairs[-1]
        offsets.add(OffsetSync("t", 0, end - 1, downstream + end - 1 - upstream))
    return offsets


def exactly(offset: int) -> Translated:
    return Translated(offset, is_exact=True)


def test_of_nothing_nothing_is_known() -> None:
    assert PartitionOffsets().translate(5) is None
    assert Offsets().translate("t", 0, 5) is None


def test_between_two_pairs_the_distance_is_the_same() -> None:
    offsets = known((0, 0), (20, 10), end=30)
    assert [offsets.translate(each) for each in (0, 5, 9, 20, 25, 30)] == [
        exactly(each) for each in (0, 5, 9, 10, 15, 20)
    ]


def test_an_offset_in_a_gap_goes_to_the_next_record() -> None:
    offsets = known((0, 0), (20, 10), end=30)
    assert offsets.translate(10) == offsets.translate(15) == offsets.translate(19) == exactly(10)


def test_a_gap_at_the_target_is_passed_over() -> None:
    offsets = known((0, 0), (10, 13), end=20)
    assert offsets.translate(9) == exactly(9)
    assert offsets.translate(10) == exactly(13)


def test_before_the_first_record_is_the_first_record() -> None:
    assert known((100, 3), end=110).translate(40) == exactly(3)


def test_what_is_not_copied_yet_is_where_the_copy_ends() -> None:
    assert known((0, 0), end=10).translate(50) == Translated(10, is_exact=False)


def test_pairs_of_mirror_maker_lead_to_the_record_behind_them() -> None:
    offsets = PartitionOffsets()
    offsets.add(OffsetSync("t", 0, 100, 90))
    offsets.add(OffsetSync("t", 0, 300, 250))
    assert offsets.translate(100) == exactly(90)
    assert offsets.translate(200) == Translated(91, is_exact=False)
    assert offsets.translate(50) is None


def test_mirror_maker_may_go_on_where_we_have_ended() -> None:
    offsets = known((0, 0), end=100)
    offsets.add(OffsetSync("t", 0, 250, 120))
    assert offsets.translate(60) == exactly(60)
    assert offsets.translate(180) == Translated(101, is_exact=False)
    assert offsets.translate(250) == exactly(120)


def test_what_is_copied_once_more_counts_where_it_is_last() -> None:
    offsets = known((0, 0), end=100)
    offsets.add(OffsetSync("t", 0, 40, 100, 1))
    assert offsets.translate(39) == exactly(39)
    assert offsets.translate(40) == exactly(100)


def test_a_topic_that_was_made_anew_begins_anew() -> None:
    offsets = known((0, 50), end=100)
    offsets.add(OffsetSync("t", 0, 100, 0, 1))
    assert offsets.translate(100) == exactly(0)
    assert offsets.translate(20) == exactly(0)


def test_only_so_many_pairs_are_kept() -> None:
    offsets = PartitionOffsets()
    for number in range(SLOTS + 10):
        offsets.add(OffsetSync("t", 0, 2 * number, 3 * number, number % SLOTS))
    assert offsets.translate(5) is None
    assert offsets.translate(2 * SLOTS) == exactly(3 * SLOTS)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=30))
def test_every_offset_leads_to_the_record_that_a_reader_would_get(steps: list[tuple[int, int, int]]) -> None:
    """Records in runs, with gaps before them on both sides."""
    tracking, offsets = Tracking("t", 0), PartitionOffsets()
    upstream = downstream = 0
    at: dict[int, int] = {}
    for gap_above, gap_below, count in steps:
        upstream, downstream = upstream + gap_above, downstream + gap_below
        pair = tracking.see(upstream, downstream, count)
        if pair is not None:
            offsets.add(pair)
        at.update({upstream + number: downstream + number for number in range(count)})
        upstream, downstream = upstream + count, downstream + count
    assert tracking.last is not None
    offsets.add(tracking.last)
    records = sorted(at)
    for asked in range(upstream + 1):
        found = offsets.translate(asked)
        assert found is not None
        behind = bisect_left(records, asked)
        wanted = at[records[behind]] if behind < len(records) else downstream
        before = at[records[behind - 1]] if behind else -1
        # Behind the record before it, and not behind the next one: what is between are gaps, which a reader passes over.
        assert before < found.offset <= wanted
        assert found.is_exact
