"""What a streaming query is made of, and whether Spark's real-time mode takes it. Pure.

Spark writes an analysed plan as JSON: a list of operators, each before those it reads from, with the number of these:

    [{"class": "….Project", "num-children": 1, …}, {"class": "….StreamingRelationV2", "num-children": 0, …}]

Expressions are lists of the same form in an operator's fields. The answers here are only the ones that a user can do
something about; what they do not know of, Spark refuses when the query starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

REAL_TIME_FORMAT = "kafka"
SHUFFLED = ("Aggregate", "Deduplicate", "Distinct", "RepartitionByExpression", "Repartition")
SESSION_WINDOW = (
    "session_window"  # what Spark calls the column that it groups by, whatever name it is given after
)

_PYTHON_NAME = re.compile(r"\.python\.|\.Python\w+$|In(Pandas|Arrow|PySpark)\w*$")
_UNSUPPORTED = {
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark is not in Spark's real-time mode (dropDuplicates is)",
    "GlobalLimit": "a limit is not in Spark's real-time mode",
    "LocalLimit": "a limit is not in Spark's real-time mode",
    "Sort": "sorting is not in Spark's real-time mode",
    "FlatMapGroupsWithState": "flatMapGroupsWithState is not in Spark's real-time mode",
}


class Operator(NamedTuple):
    name: str  # of its class, without the package
    fields: dict[str, Any]
    children: tuple[Operator, ...]

    def walk(self) -> Iterator[Operator]:
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def is_streaming(self) -> bool:
        """Whether a stream is in it; a leaf is one, or the name of a common table expression over one."""
        return any(
            not each.children
            and (each.name.startswith("Streaming") or each.fields.get("isStreaming") is True)
            for each in self.walk()
        )


def read_plan(nodes: list[dict[str, Any]]) -> Operator:
    return _read(iter(nodes))


def _read(nodes: Iterator[dict[str, Any]]) -> Operator:
    node = next(nodes)
    children = tuple(_read(nodes) for _ in range(node["num-children"]))
    return Operator(node["class"].rpartition(".")[2], node, children)


def obstacle(plan: Operator) -> str | None:
    """Why real-time mode does not take this query; None if nothing is known against it."""
    for each in plan.walk():
        if _runs_python(each.fields):
            return (
                "it runs Python code, which Spark's real-time mode does not; "
                "functions of pyspark.sql.functions and SQL expressions run there"
            )
        if _has_session_window(each):
            return "a session window is not in Spark's real-time mode"
        if not each.is_streaming:
            continue
        if each.name == "Join" and all(child.is_streaming for child in each.children):
            return "a join of two streams is not in Spark's real-time mode (a join with a table is)"
        if each.name in _UNSUPPORTED:
            return _UNSUPPORTED[each.name]
        if each.name == "StreamingRelationV2" and each.fields.get("sourceName") != REAL_TIME_FORMAT:
            return f'it also reads a stream of format "{each.fields.get("sourceName")}", which real-time mode does not'
    return None


def is_stateful(plan: Operator) -> bool:
    return any(
        each.is_streaming and each.name in ("Aggregate", "Deduplicate", "Distinct") for each in plan.walk()
    )


def output_mode(plan: Operator) -> str:
    """What a query without a wish gets: changed results as they change, where it has such and Spark can."""
    operators = [each for each in plan.walk() if each.is_streaming]
    if any(_has_session_window(each) for each in operators):
        return "append"
    return "update" if any(each.name == "Aggregate" for each in operators) else "append"


def slots_needed(plan: Operator, *, source_partitions: int, shuffle_partitions: int) -> int:
    """Tasks of a real-time query run all at once: one for each partition read, and those behind each shuffle."""
    needed = source_partitions
    for each in plan.walk():
        if each.is_streaming and each.name in SHUFFLED:
            given = each.fields.get("numPartitions", each.fields.get("optNumPartitions"))
            needed += given if isinstance(given, int) else shuffle_partitions
    return needed


def _runs_python(form: object) -> bool:
    if isinstance(form, list):
        return any(_runs_python(each) for each in form)
    if not isinstance(form, dict):
        return False
    name = form.get("class")
    return (isinstance(name, str) and bool(_PYTHON_NAME.search(name))) or _runs_python(list(form.values()))


def _has_session_window(operator: Operator) -> bool:
    grouping = operator.fields.get("groupingExpressions", [])
    return any(part.get("name") == SESSION_WINDOW for expression in grouping for part in expression)
