"""What kafka-share-groups and kafka-streams-groups have in common: list and describe, with Kafka's words and columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.admin.groups.requests import GroupRequests, open_groups
from penstock.cli.kafka.address import connection
from penstock.cli.kafka.options import Option, Options, OptionTable, UsageError
from penstock.client.errors import Refused
from penstock.model.java_order import in_hash_map_order

MISSING = "-"
WIDTH, NARROW, WIDE = 15, 10, 25
VIEWS = ("members", "offsets", "state")


class Kind(NamedTuple):
    name: str
    """In a sentence: `share`."""
    type: str
    states: tuple[str, ...]
    check: Callable[[GroupRequests], None]
    """UserError where the brokers have no groups of this kind."""
    describe: Callable[[Options, GroupRequests, list[str]], None]
    failure_code: int
    """What the tool ends with after a refusal; Kafka's tools differ."""


def table(tool: str, kind: str, *, view: str) -> OptionTable:
    return OptionTable(
        tool,
        f"This tool helps to list and describe {kind} groups, on clusters that have them.",
        [
            Option("list", "Print the groups; with --state as a table."),
            Option("describe", f"Print {view} of a group, or its members, or its state."),
            Option("group", "The group; may be given many times.", "GROUP"),
            Option("all-groups", f"Every {kind} group."),
            Option("offsets", f"With --describe: {view}. This is what is shown anyway."),
            Option("members", "With --describe: each member, and what it has been given."),
            Option(
                "state",
                "With --describe: coordinator, state and number of members. With --list: show the state, and only "
                "groups of these states where some are named.",
                "STATE,…",
                value_is_optional=True,
            ),
            Option("verbose", "With --describe: epochs, too."),
            Option("timeout", "How long a coordinator may take to be ready.", "MS", "30000"),
        ],
        examples=[
            f"{tool} --bootstrap-server localhost:9092 --list",
            f"{tool} --bootstrap-server localhost:9092 --describe --group billing",
        ],
    )


def run(given: Options, kind: Kind) -> int:
    _check(given)
    states = _states(given, kind)
    where = connection(given)
    try:
        with open_groups(where, timeout_s=(given.integer("timeout") or 0) / 1000) as groups:
            kind.check(groups)
            listed = {one.group_id: one.state for one in groups.listing(states=states, types=[kind.type])}
            if given.has("list"):
                _list(given, listed)
            else:
                chosen = in_hash_map_order(listed) if given.has("all-groups") else given.values("group")
                kind.describe(given, groups, list(dict.fromkeys(chosen)))
    except Refused as error:
        said = f"{error.exception_name}: {error}"
        print_error(f"Executing {kind.name} group command failed due to {said}")
        return kind.failure_code
    return 0


def _check(given: Options) -> None:
    if given.has("list") == given.has("describe"):
        raise UsageError("Command must include exactly one action: --list, --describe.")
    given.require("bootstrap-server")
    given.refuse_with("group", ["all-groups", "list"])
    if given.has("list"):
        given.refuse_with("list", ["all-groups", "members", "offsets", "verbose"])
        return
    if not given.has("group") and not given.has("all-groups"):
        raise UsageError("Option [describe] takes one of these options: [all-groups], [group]")
    if sum(given.has(view) for view in VIEWS) > 1:
        named = ", ".join(f"[{view}]" for view in VIEWS)
        raise UsageError(f"Option [describe] takes at most one of these options: {named}")
    if given.values("state"):
        raise UsageError("Option [describe] does not take a value for [state]")


def _states(given: Options, kind: Kind) -> list[str]:
    """As the broker writes them; letters may be of any case."""
    text = given.value("state") if given.has("list") else None
    if not text:
        return []
    spelled = {state.lower(): state for state in kind.states}
    chosen = [spelled.get(word.strip().lower(), "") for word in text.split(",")]
    if "" in chosen:
        raise UsageError(f"Invalid state list '{text}'. Valid states are: {', '.join(kind.states)}")
    return chosen


def _list(given: Options, states: dict[str, str]) -> None:
    names = in_hash_map_order(states)
    if not given.has("state"):
        for name in names:
            print(name)
        return
    print_columns([("GROUP", WIDTH), ("STATE", 0)], [[name, states[name]] for name in names])


def print_columns(columns: Sequence[tuple[str, int]], rows: Sequence[Sequence[object]]) -> None:
    """Each column is as wide as its longest cell, and at least as wide as said; one of width 0, the last, is not padded."""
    table = [[text(cell) for cell in row] for row in rows]
    widths = [
        max([least, *(len(row[number]) for row in table)]) if least else 0
        for number, (_, least) in enumerate(columns)
    ]
    for row in ([name for name, _ in columns], *table):
        print(" ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)))


def text(value: object | None) -> str:
    return MISSING if value is None else str(value)


def tell(sentence: str) -> None:
    sys.stdout.flush()
    print(f"\n{sentence}", file=sys.stderr, flush=True)


def print_error(sentence: str) -> None:
    print(f"\nError: {sentence}", flush=True)
