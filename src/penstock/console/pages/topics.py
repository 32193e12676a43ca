"""All topics: searched, sorted and paged on the server; made and deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nicegui import ui

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions import topics as actions
from penstock.console.clusters import lists
from penstock.console.clusters.lists import Wanted
from penstock.console.clusters.model import ClusterView, TopicRow
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.grid import Col
from penstock.console.pages.parts.live import Live
from penstock.console.pages.parts.paged import PagedList, visible
from penstock.console.pages.screens import Screen

TOPIC: Final = "/{cluster}/topics/{topic}"
COMMON_CONFIGS: Final = ("cleanup.policy", "retention.ms", "retention.bytes", "min.insync.replicas")


def columns(context: PageContext) -> list[Col]:
    t = context.t
    return [
        Col("name", t("common.name"), "link"),
        Col("state", t("topics.state"), "chip"),
        Col("partitions", t("topics.partitions"), "number"),
        Col("replication", t("topics.replication"), "number"),
        Col("records", t("topics.records"), "number"),
        Col("rate", t("topics.rate"), "number"),
        Col("size", t("topics.size"), "number"),
        Col("readers", t("topics.readers"), "number", is_sortable=False),
    ]


def state_of(context: PageContext, row: TopicRow) -> tuple[str, str]:
    """In words, and the colour of it."""
    if row.offline:
        return context.t("topics.offline", count=row.offline), "negative"
    if row.under_replicated:
        return context.t("topics.under_replicated", count=row.under_replicated), "warning"
    return context.t("topics.in_sync"), "positive"


def _row(context: PageContext, view: ClusterView, row: TopicRow) -> dict[str, Any]:
    state, color = state_of(context, row)
    return {
        "name": row.name,
        "href": layout.link(context, TOPIC, topic=row.name),
        "tag": context.t("topics.internal") if row.is_internal else "",
        "state": state,
        "state_color": color,
        "partitions": figures.count(len(row.partitions)),
        "replication": row.replication_factor,
        "records": figures.count(row.records),
        "rate": figures.rate(row.per_second),
        "size": figures.size(row.size_bytes),
        "readers": figures.count(len(view.readers.get(row.name, ()))),
    }


class _Topics:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._live = Live(context)
        self._list = PagedList(
            context,
            self._look,
            columns(context),
            wanted=Wanted(search=context.query.get("search", "")),
            testid="topics",
            placeholder=context.t("topics.search"),
            can_select=context.may_somewhere(Action.DELETE_TOPICS),
        )

    def draw(self) -> None:
        t = self._context.t
        with ui.row().classes("w-full items-center gap-3"):
            self._list.draw_search()
            ui.switch(
                t("topics.show_internal"),
                on_change=lambda event: self._list.change(internal=bool(event.value)),
            ).props('dense data-testid="show-internal"')
            ui.switch(
                t("topics.only_trouble"),
                on_change=lambda event: self._list.change(kind="trouble" if event.value else ""),
            ).props('dense data-testid="only-trouble"')
            ui.space()
            self._count = ui.label().classes("console-soft").props('data-testid="count" role=status')
        self._list.draw_table()
        if self._context.may_somewhere(Action.DELETE_TOPICS):
            self._list.draw_delete(actions.delete)
        self._live.on_look(lambda view: self._list.refresh())

    def _look(self, wanted: Wanted) -> tuple[Sequence[Mapping[str, Any]], int]:
        view, context = self._live.view, self._context
        if view is None:
            return [], 0
        page = lists.topics(view.topics.values(), wanted, may_see=visible(context))
        self._count.set_text(context.t("topics.count", count=figures.count(page.total)))
        return [_row(context, view, row) for row in page.rows], page.total


async def _create(context: PageContext) -> None:
    """A dialog with the configs that most topics get; all others can be set on the topic's page."""
    t = context.t
    with (
        ui.dialog().props('data-testid="create-topic"') as dialog,
        ui.card().classes("w-full max-w-lg gap-3"),
    ):
        ui.label(t("topics.create")).classes("console-title")
        name = (
            ui.input(t("common.name"))
            .props('outlined dense autofocus data-testid="topic-name"')
            .classes("w-full")
        )
        with ui.row().classes("w-full gap-3 no-wrap"):
            partitions = ui.number(t("topics.partitions"), min=1, max=actions.MAX_PARTITIONS, precision=0)
            factor = ui.number(t("topics.replication"), min=1, max=100, precision=0)
            for field, testid in ((partitions, "topic-partitions"), (factor, "topic-replicas")):
                field.props(
                    f'outlined dense clearable data-testid="{testid}" placeholder="{t("topics.default")}" stack-label'
                ).classes("grow")
        policy = ui.select(
            {
                "": t("topics.default"),
                "delete": "delete",
                "compact": "compact",
                "compact,delete": "compact,delete",
            },
            value="",
            label="cleanup.policy",
        )
        policy.props('outlined dense data-testid="topic-policy"').classes("w-full")
        fields = {
            key: ui.input(key, placeholder=t("topics.default"))
            .props(f'outlined dense stack-label data-testid="config-{key}"')
            .classes("w-full")
            for key in COMMON_CONFIGS[1:]
        }
        more = ui.textarea(t("topics.more_configs"), placeholder="segment.bytes=1073741824")
        more.props('outlined dense autogrow stack-label data-testid="topic-configs"').classes(
            "w-full console-mono"
        )

        async def make() -> None:
            with layout.complaints(context):
                configs = {
                    key: field.value.strip() for key, field in fields.items() if (field.value or "").strip()
                }
                if policy.value:
                    configs["cleanup.policy"] = policy.value
                configs |= parse_configs(context, more.value or "")
                wanted = (name.value or "").strip()
                await actions.create(
                    context, wanted, partitions=_whole(partitions.value), replication_factor=_whole(factor.value),
                    configs=configs,
                )  # fmt: skip
                dialog.close()
                ui.navigate.to(layout.link(context, TOPIC, topic=wanted))

        with ui.row().classes("w-full justify-end gap-2"):
            ui.button(t("common.cancel"), on_click=dialog.close).props("flat no-caps")
            ui.button(t("common.create"), on_click=make).props('unelevated no-caps data-testid="create"')
        name.on("keydown.enter", make)
    await answered(dialog)


def parse_configs(context: PageContext, text: str) -> dict[str, str]:
    """Lines of NAME=VALUE. UserError names the one that is none."""
    found = {}
    for line in text.splitlines():
        if line.strip():
            key, equals, value = line.partition("=")
            if not equals or not key.strip():
                raise UserError(context.t("topics.bad_config", line=line.strip()))
            found[key.strip()] = value.strip()
    return found


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


async def build(context: PageContext) -> None:
    t = context.t
    with layout.heading(t("topics.title")):
        if context.may_somewhere(Action.EDIT_TOPICS):
            ui.button(t("topics.create"), icon="add", on_click=lambda: _create(context)).props(
                'unelevated no-caps data-testid="create-topic-button"'
            )
    _Topics(context).draw()


SCREENS = (Screen("topics", "/{cluster}/topics", "topics.title", "topic", build),)
