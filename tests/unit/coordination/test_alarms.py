"""AlarmHeap: one timer for many deadlines."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.coordination.alarms import STALE_ENTRIES_MAX, AlarmHeap

A, B = ("session", "g", "a"), ("session", "g", "b")


def test_an_alarm_goes_off_once_when_its_time_has_come() -> None:
    heap = AlarmHeap()
    heap.set(0, A, 100)
    assert list(heap.due(99)) == []
    assert list(heap.due(100)) == [(0, A)]
    assert list(heap.due(1_000)) == []


def test_an_alarm_that_is_moved_later_goes_off_at_the_later_time_only() -> None:
    heap = AlarmHeap()
    heap.set(0, A, 100)
    heap.set(0, A, 300)
    assert list(heap.due(200)) == []
    assert heap.next_at_ms() == 300
    assert list(heap.due(300)) == [(0, A)]


def test_an_alarm_that_is_moved_earlier_goes_off_at_the_earlier_time_only() -> None:
    heap = AlarmHeap()
    heap.set(0, A, 300)
    heap.set(0, A, 100)
    assert list(heap.due(100)) == [(0, A)]
    assert list(heap.due(1_000)) == []


def test_a_cancelled_alarm_is_silent() -> None:
    heap = AlarmHeap()
    heap.set(0, A, 100)
    heap.set(0, A, None)
    assert heap.next_at_ms() is None
    assert list(heap.due(1_000)) == []


def test_an_alarm_cancelled_by_one_that_goes_off_with_it_is_silent() -> None:
    heap = AlarmHeap()
    heap.set(0, A, 100)
    heap.set(0, B, 100)
    fired = []
    for name in heap.due(100):
        fired.append(name)
        heap.set(0, B, None)
    assert fired == [(0, A)]


def test_a_shard_that_is_gone_takes_its_alarms_along() -> None:
    heap = AlarmHeap()
    heap.set(0, A, 100)
    heap.set(1, A, 100)
    heap.drop(0)
    assert list(heap.due(1_000)) == [(1, A)]


def test_setting_and_cancelling_for_ever_takes_no_more_memory() -> None:
    heap = AlarmHeap()
    for number in range(10 * STALE_ENTRIES_MAX):
        heap.set(0, ("session", str(number)), 1_000_000)
        heap.set(0, ("session", str(number)), None)
    assert len(heap._heap) <= STALE_ENTRIES_MAX + 1


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1), st.sampled_from([A, B]), st.none() | st.integers(0, 50), st.integers(0, 10)
        ),
        max_size=40,
    )
)
def test_it_does_what_a_plain_table_of_deadlines_does(
    moves: list[tuple[int, tuple[str, ...], int | None, int]],
) -> None:
    heap, table, now_ms = AlarmHeap(), {}, 0
    for shard, key, at_ms, step_ms in moves:
        heap.set(shard, key, at_ms)
        if at_ms is None:
            table.pop((shard, key), None)
        else:
            table[shard, key] = at_ms
        now_ms += step_ms
        assert heap.next_at_ms() == min(table.values(), default=None)
        due = {name for name, wanted_ms in table.items() if wanted_ms <= now_ms}
        assert set(heap.due(now_ms)) == due
        table = {name: wanted_ms for name, wanted_ms in table.items() if name not in due}
