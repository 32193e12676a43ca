import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.consumer import Backoff


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
