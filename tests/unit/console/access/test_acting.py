"""`PageContext.act`, the one way to change anything: who may not is refused, and all of it is told."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import pkgutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

import penstock.console.actions
from penstock.client.errors import Refused, UserError
from penstock.console.access.actions import Action
from penstock.console.access.doors import Access
from penstock.console.access.roles import ADMIN, VIEWER, Grant, Role
from penstock.console.access.sessions import id_of
from penstock.console.context import ClusterHandle, Console, Forbidden, PageContext, Visitor
from penstock.console.history import History
from penstock.console.settings import ClusterSettings, ConsoleSettings, HistorySettings, LoginSettings

NOWHERE = "127.0.0.1:9"
CHANGES = sorted(set(Action) - {Action.VIEW, Action.READ_MESSAGES}, key=lambda action: action.value)
PACKAGE = Path(penstock.console.actions.__file__).parents[1]
READING = {
    "dead_letters.preview", "groups.plan", "groups.plan_values", "messages.export", "messages.load", "messages.ready",
    "messages.start_search", "messages.start_tail", "messages.subject_schema", "security.explain",
}  # fmt: skip
"""What changes nothing."""


class Told:
    """An audit log that keeps what it is told."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []

    def tell(self, **entry: str) -> None:
        self.entries.append(entry)


class Untouchable:
    """In place of a cluster's brokers: whoever is refused has not reached them."""

    async def __call__(self, work: object) -> object:
        raise AssertionError("the brokers were asked")


def context_of(*roles: Role) -> tuple[PageContext, Told, Access]:
    """Of a visitor with a session."""
    settings = ConsoleSettings(
        clusters=(
            ClusterSettings(
                name="local",
                bootstrap=NOWHERE,
                registry_url=f"http://{NOWHERE}",
                connect_urls=(f"http://{NOWHERE}",),
                sql_url=f"http://{NOWHERE}",
            ),
        ),
        login=LoginSettings(method="users"),
        roles={role.name: role for role in roles},
    )
    access, told = Access(settings), Told()
    visitor = access.visitor(access.sessions.begin("ana", tuple(role.name for role in roles)), "en")
    assert visitor is not None
    history = History(HistorySettings())
    cluster = ClusterHandle(settings.clusters[0], history, look_every_s=5)
    cluster.call = Untouchable()  # type: ignore[assignment]
    console = Console(
        settings=settings,
        clusters={"local": cluster},
        history=history,
        audit=cast(Any, told),
        access=access,
    )
    return PageContext(console=console, cluster=cluster, visitor=visitor), told, access


