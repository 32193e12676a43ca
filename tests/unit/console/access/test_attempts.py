"""Logins that fail: each further one costs a wait."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.access.attempts import (
    FORGOTTEN_AFTER_S,
    FREE_OF_PAIR,
    MAX_ENTRIES,
    MAX_WAIT_OF_NAME_S,
    MAX_WAIT_OF_PAIR_S,
    Attempts,
)


def test_a_few_failures_cost_nothing_and_then_the_wait_doubles() -> None:
    attempts = Attempts()
    for _ in range(FREE_OF_PAIR):
        assert attempts.wait_s("1.1.1.1", "ana", 0) == 0
        attempts.failed("1.1.1.1", "ana", 0)
    assert attempts.wait_s("1.1.1.1", "ana", 0) == 1
    attempts.failed("1.1.1.1", "ana", 0)
    assert attempts.wait_s("1.1.1.1", "ana", 0) == 2
    assert attempts.wait_s("1.1.1.1", "ana", 1.5) == 0.5
    assert attempts.wait_s("1.1.1.1", "ana", 2) == 0


def test_a_success_forgets_the_failures_of_that_user_there() -> None:
    attempts = Attempts()
    for _ in range(FREE_OF_PAIR + 1):
        attempts.failed("1.1.1.1", "ana", 0)
    attempts.succeeded("1.1.1.1", "ana")
    assert attempts.wait_s("1.1.1.1", "ana", 0) == 0


def test_logins_that_succeed_cost_nobody_anything() -> None:
    attempts = Attempts()
    for number in range(1000):
        attempts.failed("1.1.1.1", f"user-{number}", 0)  # as it is counted before the check
        attempts.succeeded("1.1.1.1", f"user-{number}")
    assert attempts.wait_s("1.1.1.1", "ana", 0) == 0


def test_one_who_tries_many_names_is_slowed() -> None:
    attempts = Attempts()
    for number in range(100):
        attempts.failed("1.1.1.1", f"user-{number}", 0)
    assert attempts.wait_s("1.1.1.1", "never-tried", 0) > 0
    assert attempts.wait_s("2.2.2.2", "never-tried", 0) == 0


def test_strangers_lock_a_user_out_for_moments_only() -> None:
    attempts = Attempts()
    for number in range(1000):
        attempts.failed(f"address-{number}", "ana", 0)
    assert 0 < attempts.wait_s("2.2.2.2", "ana", 0) <= MAX_WAIT_OF_NAME_S


def test_failures_are_forgotten() -> None:
    attempts = Attempts()
    for _ in range(50):
        attempts.failed("1.1.1.1", "ana", 0)
    assert attempts.wait_s("1.1.1.1", "ana", FORGOTTEN_AFTER_S + 1) == 0


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.floats(0, 100)), max_size=60))
def test_no_wait_is_longer_than_its_bound(failures: list[tuple[str, str, float]]) -> None:
    attempts = Attempts()
    now_s = 0.0
    for address, name, pause_s in failures:
        now_s += pause_s
        attempts.failed(address, name, now_s)
        assert 0 <= attempts.wait_s(address, name, now_s) <= MAX_WAIT_OF_PAIR_S


def test_the_table_is_bounded() -> None:
    attempts = Attempts()
    for number in range(MAX_ENTRIES):
        attempts.failed(f"address-{number}", f"name-{number}", 0)
    assert len(attempts._entries) == MAX_ENTRIES
