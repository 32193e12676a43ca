from collections.abc import Iterator
from itertools import count

import pytest

from penstock.broker.partitions import fetch_sessions
from penstock.broker.partitions.fetch_sessions import ENTRY_BYTES, EVICTABLE_AFTER_MS, FetchSessions
from penstock.model.errors import ErrorCode
from penstock.wire.fetch import FetchPartition, FetchRequest, FetchResult


def sessions(slots: int = 10) -> FetchSessions:
    numbers: Iterator[int] = count(1)
    return FetchSessions(slots, lambda: next(numbers))


def request(
    *indexes: int, session_id: int = 0, epoch: int = 0, forgotten: tuple[int, ...] = (), offset: int = 0
) -> FetchRequest:
    wanted = [FetchPartition(index, -1, offset, -1, -1, 1 << 20) for index in indexes]
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=session_id,
        session_epoch=epoch,
        topics=[("t", wanted)] if wanted else [],
        forgotten=[("t", list(forgotten))] if forgotten else [],
        rack_id="",
    )


def indexes(plan: object) -> list[int]:
    return [entry.index for entry in plan.entries]  # type: ignore[attr-defined]


def test_a_full_fetch_opens_a_session_and_the_next_one_sends_only_what_changed() -> None:
    store = sessions()
    first = store.plan(request(0, 1, 2), by_id=False, now_ms=0)
    assert (first.session_id, first.is_incremental, indexes(first)) == (1, False, [0, 1, 2])
    second = store.plan(request(2, session_id=1, epoch=1, forgotten=(0,), offset=9), by_id=False, now_ms=0)
    assert (second.is_incremental, indexes(second)) == (True, [1, 2])
    assert [entry.wanted.fetch_offset for entry in second.entries] == [0, 9]


def test_a_wrong_epoch_or_an_unknown_session_is_refused() -> None:
    store = sessions()
    store.plan(request(0), by_id=False, now_ms=0)
    assert store.plan(request(session_id=1, epoch=5), by_id=False, now_ms=0).error_code == (
        ErrorCode.INVALID_FETCH_SESSION_EPOCH
    )
    assert store.plan(request(session_id=9, epoch=1), by_id=False, now_ms=0).error_code == (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )


def test_a_session_does_not_change_between_names_and_ids() -> None:
    store = sessions()
    store.plan(request(0), by_id=False, now_ms=0)
    plan = store.plan(request(session_id=1, epoch=1), by_id=True, now_ms=0)
    assert plan.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_final_epoch_closes_the_session() -> None:
    store = sessions()
    store.plan(request(0), by_id=False, now_ms=0)
    plan = store.plan(request(0, session_id=1, epoch=-1), by_id=False, now_ms=0)
    assert (plan.session, len(store)) == (None, 0)


def test_without_room_a_client_goes_on_without_a_session() -> None:
    store = sessions(slots=1)
    store.plan(request(0), by_id=False, now_ms=0)
    assert store.plan(request(0), by_id=False, now_ms=1).session is None
    late = store.plan(request(0), by_id=False, now_ms=EVICTABLE_AFTER_MS)
    assert late.session is not None
    assert len(store) == 1


def test_only_news_is_told_and_an_error_until_it_is_gone() -> None:
    (entry,) = sessions().plan(request(0), by_id=False, now_ms=0).entries
    good = FetchResult(0, 0, 10, 10, 0)
    assert entry.has_news(good)
    assert not entry.has_news(good)
    assert entry.has_news(FetchResult(0, 0, 11, 11, 0))
    assert entry.has_news(FetchResult(0, 3))
    assert entry.has_news(FetchResult(0, 3))
    assert entry.has_news(FetchResult(0, 0, 11, 11, 0))


def test_partitions_that_were_served_go_to_the_back_of_the_line() -> None:
    store = sessions()
    session = store.plan(request(0, 1, 2), by_id=False, now_ms=0).session
    assert session is not None
    session.to_the_back([session.entries[("t", 0)]])
    assert indexes(store.plan(request(session_id=1, epoch=1), by_id=False, now_ms=0)) == [1, 2, 0]


def test_who_names_a_partition_again_is_told_all_again() -> None:
    """A follower that had to cut its log takes nothing else from that answer, and would never hear of the high watermark."""
    store = sessions()
    (entry,) = store.plan(request(0), by_id=False, now_ms=0).entries
    good = FetchResult(0, 0, 10, 10, 0)
    assert entry.has_news(good)
    (unnamed,) = store.plan(request(session_id=1, epoch=1), by_id=False, now_ms=0).entries
    assert not unnamed.has_news(good)
    (named,) = store.plan(request(0, session_id=1, epoch=2, offset=9), by_id=False, now_ms=0).entries
    assert named.has_news(good)


def test_what_sessions_remember_together_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MAX_BYTES", 10 * (ENTRY_BYTES + 1))
    store = sessions()
    assert store.plan(request(*range(6)), by_id=False, now_ms=0).session_id == 1
    assert store.plan(request(*range(5)), by_id=False, now_ms=0).session_id == 0, "it goes on without one"
    assert store.plan(request(*range(4)), by_id=False, now_ms=0).session_id == 2
    again = store.plan(request(0, 1, session_id=2, epoch=1), by_id=False, now_ms=0)
    assert sorted(indexes(again)) == [0, 1, 2, 3]
    grown = store.plan(request(7, session_id=2, epoch=2), by_id=False, now_ms=0)
    assert grown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    store.plan(request(7, session_id=1, epoch=1, forgotten=(0, 1, 99)), by_id=False, now_ms=0)
    assert store._size_bytes == 5 * (ENTRY_BYTES + 1)
    late = store.plan(request(*range(9)), by_id=False, now_ms=EVICTABLE_AFTER_MS)
    assert late.session_id, "those that are not used make room"
    store.plan(request(session_id=late.session_id, epoch=-1), by_id=False, now_ms=EVICTABLE_AFTER_MS)
    assert store._size_bytes == 0
