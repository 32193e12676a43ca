"""What a program may not say is refused by the call that says it, in one line; and importing the library is cheap."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from penstock.streams import App, TopologyError, col, fn, hopping, lit, session, tumbling
from penstock.streams.library.stream import Stream
from penstock.streams.library.table import Table
from penstock.streams.library.values import BadValue


class Made:
    def __init__(self) -> None:
        self.app = App("app")
        self.clicks: Stream = self.app.stream("clicks", key={"user": str}, value={"page": str, "ms": int})
        self.users: Table = self.app.table("users", key={"user": str}, value={"name": str, "ms": int})
        self.bare: Stream = self.app.stream("bare", value={"n": int})
        self.other = App("other").stream("clicks", key=str, value={"page": str})


REFUSED: dict[str, Callable[[Made], Any]] = {
    "there is no column 'pgae': did you mean 'page'?": lambda m: m.clicks.filter(col("pgae") == "x"),
    "there is no column 'Z': there are user, page, ms": lambda m: m.clicks.select("Z"),
    "there is no function 'UCSE': did you mean 'UCASE'?": lambda m: fn("UCSE", col("page")),
    "there is no format 'jsn': did you mean 'JSON'?": lambda m: m.clicks.to("out", value_format="jsn"),
    "AVRO needs a schema registry": lambda m: m.clicks.to("out", value_format="AVRO"),
    "there is no store 'pages', and no other": lambda m: m.app.test().store("pages") if m.clicks.to("out") is None else 0,
    "filter() wants a condition, and ms is BIGINT": lambda m: m.clicks.filter(col("ms")),
    "(page * 2): Unsupported arithmetic types": lambda m: m.clicks.select(x=col("page") * 2),
    "neither true nor false here": lambda m: m.clicks.filter(col("ms") > 1 and col("ms") < 3),
    "nothing equals NULL": lambda m: m.clicks.filter(col("page") == None),  # noqa: E711
    "the type of null is not known: say it with lit(None)": lambda m: m.clicks.select(x=lit(None)),
    "needs a name": lambda m: m.clicks.select(col("ms") + 1),
    "is an aggregate: it belongs into aggregate()": lambda m: m.clicks.select(x=fn("SUM", col("ms"))),
    "it belongs into explode()": lambda m: m.clicks.select(x=fn("EXPLODE", col("ms"))),
    "wants the type of what the function gives": lambda m: m.clicks.map_values(lambda row: 1),
    "wants the type of the key": lambda m: m.clicks.select_key(lambda row: 1),
    "only rows behind a window have it": lambda m: m.clicks.select(x=col("WINDOWSTART")),
    "there are two columns 'user'": lambda m: m.clicks.select(user=col("page")),
    "ROWTIME is a record's own": lambda m: m.app.stream("t", key=str, value={"ROWTIME": int}),
    "complex is no type of a column": lambda m: m.app.stream("t", key=str, value={"x": complex}),
    "Decimal needs its digits": lambda m: m.app.stream("t", key=str, value={"x": Decimal}),
    "a table has a key": lambda m: m.app.table("t", key=None, value=str),
    "declared already with other columns": lambda m: m.app.stream("clicks", key=str, value=str),
    "wants rows with a key": lambda m: m.bare.group_by_key(),
    "a join is by key, and": lambda m: m.bare.join(m.users),
    "streams are joined in time": lambda m: m.clicks.join(m.clicks),
    "there is no option of this join 'withn': did you mean 'within'?": lambda m: m.clicks.join(m.clicks, withn=5),
    "the keys of both sides differ: n_key BIGINT and user STRING": lambda m: m.bare.select_key("n").join(m.users),
    "both sides must have windows or neither": lambda m: (
        m.clicks.group_by_key().window(tumbling(5)).count().join(m.users)
    ),
    "two of the same app: app and other": lambda m: m.clicks.join(m.other, within=5),
    "a table is joined with a table": lambda m: m.users.join(m.clicks),
    "a table has left_join()": lambda m: m.clicks.outer_join(m.users),
    "and the other table's key user is STRING": lambda m: m.users.join(m.users, on="ms"),
    "both sides have a column 'page', and 'page_right' is taken": lambda m: (
        m.clicks.join(m.clicks, within=5).join(m.clicks, within=5)
    ),
    "suppress() is for tables with windows": lambda m: m.users.suppress(),
    "give the window a grace period": lambda m: m.clicks.group_by_key().window(tumbling(5)).count().suppress(),
    "rows of a table have no window": lambda m: m.users.group_by("name").window(tumbling(5)),
    "cannot take a row back": lambda m: m.users.group_by("name").max("ms"),
    "what it added must be taken back": lambda m: m.users.group_by("name").reduce(lambda one, other: one),
    "their states must be merged": lambda m: (
        m.clicks.group_by_key().window(session(5)).aggregate(int, lambda key, row, n: n + 1, value=int)
    ),
    "ms has many values in a group": lambda m: m.clicks.group_by("page").aggregate(x=fn("SUM", col("ms")) + col("ms")),
    "there is something with the name 'n' already": lambda m: (
        m.clicks.group_by("page").count(store="n"), m.clicks.group_by("page").count(store="n"),
    ),
    "cannot be a part of a topic's name": lambda m: m.clicks.group_by("page").count(store="a b"),
    "the advance of 9 ms is more than the size": lambda m: hopping(5, advance=9),
    "the size: a timedelta, a number of milliseconds": lambda m: tumbling("soon"),
    "the retention of 5 ms is less": lambda m: tumbling(10, retention=5),
    "does nothing with what it reads": lambda m: m.app.test(),
    "reads no topic": lambda m: App("empty").explain(),
    "the name of an app begins": lambda m: App("a b"),
    "there is no guarantee 'exactly_onc'": lambda m: App("a", guarantee="exactly_onc"),
    "merge() wants streams of the same columns": lambda m: m.clicks.merge(m.bare),
    "is written already, with other columns": lambda m: (m.clicks.to("out"), m.bare.to("out")),
    "a global table is there for joins": lambda m: m.app.global_table("g", key=str, value=str).to("x"),
}  # fmt: skip


@pytest.mark.parametrize("message", list(REFUSED))
def test_what_cannot_be_is_refused_in_one_line(message: str) -> None:
    with pytest.raises(TopologyError) as refused:
        REFUSED[message](Made())
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_values_that_do_not_fit_are_refused_by_the_test_driver() -> None:
    made = Made()
    made.clicks.to("out")
    test = made.app.test()
    with pytest.raises(BadValue, match=r"column ms is BIGINT, and was given 'x' \(str\)"):
        test.pipe("clicks", {"ms": "x"})
    with pytest.raises(BadValue, match="there is no column 'mss': did you mean 'ms'"):
        test.pipe("clicks", {"mss": 1})
    with pytest.raises(TopologyError, match="no topic that is read 'click': did you mean 'clicks'"):
        test.pipe("click", {})
    with pytest.raises(TopologyError, match="no topic that is written 'oot': did you mean 'out'"):
        test.read("oot")


def test_what_is_abandoned_does_not_run_and_the_rest_is_explained() -> None:
    made = Made()
    made.clicks.filter(col("ms") > 1)
    made.clicks.group_by("page").count(store="n")
    made.clicks.filter(_is_home).to("out")
    text = made.app.explain()
    assert "(ms > 1)" not in text
    assert "COUNT(1)" in text
    assert "KSTREAM-FILTER-0000000007: _is_home" in text
    assert "record by record, at least once" in text
    assert made.app.explain("drawing").startswith("flowchart TD")
    assert "Sub-topology: 1" in made.app.explain("topology")


def _is_home(row: dict[str, Any]) -> bool:
    return bool(row["page"] == "home")


def test_a_store_is_asked_of_a_program_that_runs_or_of_the_cluster() -> None:
    made = Made()
    made.clicks.group_by("page").count(store="n")
    with pytest.raises(RuntimeError, match="the store n cannot be followed: "):
        made.app.store("n").get("home")


def test_the_library_is_imported_without_spark() -> None:
    program = (
        "import sys; import penstock.streams; before = len([m for m in sys.modules if m.startswith('penstock')]); "
        "from penstock.streams import App, col; App('a').stream('t', value=str).filter(col('value') == 'x').to('u'); "
        "print(before, sorted(m for m in ('pyspark', 'confluent_kafka', 'penstock.admin') if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "2 []\n"
