"""Sessions: a word in a cookie, and an end."""

from __future__ import annotations

from penstock.console.access.sessions import MAX_SESSIONS, MAX_SESSIONS_OF_ONE, Sessions, id_of


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def sessions(clock: Clock, *, idle_s: float = 100, max_age_s: float = 1000) -> Sessions:
    return Sessions(clock, idle_s=idle_s, max_age_s=max_age_s)


def test_a_session_is_found_by_its_word_only() -> None:
    known = sessions(Clock())
    word = known.begin("ana", ("viewer",))
    found = known.find(id_of(word))
    assert found is not None
    assert (found.name, found.roles) == ("ana", ("viewer",))
    assert known.find(word) is None, "what is kept is no word"
    assert known.find(id_of("other")) is None
    assert len(word) > 40


def test_an_idle_session_ends_and_one_that_is_used_does_not() -> None:
    clock = Clock()
    known = sessions(clock)
    session_id = id_of(known.begin("ana", ()))
    for _ in range(5):
        clock.now_s += 99
        assert known.find(session_id) is not None
    clock.now_s += 100
    assert known.find(session_id) is None


def test_a_look_by_the_console_itself_keeps_no_session_alive() -> None:
    clock = Clock()
    known = sessions(clock)
    session_id = id_of(known.begin("ana", ()))
    clock.now_s += 60
    assert known.find(session_id, is_use=False) is not None
    clock.now_s += 60
    assert known.find(session_id, is_use=False) is None


def test_an_old_session_ends_however_much_it_is_used() -> None:
    clock = Clock()
    known = sessions(clock)
    session_id = id_of(known.begin("ana", ()))
    for _ in range(11):
        clock.now_s += 90
        known.find(session_id)
    clock.now_s += 20
    assert known.find(session_id) is None


def test_a_session_that_was_ended_is_over() -> None:
    known = sessions(Clock())
    session_id = id_of(known.begin("ana", ()))
    known.end(session_id)
    known.end(session_id)
    assert known.find(session_id) is None


def test_each_login_has_a_word_of_its_own() -> None:
    known = sessions(Clock())
    assert len({known.begin("ana", ()) for _ in range(20)}) == 20


def test_sessions_are_bounded() -> None:
    clock = Clock()
    known = sessions(clock)
    first = id_of(known.begin("first", ()))
    for number in range(MAX_SESSIONS):
        known.begin(f"user-{number}", ())
    assert len(known) == MAX_SESSIONS
    assert known.find(first) is None, "the one that was used longest ago made room"


def test_one_user_does_not_push_the_others_out() -> None:
    known = sessions(Clock())
    other = id_of(known.begin("bob", ()))
    for _ in range(3 * MAX_SESSIONS_OF_ONE):
        known.begin("ana", ())
    assert len(known) == MAX_SESSIONS_OF_ONE + 1
    assert known.find(other) is not None


def test_what_has_ended_is_swept_away() -> None:
    clock = Clock()
    known = sessions(clock)
    known.begin("ana", ())
    clock.now_s += 101
    known.sweep()
    assert len(known) == 0
