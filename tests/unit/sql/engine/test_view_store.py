import sqlite3
import threading

import pytest

from penstock.sql.engine.view_store import Deleted, Stored, ViewStore


def row(key: bytes, value: bytes = b"v", *, start: int = 0, end: int = 0, offset: int = 0) -> Stored:
    return Stored(key, start, end, key, value, 1000, 0, offset)


@pytest.fixture
def store(tmp_path):
    store = ViewStore(tmp_path / "a.view", "one")
    yield store
    store.close()


def test_the_newest_row_of_a_key_counts(store):
    store.apply([row(b"a", b"1"), row(b"b"), row(b"a", b"2", offset=2), Deleted(b"b", 0, 0)], {0: 3})
    assert store.get(b"a") == [row(b"a", b"2", offset=2)]
    assert store.get(b"b") == []
    assert len(store) == 1
    assert store.positions() == {0: 3}


def test_windows_of_a_key_are_in_order(store):
    store.apply([row(b"a", start=start, end=start + 10) for start in (20, 0, 10)], {0: 3})
    assert [each.start for each in store.get(b"a")] == [0, 10, 20]
    assert [each.start for each in store.get(b"a", 5, 10)] == [10]
    store.apply([], {0: 4}, forget_ended_before=20)
    assert [each.start for each in store.get(b"a")] == [20]


def test_rows_between_keys_are_in_order(store):
    store.apply([row(bytes([each])) for each in (5, 1, 3)], {})
    assert [each.key for each in store.between(b"\x01", b"\x05")] == [b"\x01", b"\x03"]


def test_a_walk_sees_the_rows_as_they_were_when_it_began(store):
    store.apply([row(each.to_bytes(2, "big")) for each in range(2000)], {})
    walk = store.between(b"", b"\xff")
    next(walk)
    store.apply([Deleted(each.to_bytes(2, "big"), 0, 0) for each in range(2000)], {})
    assert len(list(walk)) == 1999
    assert len(store) == 0


def test_a_file_is_used_again_if_it_is_of_the_same_topic(tmp_path):
    path = tmp_path / "a.view"
    first = ViewStore(path, "one")
    first.apply([row(b"a")], {0: 1})
    first.close()
    again = ViewStore(path, "one")
    assert again.positions() == {0: 1}
    assert len(again) == 1
    again.close()
    other = ViewStore(path, "two")
    assert other.positions() == {}
    assert len(other) == 0
    other.close(delete=True)
    assert list(tmp_path.iterdir()) == []


def test_a_broken_file_is_made_anew(tmp_path):
    path = tmp_path / "a.view"
    path.write_bytes(b"this is no database" * 1000)
    store = ViewStore(path, "one")
    store.apply([row(b"a")], {0: 1})
    assert len(store) == 1
    store.close()


def test_each_thread_reads_for_itself_and_nothing_after_the_end(store):
    store.apply([row(b"a")], {0: 1})
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(store.get(b"a")))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [1] * 4
    store.close()
    with pytest.raises(sqlite3.ProgrammingError):
        store.get(b"a")
