import threading

import pytest

from penstock.consumer.hanging_calls import StillRunning, call_within


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
