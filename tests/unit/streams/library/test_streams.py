"""Programs over streams, tried in this process: each operation by what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from penstock.streams import App, TopologyError, col, decimal, fn, lit, sliding, struct, when
from penstock.streams.library.processors import Context
from penstock.streams.library.stream import Stream

Row = dict[str, Any]
VALUE = {"page": str, "ms": int}


def clicks(app: App, topic: str = "clicks") -> Stream:
    return app.stream(topic, key={"user": str}, value=VALUE)


def ran(app: App, *rows: tuple[Any, Any], out: str = "out", partitions: int = 1) -> list[tuple[Any, Any]]:
    with app.test(partitions=partitions) as test:
        for key, value in rows:
            test.pipe("clicks", value, key=key)
        assert test.troubles == []
        return [(record.key, record.value) for record in test.read(out)]


def click(page: str | None, ms: int | None = 1) -> Row:
    return {"page": page, "ms": ms}


def test_columns_filter_and_compute() -> None:
    app = App("app")
    fast = clicks(app).filter((col("ms") > 1) & ~col("page").like("b%"))
    fast.select("page", seconds=col("ms") / 1000.0, upper=fn("UCASE", col("page"))).to("out")
    found = ran(app, ("ann", click("home", 500)), ("ann", click("blog", 500)), ("bob", click("home", 1)))
    assert found == [("ann", {"page": "home", "seconds": 0.5, "upper": "HOME"})]


def test_functions_filter_and_compute() -> None:
    app = App("app")
    slow = clicks(app).filter(lambda row: row["ms"] > 1 and row["user"] != "eve")
    slow.map_values(
        lambda row: {"size": len(row["page"]), "page": row["page"]}, value={"size": int, "page": str}
    ).to("out")
    found = ran(app, ("ann", click("home", 2)), ("eve", click("home", 2)), ("ann", click("home", 1)))
    assert found == [("ann", {"size": 4, "page": "home"})]


def test_a_function_that_fails_or_gives_what_does_not_fit_loses_its_row() -> None:
    app = App("app")
    clicks(app).map_values(lambda row: {"n": row["page"]} if row["ms"] else 1 / 0, value={"n": int}).to("out")
    with app.test() as test:
        test.pipe("clicks", click("home", 1), key="a")
        test.pipe("clicks", click("home", 0), key="a")
        assert test.read("out") == []
        assert [str(each.error) for each in test.troubles] == [
            "column n is BIGINT, and was given 'home' (str)",
            "division by zero",
        ]
        assert {each.kind for each in test.troubles} == {"process"}


def test_what_is_null_is_neither_true_nor_lost() -> None:
    app = App("app")
    clicks(app).filter_not(col("ms") > 5).to("out")
    assert ran(app, ("a", click("x", None)), ("a", click("y", 9)), ("a", click("z", 1))) == [
        ("a", click("x", None)),
        ("a", click("z", 1)),
    ]


def test_a_value_that_is_null_passes_a_new_value() -> None:
    app = App("app")
    clicks(app).map_values(lambda row: {"n": row["ms"] + 1}, value={"n": int}).select(m=col("n") + 1).to(
        "out"
    )
    assert ran(app, ("a", None), ("a", click("x", 1))) == [("a", None), ("a", {"m": 3})]


def test_columns_are_added_replaced_and_left_out() -> None:
    app = App("app")
    clicks(app).with_columns(ms=col("ms") * 2, kind=when(col("ms") > 5, "slow", "fast")).without("page").to(
        "out"
    )
    assert ran(app, ("a", click("x", 3))) == [("a", {"ms": 6, "kind": "fast"})]


def test_map_gives_new_keys_and_values() -> None:
    app = App("app")
    source = clicks(app)
    source.map(lambda row: (row["page"], row["ms"]), key=str, value=int).to("out")
    source.map(key={"page": col("page")}, value={"who": col("user")}).to("columns")
    with app.test() as test:
        test.pipe("clicks", click("home", 7), key="ann")
        assert [record[:2] for record in test.read("out")] == [("home", 7)]
        assert [record[:2] for record in test.read("columns")] == [("home", {"who": "ann"})]


def test_flat_map_and_flat_map_values_give_several() -> None:
    app = App("app")

    def letters(row: Row) -> Iterator[tuple[str, Row]]:
        for letter in row["page"]:
            yield letter, {"ms": row["ms"]}

    source = clicks(app)
    source.flat_map(letters, key=str, value={"ms": int}).to("out")
    source.flat_map_values(lambda row: row["page"].split("/"), value=str).to("parts")
    with app.test() as test:
        test.pipe("clicks", click("a/b", 1), key="k")
        assert [record.key for record in test.read("out")] == ["a", "/", "b"]
        assert [record[:2] for record in test.read("parts")] == [("k", "a"), ("k", "b")]


def test_an_array_explodes() -> None:
    app = App("app")
    app.stream("clicks", key=str, value={"tags": list[str], "n": int}).explode("tags", name="tag").select(
        "tag", "n"
    ).to("out")
    assert ran(app, ("a", {"tags": ["x", "y"], "n": 1}), ("a", {"tags": [], "n": 2})) == [
        ("a", {"tag": "x", "n": 1}),
        ("a", {"tag": "y", "n": 1}),
    ]


def test_another_key_is_selected() -> None:
    app = App("app")
    source = clicks(app)
    source.select_key("page").to("out")
    source.select_key(lambda row: row["ms"] % 2, key={"odd": int}).to("odd")
    source.select_key(id=fn("CONCAT", col("user"), col("page"))).to("both")
    assert source.select_key("page").key_columns == ("page_key",)
    with app.test() as test:
        test.pipe("clicks", click("home", 3), key="ann")
        assert test.read("out")[0][:2] == ("home", click("home", 3))
        assert test.read("odd")[0].key == 1
        assert test.read("both")[0].key == "annhome"


def test_rows_go_into_the_first_branch_that_takes_them() -> None:
    app = App("app")
    home, slow, others = clicks(app).branch(col("page") == "home", lambda row: row["ms"] > 5)
    home.to("out")
    slow.to("slow")
    others.to("others")
    with app.test() as test:
        for page, ms in (("home", 9), ("x", 9), ("y", 1), (None, 1)):
            test.pipe("clicks", click(page, ms))
        assert [row["page"] for row in test.values("out")] == ["home"]
        assert [row["page"] for row in test.values("slow")] == ["x"]
        assert [row["page"] for row in test.values("others")] == ["y", None]


def test_streams_merge() -> None:
    app = App("app")
    clicks(app).merge(clicks(app, "more")).group_by_key().count().to("out")
    with app.test() as test:
        test.pipe("clicks", click("a"), key="k")
        test.pipe("more", click("b"), key="k")
        assert test.values("out") == [{"count": 1}, {"count": 2}]


def test_rows_are_looked_at() -> None:
    app, peeked, seen = App("app"), [], []
    clicks(app).peek(lambda row: peeked.append(row["page"])).filter(col("ms") > 1).foreach(seen.append)
    with app.test() as test:
        test.pipe("clicks", click("a", 1), key="k", timestamp=5)
        test.pipe("clicks", click("b", 2), key="k", timestamp=6)
    assert peeked == ["a", "b"]
    assert seen == [{"user": "k", "page": "b", "ms": 2, "ROWTIME": 6}]


def test_rows_go_on_through_a_topic() -> None:
    app = App("app")
    clicks(app).select("ms").through("between").select(twice=col("ms") * 2).repartition(name="again").to(
        "out"
    )
    with app.test(partitions={"clicks": 2, "between": 3, "out": 1}) as test:
        test.pipe("clicks", click("a", 4), key="k")
        assert test.values("between") == [{"ms": 4}]
        assert test.values("out") == [{"twice": 8}]


class Deduplicate:
    def init(self, context: Any) -> None:
        self.context = context
        context.schedule("1 second", self.told)

    def process(self, row: Row, context: Any) -> None:
        seen = context.store("seen")
        if seen.get(row["page"]) is None:
            seen.put(row["page"], {"at": context.timestamp})
            context.forward(
                row["page"], {"n": row["ms"], "trace": dict(context.headers).get("trace", b"").decode()}
            )

    def told(self, stream_time: int) -> None:
        pages = [page for page, _ in self.context.store("seen").all()]
        self.context.forward("pages", {"n": len(pages), "trace": str(stream_time)})


def test_a_processor_has_stores_timers_and_headers() -> None:
    app = App("app")
    clicks(app).process(Deduplicate, key=str, value={"n": int, "trace": str}, stores=["seen"]).to("out")
    with app.test() as test:
        test.pipe("clicks", click("a", 1), key="k", timestamp=1000, headers={"trace": b"t1"})
        test.restart()
        test.pipe("clicks", click("a", 2), key="k", timestamp=1500)
        test.pipe("clicks", click("b", 3), key="k", timestamp=2600)
        found = test.read("out")
    assert [(record.key, record.value["n"], record.value["trace"]) for record in found] == [
        ("a", 1, "t1"), ("b", 3, ""), ("pages", 2, "2600"),
    ]  # fmt: skip
    assert found[0].headers == (("trace", b"t1"),)


def test_times_dates_decimals_and_structs_are_pythons() -> None:
    app = App("app")
    order = app.stream(
        "clicks",
        key=int,
        value={"at": datetime, "price": decimal(6, 2), "to": {"city": str, "zip": int}, "n": dict[str, int]},
        timestamp="at",
    )
    seen: list[Row] = []
    order.peek(seen.append).select(
        "at",
        dear=col("price") > Decimal("9.99"),
        city=col("to").field("city"),
        one=col("n")["x"],
        old=col("at") < datetime(2020, 1, 1),
        pair=struct(a=lit(1), b=col("price").cast(str)),
    ).to("out")
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    with app.test() as test:
        test.pipe("clicks", {"at": at, "price": 10, "to": {"city": "Bern"}, "n": {"x": 3}}, key=7)
        (record,) = test.read("out")
    assert record.timestamp == 1_767_323_045_000
    assert record.value == {
        "at": at, "dear": True, "city": "Bern", "one": 3, "old": False, "pair": {"a": 1, "b": "10.00"},
    }  # fmt: skip
    assert seen[0]["at"] == at
    assert seen[0]["price"] == Decimal("10.00")
    assert seen[0]["to"] == {"city": "Bern", "zip": None}


def test_formats_headers_and_bare_values() -> None:
    app = App("app", registry="http://localhost:8081", value_format="AVRO")
    source = app.stream(
        "clicks", key=str, value={"v": str}, key_format="KAFKA", value_format="DELIMITED", headers={"h": "h"}
    )
    source.select("v").to("out", key_format="KAFKA")
    source.select(value=fn("LEN", col("v"))).to("bare", key_format="KAFKA", value_format="KAFKA")
    with app.test() as test:
        test.pipe("clicks", b"x1", key=b"k", headers={"h": b"y"})
        assert test.driver.outputs("out")[0].value[:5] == b"\0\0\0\0\1"
        assert test.read("out")[0][:2] == ("k", {"v": "x1"})
        assert test.driver.outputs("bare")[0].value == b"\0\0\0\2"
        assert test.read("bare")[0].value == 2


def test_a_topic_without_a_key_is_read() -> None:
    app = App("app")
    app.stream("clicks", value=str).select_key(
        lambda row: row["value"][0], key=str
    ).group_by_key().count().to("out")
    with app.test() as test:
        test.pipe("clicks", "home")
        test.pipe("clicks", "help", key=b"whatever")
        assert test.table("out") == {"h": {"count": 2}}


def test_records_that_cannot_be_read_are_told() -> None:
    app = App("app")
    clicks(app).to("out")
    with app.test() as test:
        test.pipe("clicks", b"{", key="k")
        assert test.read("out") == []
        assert [trouble.kind for trouble in test.troubles] == ["deserialize"]


class Heartbeat:
    """Says each minute of the wall clock how many rows there were."""

    def init(self, context: Any) -> None:
        self.context, self.count = context, 0
        context.schedule("1 minute", self.beat, clock="wall")

    def beat(self, now: int) -> None:
        if self.count == 3:
            raise ValueError("three is too much")
        self.context.forward("beat", {"n": self.count})

    def process(self, row: dict[str, Any], context: Any) -> None:
        self.count += 1


def test_a_timer_by_the_wall_clock_goes_off_without_rows() -> None:
    app = App("beats")
    app.stream("in", key=str, value={"n": int}).process(Heartbeat, value={"n": int}).to("beats")
    with app.test() as test:
        test.advance_wall_clock("59 seconds")
        assert test.values("beats") == []
        test.pipe("in", {"n": 1}, key="a", timestamp=10**12)
        test.advance_wall_clock("1 second")
        (beat,) = test.read("beats")
        assert (beat.key, beat.value, beat.timestamp) == ("beat", {"n": 1}, 60_000)
        test.advance_wall_clock("5 minutes")  # it is called once
        test.advance_wall_clock("59 seconds")
        assert test.values("beats") == [{"n": 1}]
        for _ in range(2):
            test.pipe("in", {"n": 1}, key="a")
        test.advance_wall_clock("1 second")
        assert (test.values("beats"), [str(each.error) for each in test.troubles]) == (
            [],
            ["three is too much"],
        )
        with pytest.raises(TopologyError, match="there is no clock 'wal': did you mean 'wall'"):
            Context(None, None).schedule("1 minute", print, clock="wal")  # type: ignore[arg-type]


def test_an_explanation_names_the_tier_and_its_reason() -> None:
    def explained(make: Any) -> str:
        app = App("tiers")
        make(app.stream("in", key=str, value={"n": int}))
        text, drawing = app.explain(), app.explain("drawing")
        (line,) = [each for each in text.splitlines() if each.startswith("Tier: ")]
        assert line.removeprefix("Tier: ").rstrip(".") in drawing
        return line

    assert "because its state is in the tasks' memory" in explained(
        lambda rows: rows.group_by_key().count().to("out")
    )
    assert "functions of the program are called" in explained(lambda rows: rows.peek(print).to("out"))
    assert "long tasks on Spark, record by record, at least once, because its expressions" in explained(
        lambda rows: rows.filter(col("n") > 1).to("out")
    )


def test_sliding_windows_hold_rows_that_lie_close_together() -> None:
    app = App("close")
    clicks = app.stream("clicks", key=str, value={"n": int})
    near = clicks.group_by_key().window(sliding(seconds=10, grace="5 seconds"))
    near.sum("n", store="near").to("sums")
    near.count().suppress().to("final")
    with app.test() as test:
        for time, n in ((20_000, 1), (25_000, 2), (33_000, 4)):
            test.pipe("clicks", {"n": n}, key="a", timestamp=time)
        assert {each.window[0]: each.value for each in test.store("near").fetch("a") if each.window} == {
            10_000: {"sum": 1}, 15_000: {"sum": 3}, 20_001: {"sum": 2}, 23_000: {"sum": 6}, 25_001: {"sum": 4},
        }  # fmt: skip
        assert test.table("final") == {("a", 10_000): {"count": 1}, ("a", 15_000): {"count": 2}}
        test.restart()
        test.pipe("clicks", {"n": 8}, key="a", timestamp=38_001)
        assert test.table("final")["a", 23_000] == {"count": 2}
