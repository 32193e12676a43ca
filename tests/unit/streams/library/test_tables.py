"""Programs with groups, windows, tables and joins, tried in this process."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.streams import App, TopologyError, col, fn, hopping, session, tumbling
from penstock.streams.library.driver import TestDriver
from penstock.streams.library.stream import Stream
from penstock.streams.library.table import Table

Row = dict[str, Any]


def clicks(app: App) -> Stream:
    return app.stream("clicks", key={"user": str}, value={"page": str, "ms": int})


def users(app: App) -> Table:
    return app.table("users", key={"user": str}, value={"name": str, "city": str})


def put(test: TestDriver, *rows: tuple[Any, Any, int] | tuple[Any, Any, int, int]) -> None:
    for user, page, ms, *at in rows:
        test.pipe("clicks", {"page": page, "ms": ms}, key=user, timestamp=at[0] if at else None)


def pairs(test: TestDriver, topic: str = "out") -> list[tuple[Any, Any]]:
    return [(record.key, record.value) for record in test.read(topic)]


# ---------------------------------------------------------------- groups


def test_rows_are_counted_by_a_column_across_partitions() -> None:
    app = App("app")
    clicks(app).group_by("page").count(store="pages").to("out")
    with app.test(partitions=3) as test:
        put(test, ("a", "home", 1), ("b", "home", 1), ("c", "blog", 1), ("c", None, 1))
        assert test.table("out") == {"home": {"count": 2}, "blog": {"count": 1}}
        store = test.store("pages")
        assert store.get("home") == {"count": 2}
        assert store.get("nowhere") is None
        assert [(entry.key, entry.value["count"]) for entry in store.all()] == [("blog", 1), ("home", 2)]
        assert [entry.key for entry in store.range("c", None)] == ["home"]
        assert len(store) == 2


def test_aggregates_of_columns_and_expressions_over_them() -> None:
    app = App("app")
    by_page = clicks(app).group_by("page")
    by_page.aggregate(
        total=fn("SUM", col("ms")),
        mean=fn("SUM", col("ms")) / fn("COUNT", 1),
        who=fn("COLLECT_SET", col("user")),
        store="pages",
    ).to("out")
    with app.test() as test:
        put(test, ("a", "home", 2), ("b", "home", 5))
        assert test.table("out") == {"home": {"total": 7, "mean": 3, "who": ["a", "b"]}}
        assert test.store("pages").get("home")["mean"] == 3


@pytest.mark.parametrize(("name", "result"), [("sum", 9), ("min", 2), ("max", 4), ("avg", 3.0)])
def test_an_aggregate_has_a_short_name(name: str, result: float) -> None:
    app = App("app")
    getattr(clicks(app).group_by_key(), name)("ms").to("out")
    with app.test() as test:
        put(test, ("a", "x", 4), ("a", "x", 2), ("a", "x", 3))
        assert test.table("out") == {"a": {name: result}}


def test_functions_aggregate_and_reduce() -> None:
    app = App("app")
    by_page = clicks(app).group_by("page")

    def add(key: str, row: Row, state: Row) -> Row:
        assert set(row) == {"page", "ms", "user", "ROWTIME"}
        return {"key": key, "users": [*state["users"], row["user"]]}

    by_page.aggregate(lambda: {"users": []}, add, value={"key": str, "users": list[str]}).to("out")
    by_page.reduce(lambda so_far, row: row if row["ms"] > so_far["ms"] else so_far, store="slowest").to(
        "most"
    )
    with app.test() as test:
        put(test, ("a", "home", 2), ("b", "home", 5), ("c", "home", 3))
        assert test.table("out") == {"home": {"key": "home", "users": ["a", "b", "c"]}}
        assert test.table("most") == {"home": {"page": "home", "ms": 5}}
        test.restart()
        assert test.store("slowest").get("home") == {"page": "home", "ms": 5}


def test_groups_of_two_streams_have_one_state() -> None:
    app = App("app")
    other = app.stream("orders", key={"id": int}, value={"who": str, "price": int})
    both = (
        clicks(app).group_by_key().cogroup(lambda key, row, state: {**state, "clicks": state["clicks"] + 1})
    )
    both = both.cogroup(
        other.group_by("who"), lambda key, row, state: {**state, "spent": state["spent"] + row["price"]}
    )
    both.aggregate(lambda: {"clicks": 0, "spent": 0}, value={"clicks": int, "spent": int}, store="both").to(
        "out"
    )
    with app.test(partitions=2) as test:
        put(test, ("a", "x", 1), ("a", "x", 1))
        test.pipe("orders", {"who": "a", "price": 30}, key=1)
        assert test.store("both").get("a") == {"clicks": 2, "spent": 30}
        assert len(test.read("out")) == 3


# ---------------------------------------------------------------- windows


def test_tumbling_windows_close_after_their_grace_period() -> None:
    app = App("app")
    clicks(app).group_by_key().window(tumbling("10 ms", grace=5)).count(store="n").to("out")
    with app.test() as test:
        put(test, ("a", "x", 1, 3), ("b", "x", 1, 14), ("a", "x", 1, 9), ("b", "x", 1, 15), ("a", "x", 1, 8))
        assert [(record.key, record.window, record.value["count"]) for record in test.read("out")] == [
            ("a", (0, 10), 1), ("b", (10, 20), 1), ("a", (0, 10), 2), ("b", (10, 20), 2),
        ]  # fmt: skip
        assert [trouble.kind for trouble in test.troubles] == ["late"]
        assert [(entry.window, entry.value) for entry in test.store("n").fetch("a")] == [
            ((0, 10), {"count": 2})
        ]
        assert test.store("n").fetch("b", 11) == []
        assert [entry.window for entry in test.store("n").all()] == [(0, 10), (10, 20)]
        with pytest.raises(TopologyError, match="ask fetch"):
            test.store("n").get("a")


def test_hopping_windows_overlap_and_know_their_bounds() -> None:
    app = App("app")
    counted = clicks(app).group_by_key().window(hopping(10, advance=5)).count()
    counted.select("count", begin=col("WINDOWSTART"), end=col("WINDOWEND")).to("out")
    with app.test() as test:
        put(test, ("a", "x", 1, 7))
        assert [(each["begin"], each["end"]) for each in test.values("out")] == [(0, 10), (5, 15)]


def test_sessions_merge() -> None:
    app = App("app")
    sessions = clicks(app).group_by_key().window(session(10))
    sessions.aggregate(
        list,
        lambda key, row, state: [*state, row["ms"]],
        merge=lambda key, one, two: one + two,
        value=list[int],
        store="s",
    ).to("out")
    sessions.reduce(lambda so_far, row: {**row, "ms": so_far["ms"] + row["ms"]}).to("sums")
    with app.test() as test:
        put(test, ("a", "x", 1, 0), ("a", "x", 2, 20), ("a", "x", 3, 10))
        assert test.table("out") == {("a", 0): [1, 2, 3]}
        assert test.table("sums") == {("a", 0): {"page": "x", "ms": 6}}
        (entry,) = test.store("s").fetch("a")
        assert (entry.window, entry.value) == ((0, 20), [1, 2, 3])


def test_only_the_last_row_of_a_window_goes_on() -> None:
    app = App("app")
    counted = (
        clicks(app)
        .group_by("page")
        .window(tumbling(10, grace=0))
        .aggregate(n=fn("COUNT", 1), mean=fn("SUM", col("ms")) / fn("COUNT", 1))
    )
    counted.suppress().to("out")
    with app.test() as test:
        put(test, ("a", "x", 2, 1), ("b", "x", 4, 2))
        assert test.read("out") == []
        put(test, ("b", "x", 1, 10))
        assert test.values("out") == [{"n": 2, "mean": 3}]


def test_a_stream_of_windows_is_grouped_by_something_else() -> None:
    app = App("app")
    counted = clicks(app).group_by("page").window(tumbling(10)).count()
    counted.to_stream().select_key(begin=col("WINDOWSTART")).group_by_key().max("count").to("out")
    counted.to_stream().map(lambda row: (row["page"], row["count"]), key=str, value=int).to_table(
        store="last"
    )
    with app.test() as test:
        put(test, ("a", "x", 1, 1), ("a", "x", 1, 2), ("a", "y", 1, 3), ("a", "y", 1, 13))
        assert test.table("out") == {0: {"max": 2}, 10: {"max": 1}}
        assert test.store("last").get("x") == 2


# ---------------------------------------------------------------- tables


def test_a_row_that_stops_matching_goes() -> None:
    app = App("app")
    users(app).filter(col("city") == "Bern").map_values(
        lambda row: {"n": len(row["name"])}, value={"n": int}
    ).to("out")
    with app.test() as test:
        test.pipe("users", {"name": "Ann", "city": "Bern"}, key="a")
        test.pipe("users", {"name": "Ann", "city": "Rome"}, key="a")
        test.pipe("users", None, key="a")
        assert pairs(test) == [("a", {"n": 3}), ("a", None)]


def test_a_group_of_a_table_follows_its_changes() -> None:
    app = App("app")
    by_city = users(app).group_by("city")
    by_city.count().to("out")
    by_city.aggregate(
        list,
        lambda key, row, state: sorted([*state, row["name"]]),
        remove=lambda key, row, state: [each for each in state if each != row["name"]],
        value=list[str],
        store="names",
    )
    with app.test(partitions=2) as test:
        test.pipe("users", {"name": "Ann", "city": "Bern"}, key="a")
        test.pipe("users", {"name": "Bob", "city": "Bern"}, key="b")
        test.pipe("users", {"name": "Ann", "city": "Rome"}, key="a")
        assert test.table("out") == {"Bern": {"count": 1}, "Rome": {"count": 1}}
        assert test.store("names").get("Bern") == ["Bob"]
        assert test.store("names").get("Rome") == ["Ann"]


def test_the_rows_of_a_table_can_be_asked() -> None:
    app = App("app")
    table = app.table("users", key={"user": str}, value={"name": str, "city": str}, store="users")
    table.select("name").materialize("names").to_stream().to("out")
    with app.test(partitions=2) as test:
        test.pipe("users", {"name": "Ann", "city": "Bern"}, key="a")
        test.pipe("users", {"name": "Bob", "city": "Bern"}, key="b")
        test.pipe("users", None, key="b")
        assert [(entry.key, entry.value) for entry in test.store("users").all()] == [
            ("a", {"name": "Ann", "city": "Bern"})
        ]
        assert test.store("names").get("a") == {"name": "Ann"}


# ---------------------------------------------------------------- joins


def test_streams_join_within_a_time() -> None:
    app = App("app")
    left, right = clicks(app), app.stream("views", key={"user": str}, value={"page": str})
    left.join(right, within=5).to("inner")
    left.left_join(right, within=5, grace=0).select("page", "page_right").to("left")
    left.outer_join(right, before=0, after=5, suffix="_2").select("page", "page_2").to("outer")
    with app.test() as test:
        put(test, ("a", "x", 1, 10))
        test.pipe("views", {"page": "y"}, key="a", timestamp=14)
        test.pipe("views", {"page": "z"}, key="a", timestamp=9)
        put(test, ("b", "w", 1, 30), ("b", "w", 1, 60))
        assert pairs(test, "inner") == [
            ("a", {"page": "x", "ms": 1, "page_right": "y"}),
            ("a", {"page": "x", "ms": 1, "page_right": "z"}),
        ]
        assert {"page": "w", "page_right": None} in test.values("left")
        outer = test.values("outer")
        assert {"page": "x", "page_2": "y"} in outer
        assert {"page": None, "page_2": "z"} in outer


def test_a_stream_whose_key_has_changed_meets_a_table() -> None:
    app = App("app")
    moved = clicks(app).select_key("page")
    pages = app.table("pages", key=str, value={"title": str})
    moved.join(pages).select("title", "ms").to("out")
    moved.left_join(pages).select("title").to("left")
    with app.test(partitions=3) as test:
        test.pipe("pages", {"title": "Home"}, key="home")
        put(test, ("a", "home", 1), ("b", "blog", 2), ("c", "home", 3))
        assert pairs(test) == [("home", {"title": "Home", "ms": 1}), ("home", {"title": "Home", "ms": 3})]
        assert ("blog", {"title": None}) in pairs(test, "left")


def test_a_global_table_is_asked_by_any_column() -> None:
    app = App("app")
    pages = app.global_table("pages", key={"id": str}, value={"title": str})
    clicks(app).join(pages, on=fn("LCASE", col("page"))).select("title").to("out")
    clicks(app).left_join(pages, on="page").select("page", "title").to("left")
    with app.test(partitions={"clicks": 3, "pages": 2}) as test:
        test.pipe("pages", {"title": "Home"}, key="home")
        put(test, ("a", "HOME", 1), ("b", "blog", 2))
        assert pairs(test) == [("a", {"title": "Home"})]
        assert ("b", {"page": "blog", "title": None}) in pairs(test, "left")


def test_tables_join_by_key() -> None:
    app = App("app")
    left, right = users(app), app.table("ages", key={"user": str}, value={"age": int})
    left.join(right, store="both").to("inner")
    left.left_join(right).to("left")
    left.outer_join(right).select("name", "age").to("outer")
    with app.test(partitions=2) as test:
        test.pipe("users", {"name": "Ann", "city": "Bern"}, key="a")
        test.pipe("ages", {"age": 7}, key="b")
        assert test.read("inner") == []
        test.pipe("ages", {"age": 30}, key="a")
        assert test.table("inner") == {"a": {"name": "Ann", "city": "Bern", "age": 30}}
        assert test.store("both").get("a")["age"] == 30
        assert test.table("left") == {"a": {"name": "Ann", "city": "Bern", "age": 30}}
        assert test.table("outer") == {"a": {"name": "Ann", "age": 30}, "b": {"name": None, "age": 7}}


def test_tables_join_by_a_foreign_key() -> None:
    app = App("app")
    cities = app.table("cities", key=str, value={"country": str})
    users(app).join(cities, on="city", store="where").select("name", "country").to("out")
    users(app).left_join(cities, on="city").select("name", "country").to("left")
    with app.test(partitions={"users": 2, "cities": 3, "out": 1, "left": 1}) as test:
        test.pipe("users", {"name": "Ann", "city": "Bern"}, key="a")
        assert test.table("left") == {"a": {"name": "Ann", "country": None}}
        test.pipe("cities", {"country": "CH"}, key="Bern")
        assert test.table("out") == {"a": {"name": "Ann", "country": "CH"}}
        test.pipe("cities", {"country": "Suisse"}, key="Bern")
        assert test.store("where").get("a")["country"] == "Suisse"


def test_keys_of_other_formats_meet() -> None:
    """Through a topic whose keys have the format of the other side's; keys of several columns are JSON where KAFKA has one."""
    app = App("app", key_format="KAFKA")
    clicks(app).group_by("page", half=col("ms") / 2).count(store="both").to("both", key_format="JSON")
    ages = app.table("ages", key={"user": str}, value={"age": int}, key_format="JSON")
    clicks(app).join(ages).select("age").to("out")
    clicks(app).select_key("page").join(clicks(app).select_key("page"), within=5).select("ms").to("twice")
    users(app).left_join(ages).select("age").to("ages-of-users")
    with app.test(partitions=3) as test:
        test.pipe("ages", {"age": 7}, key="a")
        test.pipe("users", {"name": "Ann", "city": "Bern"}, key="a")
        put(test, ("a", "x", 4))
        test.restart()
        put(test, ("b", "x", 5))
        assert test.store("both").get({"page": "x", "half": 2}) == {"count": 2}
        assert [record.key for record in test.read("both")] == [{"page": "x", "half": 2}] * 2
        assert pairs(test) == [("a", {"age": 7})]
        assert len(test.read("twice")) == 4
        assert test.table("ages-of-users") == {"a": {"age": 7}}
        assert test.troubles == []
