"""What the console keeps of the past."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.errors import UserError
from penstock.console.clusters.model import Totals
from penstock.console.history import History
from penstock.console.history.series import MAX_GROUPS, Point, is_worth_a_row, series_of, thinned
from penstock.console.history.store import Store
from penstock.console.settings.model import HistorySettings
from tests.unit.console.clusters.making import group, topic, view


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "history.db")
    yield made
    made.close()


def read(store: Store, name: str, *, since_s: float = 0, until_s: float = 1e9) -> list[Point]:
    return store.read("local", [name], since_s=since_s, until_s=until_s)[name]


def test_a_look_becomes_series_of_the_cluster_its_topics_and_groups() -> None:
    found = dict(
        series_of(view([topic("orders", per_second=5.0, size_bytes=9)], [group("a/b", lag=7, lag_s=1.5)],
                       totals=Totals(records_in=5.0)))
    )  # fmt: skip
    assert found["cluster/records_in"] == 5.0
    assert "cluster/bytes_in" not in found
    assert (found["topic/orders/rate"], found["topic/orders/size"]) == (5.0, 9.0)
    assert (found["group/a/b/lag"], found["group/a/b/lag_s"]) == (7.0, 1.5)


def test_of_ten_thousand_groups_those_that_are_furthest_behind_are_kept() -> None:
    names = [
        name
        for name, _ in series_of(view(groups=[group(f"g{number}", lag=number) for number in range(10_000)]))
    ]
    assert len([name for name in names if name.endswith("/lag")]) == MAX_GROUPS
    assert "group/g9999/lag" in names
    assert "group/g1/lag" not in names


def test_a_value_that_does_not_change_is_seldom_written() -> None:
    last = Point(1000.0, 5.0)
    assert not is_worth_a_row(5.0, 1100.0, last)
    assert is_worth_a_row(5.1, 1100.0, last)
    assert is_worth_a_row(5.0, 1600.0, last)


def test_thinning_keeps_the_peaks() -> None:
    points = [Point(float(number), 100.0 if number == 777 else 1.0) for number in range(1000)]
    found = thinned(points, since_s=0, until_s=1000, most=50)
    assert len(found) <= 50
    assert Point(777.0, 100.0) in found


def test_a_value_holds_until_the_next_one(store: Store) -> None:
    store.write("local", 100, [("lag", 5.0)])
    store.write("local", 300, [("lag", 8.0)])
    assert read(store, "lag", since_s=200) == [Point(200.0, 5.0), Point(300.0, 8.0)]
    assert read(store, "nothing") == []


def test_old_points_become_fewer_and_the_oldest_go(store: Store) -> None:
    now = 200_000
    for at in range(now - 8000, now, 10):
        store.write("local", at, [("lag", float(at))])
    store.tidy(now, keep_s=7200, max_rows=100_000)
    points = read(store, "lag")
    assert points[0].at_s >= now - 7200
    old = [one for one in points if one.at_s < now - 3600]
    assert 55 <= len(old) <= 61, "one a minute"
    assert len([one for one in points if one.at_s >= now - 3600]) == 360


def test_rows_are_bounded_and_the_newest_stay(store: Store) -> None:
    for at in range(1000):
        store.write("local", 1_000_000 + at, [("lag", 1.0), ("rate", 2.0)])
    store.tidy(1_001_000, keep_s=1e9, max_rows=500)
    assert store.count() == 500
    assert read(store, "lag", until_s=2e6)[-1].at_s == 1_000_999


def test_a_history_in_a_file_is_there_after_a_restart(tmp_path: Path) -> None:
    settings = HistorySettings(file=tmp_path / "sub" / "history.db")
    for at_s, lag in ((1000.0, 3), (1010.0, 4)):
        history = History(settings)
        history.take("local", view(groups=[group("billing", lag=lag)], at_s=at_s))
        history.close()
    history = History(settings)
    found = history.read("local", ["group/billing/lag"], since_s=900, until_s=2000)
    history.close()
    assert found["group/billing/lag"] == [Point(1000.0, 3.0), Point(1010.0, 4.0)]


def test_clusters_do_not_mix(store: Store) -> None:
    store.write("local", 100, [("lag", 1.0)])
    store.write("other", 100, [("lag", 2.0)])
    assert read(store, "lag") == [Point(100.0, 1.0)]


def test_a_closed_history_is_empty_and_no_error() -> None:
    history = History()
    history.close()
    assert history.read("local", ["cluster/lag"], since_s=0) == {"cluster/lag": []}


def test_a_file_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="history cannot be kept in"):
        History(HistorySettings(file=tmp_path / "folder"))


def test_a_long_series_is_made_thin_without_looking_at_all_of_it_for_each_point(store: Store) -> None:
    now = 10_000_000
    connection = store._connection
    store.write("local", now - 7200, [("lag", 1.0)])
    points = [(store._ids["local", "lag"], now - 7200 - 60 * step, 1.0) for step in range(3000)]
    connection.execute("BEGIN")
    connection.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?)", points)
    connection.execute("COMMIT")
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(count, 1000)
    store.tidy(now, keep_s=1e9, max_rows=100_000)
    assert steps < 1000, (
        "thousands of instructions of SQLite, where each point is compared with all later ones"
    )


def test_stretches_that_end_between_two_tidyings_become_thin_too(store: Store) -> None:
    for at in range(1_000_000, 1_000_300, 10):
        store.write("local", at, [("lag", float(at))])
    for now in range(1_003_600, 1_004_000, 35):
        store.tidy(now, keep_s=1e9, max_rows=100_000)
    last = {at // 60: float(at) for at in range(1_000_000, 1_000_300, 10)}
    assert [one.at_s for one in read(store, "lag", until_s=2e6)] == list(last.values())


def test_series_of_which_nothing_is_left_are_forgotten(store: Store) -> None:
    for number in range(100):
        store.write("local", 1000 + number, [(f"group/console-{number}/lag", 1.0)])
    store.write("local", 9000, [("lag", 2.0)])
    store.tidy(9000, keep_s=100, max_rows=100_000)
    assert list(store._ids) == [("local", "lag")]
    store.write("local", 9001, [("group/console-1/lag", 3.0)])
    assert read(store, "group/console-1/lag", until_s=2e4) == [Point(9001.0, 3.0)]


def test_who_reads_has_a_turn_between_two_steps_of_tidying(store: Store) -> None:
    for at in range(0, 20_000, 2):
        store.write("local", at, [("lag", 1.0)])
    store.write("local", 100_000, [("lag", 1.0)])
    steps = store.tidying(100_000, keep_s=200_000, max_rows=100_000)
    counts = [store.count() for _ in steps]
    assert len(counts) > 3
    assert counts[0] > counts[-1]
