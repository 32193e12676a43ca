"""What the name patterns of a role leave out is left out everywhere: of SQL, of the audit log, of what is typed into forms."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import penstock.console.pages
from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.access.attempts import FREE_OF_PAIR, Attempts
from penstock.console.access.masking import MaskingRule
from penstock.console.access.roles import ADMIN, OPERATOR, VIEWER, Grant, Role
from penstock.console.actions import connect, dead_letters, sql
from penstock.console.actions.cluster import set_broker_config
from penstock.console.context import Forbidden, PageContext
from penstock.console.pages.sql_catalog import seen_by
from penstock.console.settings.model import AuditSettings
from penstock.console.upstream.sql import Catalog, Query, Source
from tests.unit.console.access.test_acting import context_of

PUBLIC = Role(
    "public", (Grant(actions=frozenset({Action.VIEW, Action.RUN_SQL}), names=("public-*", "OPEN*")),)
)


def source(name: str, topic: str) -> Source:
    return Source(name, "STREAM", topic, "KAFKA", "JSON", False)


def query(name: str, sources: tuple[str, ...], sinks: tuple[str, ...], topics: tuple[str, ...]) -> Query:
    return Query(name, "PERSISTENT", "RUNNING", "SELECT …", sources, sinks, topics)


CATALOG = Catalog(
    (source("OPEN", "public-a"), source("OPEN_OUT", "public-b"), source("OPEN_PAY", "payments")),
    (
        query("OPEN_1", ("OPEN",), ("OPEN_OUT",), ("public-b",)),
        query("OPEN_2", ("OPEN_PAY",), ("OPEN_OUT",), ("public-b",)),
        query("OPEN_3", ("OPEN",), ("OPEN_PAY",), ("payments",)),
        query("OPEN_4", (), (), ()),
    ),
)


def test_sql_over_a_topic_that_a_visitor_may_not_see_is_not_shown() -> None:
    context, _, _ = context_of(PUBLIC)
    seen = seen_by(context, CATALOG)
    assert [each.name for each in seen.sources] == ["OPEN", "OPEN_OUT"]
    assert [each.id for each in seen.queries] == ["OPEN_1"]
    everything, _, _ = context_of(VIEWER)
    assert seen_by(everything, CATALOG) == CATALOG


def test_a_stream_takes_its_topic_along_for_who_may_delete_topics_only() -> None:
    context, told, _ = context_of(PUBLIC)
    with pytest.raises(Forbidden):
        asyncio.run(sql.drop(context, CATALOG.sources[0], with_topic=True))
    assert told.entries[-1]["outcome"] == "failed"


def with_audit_log(*roles: Role) -> PageContext:
    context, _, access = context_of(*roles)
    console = context.console
    settings = replace(console.settings, audit=AuditSettings(topic="told", cluster="local"))
    assert access is console.access
    return replace(context, console=replace(console, settings=settings))


@pytest.mark.parametrize(
    "action", [Action.READ_MESSAGES, Action.PRODUCE, Action.EDIT_TOPICS, Action.DELETE_TOPICS]
)
def test_the_records_of_the_audit_log_are_for_who_may_give_rights(action: Action) -> None:
    everything_but_rights = Role("most", (Grant(actions=frozenset(Action) - {Action.EDIT_SECURITY}),))
    for role in (VIEWER, OPERATOR, everything_but_rights):
        context = with_audit_log(role)
        assert not context.may(action, "told")
        with pytest.raises(Forbidden):
            context.require(action, "told")
    assert with_audit_log(everything_but_rights).may(action, "orders")
    admin = with_audit_log(ADMIN)
    assert admin.may(action, "told")
    admin.require(action, "told")


def test_a_check_that_could_not_take_place_forgets_no_failures() -> None:
    attempts = Attempts()
    for _ in range(FREE_OF_PAIR + 3):
        attempts.failed("1.1.1.1", "ana", 100.0)
    waits = attempts.wait_s("1.1.1.1", "ana", 100.0)
    attempts.failed("1.1.1.1", "ana", 100.0)
    attempts.undone("1.1.1.1", "ana")
    assert attempts.wait_s("1.1.1.1", "ana", 100.0) == waits > 0


def test_a_password_in_a_config_of_a_broker_is_not_told() -> None:
    context, told, _ = context_of(ADMIN)
    with pytest.raises(AssertionError):  # of the brokers, who are not asked here
        asyncio.run(set_broker_config(context, 1, "listener.name.x.ssl.keystore.password", "hunter2"))
    assert "hunter2" not in str(told.entries)
    assert "ssl.keystore.password" in told.entries[-1]["what"]


def test_who_does_not_see_all_of_a_record_copies_it_by_no_connector_and_no_replay() -> None:
    context, told, _ = context_of(OPERATOR)
    rule = MaskingRule(topics=("cards",), fields=("number",), except_roles=("admin",))
    settings = replace(context.console.settings, masking=(rule,))
    masked = replace(context, console=replace(context.console, settings=settings))
    for work in (
        connect.create(masked, 0, "copies", {"connector.class": "FileStreamSink"}),
        connect.configure(masked, 0, "copies", {"topics": "cards"}, changed=["topics"]),
    ):
        with pytest.raises(UserError, match="masked from you"):
            asyncio.run(work)
        assert told.entries[-1]["outcome"] == "failed"
    with pytest.raises(UserError, match="masked from you"):
        asyncio.run(
            dead_letters.preview(masked, "cards-dlq", dead_letters.Choice(to="mine"), dead_letters.Progress())
        )


def test_a_quote_in_a_string_of_props_would_begin_another_one() -> None:
    """Which the browser would run: that is why the next test is there."""
    from nicegui.props import Props

    name = 'A" :title="alert(1)'
    assert Props.parse(f'dense data-testid="name-{name}"')[":title"] == "alert(1)"


SAFE = {
    "testid", "label", "look", "kind", "icon", "name", "key", "code", "number", "part", "rows", "self._testid", "each.name",
    "tile.key", "chart.testid", "'pause' if is_paused else 'play_arrow'", "'negative' if is_harmful else 'primary'",
}  # fmt: skip
"""What may stand in a string of props: names and words of our own. Data go into `element.props[NAME] = …`."""
WERE_DATA = {("sql.py", "name"), ("connector_form.py", "field.name")}


def test_no_data_are_in_a_string_of_props() -> None:
    folder = Path(penstock.console.pages.__file__).parent
    found = {(file.name, told) for file in folder.rglob("*.py") for told in _in_props(file)}
    assert ("section.py", "kind") in found, "nothing was looked at"
    strange = {(file, told) for file, told in found if told not in SAFE or (file, told) in WERE_DATA}
    assert strange == set()


def _in_props(file: Path) -> Iterator[str]:
    for call in ast.walk(ast.parse(file.read_text())):
        if not (
            isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "props"
        ):
            continue
        for text in call.args:
            for part in ast.walk(text):
                if isinstance(part, ast.FormattedValue):
                    told = ast.unparse(part.value)
                    words = told.startswith(("t(", "context.t(", "self._context.t(")) and "=" not in told
                    if not words and not told.rpartition(".")[2].isupper():
                        yield told
