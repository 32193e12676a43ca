"""Rates, waits and precedence of client quotas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.quotas import entity
from penstock.security.quotas import Limit, QuotaTable, SampledRate, TokenBucket, Window

MB = 1_000_000
SECOND = Window(samples=11, sample_ms=1000)


def test_a_quiet_client_may_send_what_ten_seconds_give() -> None:
    rate = SampledRate(SECOND)
    rate.record(50 * MB, now_ms=0)
    assert rate.throttle_ms(5 * MB, now_ms=0, most_ms=11_000) == 0


def test_what_is_too_much_is_waited_for() -> None:
    rate = SampledRate(SECOND)
    rate.record(55 * MB, now_ms=0)
    assert rate.per_second(now_ms=0) == 5.5 * MB
    assert rate.throttle_ms(5 * MB, now_ms=0, most_ms=11_000) == 1000


def test_nobody_waits_longer_than_he_may() -> None:
    rate = SampledRate(SECOND)
    rate.record(5000 * MB, now_ms=0)
    assert rate.throttle_ms(5 * MB, now_ms=0, most_ms=1000) == 1000


def test_what_was_taken_before_the_window_does_not_count() -> None:
    rate = SampledRate(SECOND)
    rate.record(500 * MB, now_ms=0)
    assert rate.per_second(now_ms=10_999) > 0
    assert rate.per_second(now_ms=11_000) == 0


def test_what_was_recorded_can_be_taken_back() -> None:
    rate = SampledRate(SECOND)
    rate.record(70, now_ms=5)
    rate.record(30, now_ms=6)
    rate.record(-30, now_ms=6)
    assert rate.per_second(now_ms=6) * 10 == pytest.approx(70, rel=0.01)


WINDOWS = st.builds(Window, samples=st.integers(1, 12), sample_ms=st.sampled_from([1, 100, 1000]))
STEPS = st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 10_000)), min_size=1, max_size=40)


def expected_rate(window: Window, events: list[tuple[int, int]], now_ms: int) -> float:
    """Cut into samples from the beginning, without forgetting any, and then looked at."""
    samples: list[list[tuple[int, int]]] = []
    for at, amount in events:
        if samples and at - samples[-1][0][0] < window.sample_ms:
            samples[-1].append((at, amount))
        else:
            samples.append([(at, amount)])
    whole = window.samples * window.sample_ms
    fresh = [sample for sample in samples if now_ms - sample[-1][0] < whole]
    total = sum(amount for sample in fresh for _, amount in sample)
    elapsed = now_ms - fresh[0][0][0] if fresh else 0
    while elapsed < (window.samples - 1) * window.sample_ms:
        elapsed += window.sample_ms
    return total * 1000 / max(elapsed, window.sample_ms)


@given(WINDOWS, STEPS, st.integers(0, 15_000))
def test_rates_are_those_of_all_events(window: Window, steps: list[tuple[int, int]], later: int) -> None:
    rate = SampledRate(window)
    now = 0
    events = []
    for pause, amount in steps:
        now += pause
        events.append((now, amount))
        rate.record(amount, now_ms=now)
        assert rate.per_second(now_ms=now) == pytest.approx(expected_rate(window, events, now))
    assert rate.per_second(now_ms=now + later) == pytest.approx(expected_rate(window, events, now + later))


@given(st.integers(100, 5000), st.lists(st.tuples(st.integers(0, 500), st.integers(1, 5000)), max_size=300))
def test_who_waits_as_told_keeps_to_the_limit(limit: int, steps: list[tuple[int, int]]) -> None:
    rate = SampledRate(SECOND)
    now = total = 0
    for pause, amount in steps:
        now += pause
        total += min(amount, limit)
        rate.record(min(amount, limit), now_ms=now)
        wait = rate.throttle_ms(limit, now_ms=now, most_ms=SECOND.whole_ms)
        assert 0 <= wait <= SECOND.whole_ms
        now += wait
    assert total <= limit * (now / 1000 + 13)  # a window may go at once, and Kafka counts whole samples


def test_a_bucket_gives_a_window_at_once_and_then_waits() -> None:
    bucket = TokenBucket(SECOND)
    assert bucket.throttle_ms(2, now_ms=0) == 0
    bucket.take(22, 2, now_ms=0)
    assert bucket.throttle_ms(2, now_ms=0) == 0
    bucket.take(10, 2, now_ms=0)
    assert bucket.throttle_ms(2, now_ms=0) == 5000
    assert bucket.throttle_ms(2, now_ms=4000) == 1000
    assert bucket.throttle_ms(2, now_ms=5000) == 0


@given(st.floats(0.1, 100), st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 50)), max_size=30))
def test_a_bucket_never_gives_more_than_the_rate_and_one_window(
    limit: float, steps: list[tuple[int, int]]
) -> None:
    bucket = TokenBucket(SECOND)
    now, taken, largest = 0, 0, 0
    for pause, amount in steps:
        now += pause
        if not bucket.throttle_ms(limit, now_ms=now):
            bucket.take(amount, limit, now_ms=now)
            taken += amount
            largest = max(largest, amount)
    assert taken <= limit * (now / 1000 + 11) + largest + 0.01


# In Kafka's order, the most special first.
PRECEDENCE = [
    (entity(user="ana", client_id="app"), ("ana", "app")),
    (entity(user="ana", client_id=None), ("ana", "app")),
    (entity(user="ana"), ("ana", "")),
    (entity(user=None, client_id="app"), ("ana", "app")),
    (entity(user=None, client_id=None), ("ana", "app")),
    (entity(user=None), ("ana", "")),
    (entity(client_id="app"), ("", "app")),
    (entity(client_id=None), ("", "app")),
]


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_most_special_quota_counts(first: int) -> None:
    rest = PRECEDENCE[first:]
    table = QuotaTable({each: {"producer_byte_rate": float(n)} for n, (each, _) in enumerate(rest, 1)})
    assert table.limit("producer_byte_rate", "ana", "app") == Limit(1.0, *rest[0][1])


def test_a_quota_of_another_kind_hides_nothing() -> None:
    table = QuotaTable(
        {
            entity(user="ana", client_id="app"): {"consumer_byte_rate": 1.0},
            entity(client_id=None): {"producer_byte_rate": 2.0},
        }
    )
    assert table.limit("producer_byte_rate", "ana", "app") == Limit(2.0, "", "app")
    assert set(table.names) == {"consumer_byte_rate", "producer_byte_rate"}


def test_a_table_says_whether_something_changed() -> None:
    table = QuotaTable({})
    assert table.set(entity(user="ana"), {"producer_byte_rate": 1.0})
    assert not table.set(entity(user="ana"), {"producer_byte_rate": 1.0})
    assert table.set(entity(user="ana"), {})
    assert not table.set(entity(user="ana"), {})
    assert not table.names


def test_others_have_no_quota() -> None:
    table = QuotaTable({entity(user="ana", client_id="app"): {"producer_byte_rate": 1.0}})
    assert table.limit("producer_byte_rate", "ana", "other") is None
    assert table.limit("producer_byte_rate", "bob", "app") is None


def test_an_address_has_its_own_quota_or_the_default() -> None:
    table = QuotaTable(
        {
            entity(ip="10.0.0.1"): {"connection_creation_rate": 3.0},
            entity(ip=None): {"connection_creation_rate": 7.0},
        }
    )
    assert table.connections_per_second("10.0.0.1") == 3
    assert table.connections_per_second("10.0.0.2") == 7
    assert QuotaTable({}).connections_per_second("10.0.0.1") is None
