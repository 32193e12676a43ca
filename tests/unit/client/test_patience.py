import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client import patience
from penstock.client.patience import Backoff


def test_each_wait_is_longer_up_to_the_longest() -> None:
    backoff = Backoff(0.1, factor=2.0, max_s=0.5, jitter=0.0)
    waits = [backoff.delay_s(attempt, lambda: 0.3) for attempt in range(1, 6)]
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.5, 0.5])


@given(st.integers(1, 10**9), st.floats(0, 1, exclude_max=True))
def test_no_wait_leaves_its_bounds(attempt: int, chance: float) -> None:
    assert 0.08 <= Backoff(0.1, factor=3.0, max_s=10.0, jitter=0.2).delay_s(attempt, lambda: chance) <= 12.0


@pytest.mark.parametrize("bad", [Backoff(-1), Backoff(factor=0.5), Backoff(max_s=-1), Backoff(jitter=2)])
def test_nonsense_is_refused(bad: Backoff) -> None:
    with pytest.raises(ValueError, match="not a usable back-off"):
        bad.check()


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept_s: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, duration_s: float) -> None:
        self.slept_s.append(duration_s)
        self.now_s += duration_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(patience, "time", clock)
    monkeypatch.setattr(random, "random", lambda: 0.5)
    return clock


def test_pauses_grow_as_kafkas_do_and_end_before_the_deadline(clock: Clock) -> None:
    waiting = patience.Patience(5.0)
    while waiting.pause():
        pass
    assert clock.slept_s == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


def test_what_is_retriable_is_tried_again_until_it_succeeds(clock: Clock) -> None:
    failures = [patience.Retriable("no leader"), patience.Retriable("no leader yet")]
    told: list[str] = []

    def attempt() -> str:
        if failures:
            raise failures.pop(0)
        return "here"

    found = patience.patiently(
        attempt, patience.Patience(5.0), before_next=lambda error: told.append(str(error))
    )
    assert found == "here"
    assert told == ["no leader", "no leader yet"]


def test_the_last_error_is_told_when_patience_ends(clock: Clock) -> None:
    def attempt() -> None:
        raise patience.Retriable(f"at {clock.now_s:.1f} s")

    with pytest.raises(patience.Retriable, match=r"at 0\.7 s"):
        patience.patiently(attempt, patience.Patience(1.0), before_next=lambda error: None)


def test_what_is_not_retriable_is_told_at_once(clock: Clock) -> None:
    def attempt() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        patience.patiently(attempt, patience.Patience(5.0), before_next=lambda error: None)
    assert clock.slept_s == []
