"""When a member that died is started again, and when no more."""

from penstock.stack.restart_policy import Deaths, RestartPolicy


def test_pauses_double_and_the_fifth_death_within_a_minute_is_the_last() -> None:
    deaths = Deaths(RestartPolicy())
    now_s = 0.0
    pauses: list[float | None] = []
    for _ in range(5):
        pause_s = deaths.pause_s(now_s, lived_s=0.0)
        pauses.append(pause_s)
        now_s += pause_s or 0.0
    assert pauses == [1, 2, 4, 8, None]


def test_one_that_lives_for_a_while_each_time_waits_up_to_thirty_seconds() -> None:
    deaths = Deaths(RestartPolicy())
    now_s = 0.0
    pauses = []
    for _ in range(8):
        now_s += 20
        pause_s = deaths.pause_s(now_s, lived_s=20.0)
        assert pause_s is not None
        pauses.append(pause_s)
        now_s += pause_s
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_one_that_lived_longer_than_a_minute_begins_anew() -> None:
    deaths = Deaths(RestartPolicy())
    for now_s in (0.0, 1.0, 3.0):
        deaths.pause_s(now_s, lived_s=0.0)
    assert deaths.pause_s(100.0, lived_s=93.0) == 1


def test_one_that_was_stopped_in_order_begins_anew() -> None:
    deaths = Deaths(RestartPolicy(max_deaths=2))
    assert deaths.pause_s(0.0, lived_s=0.0) == 1
    deaths.forget()
    assert deaths.pause_s(1.0, lived_s=0.0) == 1
    assert deaths.pause_s(2.0, lived_s=None) is None