def act(context: PageContext, action: Action, work: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(context.act(action, "orders", "do it", work))


async def never() -> None:
    raise AssertionError("it was done")


@pytest.mark.parametrize("action", CHANGES)
def test_a_viewer_is_refused_and_that_is_told(action: Action) -> None:
    context, told, _ = context_of(VIEWER)
    with pytest.raises(Forbidden):
        act(context, action, never)
    assert [(entry["outcome"], entry["action"]) for entry in told.entries] == [("refused", action.value)]


def test_what_was_done_is_told() -> None:
    context, told, _ = context_of(ADMIN)

    async def work() -> int:
        return 7

    assert act(context, Action.EDIT_TOPICS, work) == 7
    assert told.entries == [
        {
            "cluster": "local", "visitor": "ana", "action": "edit-topics", "resource": "orders", "what": "do it",
            "outcome": "done", "error": "",
        }
    ]  # fmt: skip


@pytest.mark.parametrize("error", [UserError("no"), Refused("no"), ZeroDivisionError("secret")])
def test_what_failed_is_told_and_raised(error: Exception) -> None:
    context, told, _ = context_of(ADMIN)

    async def work() -> None:
        raise error

    with pytest.raises(type(error)):
        act(context, Action.EDIT_TOPICS, work)
    assert told.entries[0]["outcome"] == "failed"
    assert told.entries[0]["error"] in ("no", "ZeroDivisionError")


def test_a_name_beyond_the_patterns_of_a_role_is_refused() -> None:
    team = Role("team", (Grant(actions=frozenset(Action), names=("payments-*",)),))
    context, _, _ = context_of(team)
    with pytest.raises(Forbidden, match="changing topics on orders is not allowed"):
        act(context, Action.EDIT_TOPICS, never)


def test_a_session_that_has_ended_changes_nothing_though_its_page_is_open() -> None:
    context, told, access = context_of(ADMIN)
    access.sessions.end(context.visitor.session_id)
    with pytest.raises(Forbidden, match="Your session has ended"):
        act(context, Action.EDIT_TOPICS, never)
    assert told.entries[0]["outcome"] == "refused"


def test_a_session_that_was_made_up_is_none() -> None:
    context, _, access = context_of(ADMIN)
    forged = Visitor(name="ana", roles=(ADMIN,), session_id=id_of("guessed"))
    assert access.current(forged) is None
    assert access.visitor("guessed", "en") is None
    del context


def action_functions() -> list[tuple[str, Callable[..., Any]]]:
    found = []
    for each in pkgutil.iter_modules(penstock.console.actions.__path__):
        module = importlib.import_module(f"penstock.console.actions.{each.name}")
        for name, member in vars(module).items():
            if getattr(member, "__module__", "") != module.__name__:
                continue
            if inspect.iscoroutinefunction(member) and not name.startswith("_"):
                found.append((f"{each.name}.{name}", member))
    return found


def changing_functions() -> list[tuple[str, Callable[..., Any]]]:
    return [(name, function) for name, function in action_functions() if name not in READING]


@pytest.mark.parametrize(
    ("name", "function"), changing_functions(), ids=lambda one: one if isinstance(one, str) else ""
)
def test_no_action_is_open_to_a_viewer(name: str, function: Callable[..., Any]) -> None:
    """Whatever it is called with: it is refused before anything is asked."""
    context, told, _ = context_of(VIEWER)
    given = _arguments(function)
    with pytest.raises(UserError, match="is not allowed by your roles"):
        asyncio.run(function(context, **given))
    assert {entry["outcome"] for entry in told.entries} <= {"refused"}


@pytest.mark.parametrize("name", ["load", "start_search", "start_tail"])
def test_who_may_only_look_reads_no_messages(name: str) -> None:
    context, _, _ = context_of(Role("looker", (Grant(actions=frozenset({Action.VIEW})),)))
    function = dict(action_functions())[f"messages.{name}"]
    with pytest.raises(Forbidden):
        asyncio.run(function(context, **_arguments(function)))


def _arguments(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = list(inspect.signature(function).parameters.values())
    assert parameters[0].name == "context", "an action begins with its context"
    return {each.name: _some(each) for each in parameters[1:]}


def _some(parameter: inspect.Parameter) -> Any:
    kind = str(parameter.annotation)
    if parameter.name == "number":  # of a Connect cluster
        return 0
    if parameter.name == "search":
        return MagicMock(topic="orders")
    if kind.startswith(("str", "bool", "int")):
        return {"s": "orders", "b": True, "i": 1}[kind[0]]
    if "Iterable" in kind or "Sequence" in kind or "list" in kind:
        return ["orders"] if "str" in kind else [MagicMock(topic="orders")]
    if "Mapping" in kind or "dict" in kind:
        return {"orders": 1}
    return MagicMock()


def test_pages_change_nothing_but_by_actions() -> None:
    """Calls that change a cluster stand in `actions` only, where `act` is around them."""
    changing = {
        "add_partitions", "delete_records", "set_replication_factor", "elect", "incremental_alter", "alter_offsets",
        "delete_offsets", "reassign", "abort",
    }  # fmt: skip
    found = []
    for path in sorted((PACKAGE / "pages").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
                facet = node.value.attr
                is_facet = facet in (
                    "topics",
                    "groups",
                    "configs",
                    "moves",
                    "users",
                    "acls",
                    "quotas",
                    "brokers",
                )
                if (is_facet and node.attr in ("create", "delete", "set", "remove", "reset", "alter")) or (
                    is_facet and node.attr in changing
                ):
                    found.append(f"{path.name}:{node.lineno}: {facet}.{node.attr}")
    assert found == []


def test_pages_give_data_to_elements_as_text_only() -> None:
    """`ui.html`, `ui.markdown` and slots with `v-html` would run what a record brings."""
    forbidden = (
        "ui.html(",
        "ui.markdown(",
        "ui.mermaid(",
        "v-html",
        "innerHTML",
        "ui.add_body_html(",
        "| safe",
    )
    found = [
        f"{path.name}: {word}"
        for path in sorted((PACKAGE / "pages").rglob("*.py"))
        for word in forbidden
        if word in path.read_text()
    ]
    assert found == []


def test_asking_for_roles_is_quick() -> None:
    role = Role(
        "many", tuple(Grant(actions=frozenset({Action.VIEW}), names=(f"team-{n}-*",)) for n in range(100))
    )
    visitor = Visitor(name="ana", roles=(role,))
    began_s = time.process_time()
    for number in range(2000):
        visitor.may(Action.VIEW, f"topic-{number}", "local")
    assert time.process_time() - began_s < 5
