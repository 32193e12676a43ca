"""The menu of a topic: clone, add partitions, replicas, empty, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions import topics as actions
from penstock.console.actions.cluster import MOVES
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.asking_first import confirmed
from penstock.console.pages.parts.dialogs import answered

TOPIC = "/{cluster}/topics/{topic}"


def menu(context: PageContext, name: str) -> None:
    """Nothing where the visitor may do none of it."""
    t = context.t
    may_edit, may_delete = context.may(Action.EDIT_TOPICS, name), context.may(Action.DELETE_TOPICS, name)
    if not may_edit and not may_delete and not context.may_somewhere(Action.EDIT_TOPICS):
        return
    with (
        ui.button(icon="more_vert").props(
            f'flat round dense aria-label="{t("topic.actions")}" data-testid="topic-menu"'
        ),
        ui.menu().props("auto-close"),
    ):
        if context.may_somewhere(Action.EDIT_TOPICS):
            _item(t("topic.clone"), "clone", lambda: _clone(context, name))
        if may_edit:
            _item(t("topic.add_partitions"), "add-partitions", lambda: _add_partitions(context, name))
            _item(t("topic.set_replicas"), "set-replicas", lambda: _set_replicas(context, name))
        if may_delete:
            ui.separator()
            _item(t("topic.empty"), "empty", lambda: _empty(context, name))
            _item(t("topic.delete"), "delete", lambda: _delete(context, name))


def _item(label: str, testid: str, on_click: Callable[[], Awaitable[None]]) -> None:
    ui.menu_item(label, on_click=on_click).props(f'data-testid="{testid}"')


async def asked_value(
    context: PageContext,
    title: str,
    label: str,
    *,
    detail: str = "",
    value: str = "",
    number: bool = False,
    second: str = "",
) -> tuple[str, str] | None:
    """What the person writes; None: cancelled. `second` is the label of another number, which may be left out."""
    with ui.dialog().props('data-testid="ask"') as dialog, ui.card().classes("w-full max-w-md gap-3"):
        ui.label(title).classes("console-title")
        if detail:
            ui.label(detail).classes("console-soft")
        field = (
            ui.input(label, value=value)
            .props('outlined dense autofocus data-testid="ask-value"')
            .classes("w-full")
        )
        if number:
            field.props("inputmode=numeric")
        other = None
        if second:
            other = (
                ui.input(second)
                .props('outlined dense inputmode=numeric data-testid="ask-second"')
                .classes("w-full")
            )

        def done() -> None:
            dialog.submit((str(field.value or "").strip(), str((other.value if other else "") or "").strip()))

        with ui.row().classes("w-full justify-end gap-2"):
            ui.button(context.t("common.cancel"), on_click=lambda: dialog.submit(None)).props("flat no-caps")
            ui.button(context.t("common.ok"), on_click=done).props('unelevated no-caps data-testid="ask-ok"')
        field.on("keydown.enter", done)
    found = await answered(dialog)
    return found if isinstance(found, tuple) else None


def whole(context: PageContext, text: str) -> int:
    """UserError for what is no whole number."""
    try:
        return int(text)
    except ValueError:
        raise UserError(context.t("common.no_number", value=text)) from None


def throttle_of(context: PageContext, text: str) -> int | None:
    return whole(context, text) if text else None


async def _clone(context: PageContext, name: str) -> None:
    t = context.t
    found = await asked_value(
        context, t("topic.clone"), t("common.name"), detail=t("topic.clone_note"), value=f"{name}-copy"
    )
    if found is not None:
        with layout.complaints(context):
            await actions.clone(context, found[0], name)
            ui.navigate.to(layout.link(context, TOPIC, topic=found[0]))


async def _add_partitions(context: PageContext, name: str) -> None:
    t, view = context.t, context.cluster.snapshot.latest
    row = None if view is None else view.topics.get(name)
    now = 0 if row is None else len(row.partitions)
    found = await asked_value(
        context, t("topic.add_partitions"), t("topic.total_partitions"), detail=t("topic.partitions_note", count=now),
        value=str(now + 1), number=True,
    )  # fmt: skip
    if found is not None:
        with layout.complaints(context):
            await actions.add_partitions(context, name, whole(context, found[0]))
            layout.tell(t("topic.grown", topic=name, count=found[0]))


async def _set_replicas(context: PageContext, name: str) -> None:
    t = context.t
    found = await asked_value(
        context, t("topic.set_replicas"), t("topics.replication"), detail=t("topic.replicas_note"), number=True,
        second=t("cluster.throttle"),
    )  # fmt: skip
    if found is not None:
        with layout.complaints(context):
            factor = whole(context, found[0])
            if factor < 1:
                raise UserError(t("common.no_number", value=factor))
            await MOVES.set_replication_factor(context, name, factor, throttle=throttle_of(context, found[1]))
            ui.navigate.to(layout.link(context, "/{cluster}/cluster"))


async def _empty(context: PageContext, name: str) -> None:
    t = context.t
    if await confirmed(
        context,
        t("topic.empty_question", topic=name),
        t("topic.empty_note"),
        button=t("topic.empty"),
        typed=name,
    ):
        with layout.complaints(context):
            count = await actions.empty(context, name)
            layout.tell(t("topic.emptied", topic=name, count=count))


async def _delete(context: PageContext, name: str) -> None:
    t = context.t
    if await confirmed(
        context,
        t("topic.delete_question", topic=name),
        t("topic.delete_note"),
        button=t("common.delete"),
        typed=name,
    ):
        with layout.complaints(context):
            await actions.delete(context, [name])
            ui.navigate.to(layout.link(context, "/{cluster}/topics"))
