import threading

import pytest

from penstock.consumer.hanging_calls import LEFT_BEHIND_MAX, LeftBehind, StillRunning, call_within


def test_a_call_that_comes_back_is_as_if_it_were_made_directly() -> None:
    seen: list[int] = []
    call_within(lambda: seen.append(1), 10)
    assert seen == [1]
    with pytest.raises(ZeroDivisionError):
        call_within(lambda: 1 // 0, 10)


def test_a_call_that_does_not_come_back_is_left_behind() -> None:
    release = threading.Event()
    with pytest.raises(StillRunning) as hanging:
        call_within(lambda: release.wait(30), 0.01)
    assert hanging.value.thread.is_alive()
    release.set()
    hanging.value.thread.join(30)
    assert not hanging.value.thread.is_alive()


def test_only_so_many_calls_may_hang_at_a_time() -> None:
    release, released = threading.Event(), threading.Thread()
    behind = LeftBehind()
    hanging = [threading.Thread(target=release.wait, args=(30,)) for _ in range(LEFT_BEHIND_MAX + 1)]
    for each in hanging:
        each.start()
    assert [behind.add(each) for each in hanging] == [True] * LEFT_BEHIND_MAX + [False]
    release.set()
    for each in hanging:
        each.join(30)
    assert behind.add(released)
