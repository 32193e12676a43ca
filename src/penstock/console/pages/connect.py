"""Connect: the connectors of a Connect cluster, and one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from penstock.console.access.actions import Action
from penstock.console.actions import connect as actions
from penstock.console.context import PageContext
from penstock.console.pages import connector, connector_form, layout
from penstock.console.pages.parts.grid import Col, button, fill, grid
from penstock.console.pages.parts.section import Section
from penstock.console.pages.screens import Screen
from penstock.console.upstream.asking import asked
from penstock.console.upstream.connect import FAILED, ConnectorRow, ConnectServer
from penstock.console.upstream.servers import servers

PATH: Final = "/{cluster}/connect"
REFRESH_S: Final = 4.0


class _Connectors:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._number = connector.number_of(context)
        self._server: ConnectServer = servers(context.cluster).connect(self._number)
        self._search = context.query.get("search", "").lower()

    def draw(self) -> None:
        context, t = self._context, self._context.t
        with layout.heading(t("connect.title"), t("connect.subtitle")):
            if context.may_somewhere(Action.EDIT_CONNECTORS):
                target = layout.link(context, connector_form.NEW, connect=self._number or None)
                ui.button(t("connect.create"), icon="add", on_click=lambda: ui.navigate.to(target)).props(
                    'unelevated no-caps data-testid="create"'
                )
        with ui.row().classes("w-full items-center gap-3"):
            field = ui.input(placeholder=t("connect.search"), value=self._search, on_change=self._searched)
            field.props(f'dense outlined clearable debounce=250 data-testid="search" {layout.SEARCH}')
            field.props(f'aria-label="{t("connect.search")}"').classes("grow max-w-md")
            if len(context.cluster.connect_urls) > 1:
                self._server_choice()
        self._section = Section(
            context, lambda: asked(self._server.connectors), self._show, every_s=REFRESH_S
        )
        columns = [
            Col("name", t("connect.name"), "link", is_wide=True),
            Col("state", t("connect.state"), "chip"),
            Col("tasks", t("connect.tasks")),
            Col("kind", t("connect.kind")),
            Col("class", t("connect.class")),
            Col("acts", "", "buttons"),
        ]
        self._table = grid(context, columns, [], key="name", testid="connectors", on_act=self._act)

    def _server_choice(self) -> None:
        places = dict(enumerate(each.rpartition("@")[2] for each in self._context.cluster.connect_urls))
        choice = ui.select(places, value=self._number, label=self._context.t("connect.cluster"))
        choice.props('dense outlined options-dense data-testid="connect-cluster"').classes("w-64")
        choice.on_value_change(
            lambda event: ui.navigate.to(layout.link(self._context, PATH, connect=event.value or None))
        )

    def _show(self, found: list[ConnectorRow]) -> None:
        t = self._context.t
        seen = [each for each in found if self._context.may(Action.VIEW, each.name)]
        rows = [self._row(each) for each in seen if self._search in each.name.lower()]
        failed = sum(each.state == FAILED or each.failed_tasks > 0 for each in seen)
        with ui.row().classes("w-full items-center gap-4"):
            ui.label(t("connect.count", shown=len(rows), total=len(seen))).classes("opacity-80").props(
                'data-testid="count"'
            )
            if failed:
                ui.badge(t("connect.failed", count=failed), color="negative").props('data-testid="failed"')
        fill(self._table, rows, empty=t("connect.none_match" if seen else "connect.none"))

    def _row(self, one: ConnectorRow) -> Mapping[str, Any]:
        t = self._context.t
        acts = []
        if self._context.may(Action.EDIT_CONNECTORS, one.name):
            if one.state == FAILED or one.failed_tasks:
                acts.append(button("restart", "restart_alt", t("connect.restart_failed")))
            if one.state == "RUNNING":
                acts.append(button("pause", "pause", t("connect.pause")))
            elif one.state in ("PAUSED", "STOPPED"):
                acts.append(button("resume", "play_arrow", t("connect.resume")))
        state = FAILED if one.failed_tasks else one.state
        return {
            "name": one.name,
            "name_href": layout.link(
                self._context, connector.PATH, connector=one.name, connect=self._number or None
            ),
            "state": t(f"connect.state_{state}"),
            "state_color": connector.COLORS.get(state, "grey"),
            "tasks": connector.tasks_told(self._context, one),
            "kind": one.kind,
            "class": one.class_name.rpartition(".")[2],
            "acts": acts,
        }

    async def _act(self, name: str, row: str) -> None:
        t, number = self._context.t, self._number
        with layout.complaints(self._context):
            if name == "restart":
                await actions.restart(self._context, number, row, only_failed=True)
            elif name == "pause":
                await actions.pause(self._context, number, row)
            elif name == "resume":
                await actions.resume(self._context, number, row)
            layout.tell(t(f"connect.did_{name}", name=row))
        await self._section.refresh()

    def _searched(self, event: ValueChangeEventArguments[Any]) -> None:
        self._search = str(event.value or "").lower()
        self._section.draw_again()


async def build(context: PageContext) -> None:
    _Connectors(context).draw()


SCREENS: Final = (
    Screen("connect", PATH, "connect.title", "cable", build, needs="connect"),
    Screen(
        "connector", connector.PATH, "connect.title", "cable", connector.build, in_menu=False, needs="connect"
    ),
    Screen(
        "connector-new",
        connector_form.NEW,
        "connect.create",
        "cable",
        connector_form.build,
        in_menu=False,
        needs="connect",
    ),
    Screen(
        "connector-edit",
        connector_form.EDIT,
        "connect.edit",
        "cable",
        connector_form.build,
        in_menu=False,
        needs="connect",
    ),
)
