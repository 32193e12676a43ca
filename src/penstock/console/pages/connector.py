"""One connector: its tasks with what went wrong, configuration, offsets, topics, and what can be done to it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from nicegui import ui

from penstock.client.errors import Refused, UserError
from penstock.console.access.actions import Action
from penstock.console.actions import connect as actions
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.asking_first import asking, confirmed
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.grid import Col, button, grid
from penstock.console.pages.parts.section import Section, banner
from penstock.console.pages.parts.tabbed import Tab, tabbed
from penstock.console.upstream.asking import asked
from penstock.console.upstream.connect import FAILED, ConnectorRow, ConnectServer, without_secrets
from penstock.console.upstream.servers import servers

PATH: Final = "/{cluster}/connect/{connector:path}"
EDIT: Final = "/{cluster}/connect-edit/{connector:path}"
COLORS: Final = {"RUNNING": "positive", "FAILED": "negative", "PAUSED": "warning", "RESTARTING": "info"}
REFRESH_S: Final = 3.0
MAX_OFFSETS: Final = 1000
MAX_CAUSE_CHARS: Final = 300
MAX_TRACE_CHARS: Final = 50_000


class Offsets(NamedTuple):
    told: tuple[tuple[str, str], ...]
    """Partition and offset, both as JSON."""
    problem: str
    """Why they are not known."""


class _Connector:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._name = context.path["connector"]
        self._number = number_of(context)
        self._server: ConnectServer = servers(context.cluster).connect(self._number)
        self._may_edit = context.may(Action.EDIT_CONNECTORS, self._name)
        self._tab = "tasks"

    def draw(self) -> None:
        with layout.heading(self._name):
            self._buttons = ui.row().classes("items-center gap-1")
        self._section = Section(self._context, self._look, self._show, every_s=REFRESH_S)

    async def _look(self) -> ConnectorRow:
        return await asked(partial(self._server.connector, self._name))

    async def _look_at_offsets(self) -> Offsets:
        try:
            found = await asked(partial(self._server.offsets, self._name))
        except Refused as error:
            return Offsets((), str(error))
        return Offsets(
            tuple((compact(one["partition"]), compact(one["offset"])) for one in found[:MAX_OFFSETS]), ""
        )

    def _show(self, row: ConnectorRow) -> None:
        t = self._context.t
        self._draw_buttons(row)
        with ui.row().classes("w-full items-center gap-x-6 gap-y-2"):
            ui.badge(t(f"connect.state_{row.state}"), color=COLORS.get(row.state, "grey")).props(
                'data-testid="state"'
            ).classes("px-3 py-1")
            for name, value in (
                ("kind", row.kind),
                ("class", row.class_name),
                ("worker", row.worker),
                ("tasks", tasks_told(self._context, row)),
            ):
                with ui.row().classes("items-baseline gap-2 min-w-0"):
                    ui.label(t(f"connect.{name}")).classes("opacity-70 text-sm")
                    ui.label(value or "–").classes("font-medium break-all").props(
                        f'data-testid="fact-{name}"'
                    )
        if row.trace:
            self._trace(t("connect.trace_connector"), row.trace, "trace-connector")
        draws = {
            "tasks": self._tasks,
            "config": self._config,
            "offsets": self._offsets,
            "topics": self._topics,
        }
        tabs = [Tab(name, t(f"connect.tab_{name}"), partial(draw, row)) for name, draw in draws.items()]
        tabbed(tabs, shown=self._tab, on_turn=self._turned)

    def _turned(self, name: str) -> None:
        self._tab = name

    def _draw_buttons(self, row: ConnectorRow) -> None:
        t = self._context.t
        self._buttons.clear()
        if not self._may_edit:
            return
        is_running = row.state in ("RUNNING", "FAILED", "UNASSIGNED", "RESTARTING")
        with self._buttons:
            if is_running:
                self._button(
                    "pause", "pause", partial(actions.pause, self._context, self._number, self._name)
                )
            else:
                self._button(
                    "resume", "play_arrow", partial(actions.resume, self._context, self._number, self._name)
                )
            if row.state != "STOPPED":
                self._button("stop", "stop", partial(actions.stop, self._context, self._number, self._name))
                restart = partial(actions.restart, self._context, self._number, self._name)
                self._button("restart", "restart_alt", partial(restart, only_failed=False))
                if row.state == FAILED or row.failed_tasks:
                    self._button("restart_failed", "healing", partial(restart, only_failed=True))
            target = layout.link(self._context, EDIT, connector=self._name, connect=self._number or None)
            ui.button(icon="edit", on_click=lambda: ui.navigate.to(target)).props(
                f'flat round aria-label="{t("connect.edit")}" data-testid="edit"'
            ).tooltip(t("connect.edit"))
            ui.button(icon="delete", on_click=self._delete).props(
                f'flat round color=negative aria-label="{t("connect.delete")}" data-testid="delete"'
            ).tooltip(t("connect.delete"))

    def _button(self, name: str, icon: str, work: Callable[[], Awaitable[Any]]) -> None:
        label = self._context.t(f"connect.{name}")

        async def do() -> None:
            with layout.complaints(self._context):
                await work()
                layout.tell(self._context.t(f"connect.did_{name}", name=self._name))
            await self._section.refresh()

        ui.button(icon=icon, on_click=do).props(
            f'flat round aria-label="{label}" data-testid="{name}"'
        ).tooltip(label)

    def _trace(self, title: str, trace: str, testid: str) -> None:
        with ui.expansion(title, caption=cause_of(trace), icon="error_outline").classes(
            "w-full console-card"
        ) as box:
            box.props(f'header-class="text-negative" data-testid="{testid}"')
            ui.label(trace[:MAX_TRACE_CHARS]).classes(
                "font-mono text-xs whitespace-pre overflow-auto w-full max-h-96"
            )

    def _tasks(self, row: ConnectorRow) -> None:
        t = self._context.t
        columns = [
            Col("number", t("connect.task"), "number"),
            Col("state", t("connect.state"), "chip"),
            Col("worker", t("connect.worker")),
            Col("problem", t("connect.problem"), is_wide=True),
            Col("acts", "", "buttons"),
        ]
        acts = (
            [button("restart", "restart_alt", t("connect.restart_task"), "restart-task")]
            if self._may_edit
            else []
        )
        rows = [
            {
                "number": task.number,
                "state": t(f"connect.state_{task.state}"),
                "state_color": COLORS.get(task.state, "grey"),
                "worker": task.worker,
                "problem": cause_of(task.trace),
                "acts": acts,
            }
            for task in row.tasks
        ]
        grid(
            self._context,
            columns,
            rows,
            key="number",
            testid="tasks",
            empty=t("connect.no_tasks"),
            on_act=self._restart_task,
        )
        for task in row.tasks:
            if task.trace:
                self._trace(t("connect.trace_task", task=task.number), task.trace, f"trace-{task.number}")

    async def _restart_task(self, _: str, task: int) -> None:
        with layout.complaints(self._context):
            await actions.restart_task(self._context, self._number, self._name, int(task))
            layout.tell(self._context.t("connect.did_restart_task", task=task))
        await self._section.refresh()

    def _config(self, row: ConnectorRow) -> None:
        t = self._context.t
        rows = [
            {"name": name, "value": without_secrets(name, value)}
            for name, value in sorted(row.config.items())
        ]
        columns = [
            Col("name", t("connect.setting"), "mono"),
            Col("value", t("common.value"), "mono", is_wide=True),
        ]
        grid(self._context, columns, rows, key="name", testid="config", rows_per_page=100)

    def _topics(self, row: ConnectorRow) -> None:
        t = self._context.t
        rows = [
            {"name": each, "name_href": layout.link(self._context, "/{cluster}/topics/{topic}", topic=each)}
            for each in row.topics
        ]
        grid(self._context, [Col("name", t("connect.topic"), "link")], rows, key="name", testid="topics",
             empty=t("connect.no_topics"))  # fmt: skip

    # ------------------------------------------------------------------ offsets

    def _offsets(self, row: ConnectorRow) -> None:
        self._offsets_section = Section(
            self._context,
            self._look_at_offsets,
            partial(self._show_offsets, row.state == "STOPPED"),
            every_s=REFRESH_S,
        )

    def _show_offsets(self, is_stopped: bool, found: Offsets) -> None:
        t = self._context.t
        if found.problem:
            banner(self._context, found.problem, kind="warning")
            return
        if self._may_edit:
            with ui.row().classes("w-full items-center gap-2"):
                if not is_stopped:
                    ui.label(t("connect.offsets_stopped_only")).classes("opacity-80")
                else:
                    ui.button(
                        t("connect.offsets_add"), icon="add", on_click=lambda: self._edit_offset("", "")
                    ).props('outline no-caps data-testid="offset-add"')
                    ui.button(t("connect.offsets_reset"), icon="first_page", on_click=self._reset).props(
                        'outline no-caps color=negative data-testid="offsets-reset"'
                    )
        can_change = self._may_edit and is_stopped
        acts = [button("edit", "edit", t("common.edit"), "offset-edit"),
                button("remove", "delete", t("common.delete"), "offset-remove")] if can_change else []  # fmt: skip
        rows = [{"partition": partition, "offset": offset, "acts": acts} for partition, offset in found.told]
        columns = [
            Col("partition", t("connect.partition"), "mono", is_wide=True),
            Col("offset", t("connect.offset"), "mono", is_wide=True),
            Col("acts", "", "buttons"),
        ]
        offsets = dict(found.told)

        async def act(name: str, partition: str) -> None:
            if name == "edit":
                await self._edit_offset(partition, offsets.get(partition, ""))
            else:
                await self._alter(partition, "null")

        grid(
            self._context,
            columns,
            rows,
            key="partition",
            testid="offsets",
            empty=t("connect.no_offsets"),
            on_act=act,
        )

    async def _edit_offset(self, partition: str, offset: str) -> None:
        t = self._context.t
        with asking("offset-dialog") as dialog:
            ui.label(t("connect.offset_title")).classes("text-lg")
            example = '{"kafka_topic": "orders", "kafka_partition": 0}'
            where = ui.textarea(t("connect.partition"), value=partition, placeholder=example)
            where.props('outlined autogrow rows=2 data-testid="offset-partition"').classes("w-full font-mono")
            if partition:
                where.props("readonly")
            to = ui.textarea(t("connect.offset"), value=offset, placeholder='{"kafka_offset": 1000}')
            to.props('outlined autogrow rows=2 data-testid="offset-value"').classes("w-full font-mono")
            with ui.row().classes("w-full justify-end gap-2"):
                ui.button(t("common.cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(t("common.save"), on_click=lambda: dialog.submit(True)).props(
                    'unelevated no-caps data-testid="offset-save"'
                )
        if await answered(dialog):
            await self._alter(str(where.value or ""), str(to.value or ""))

    async def _alter(self, partition: str, offset: str) -> None:
        with layout.complaints(self._context):
            change = {"partition": _json(self._context, partition), "offset": _json(self._context, offset)}
            said = await actions.alter_offsets(self._context, self._number, self._name, [change])
            layout.tell(said or self._context.t("connect.offsets_changed"))
        await self._offsets_section.refresh()

    async def _reset(self) -> None:
        t = self._context.t
        question = t("connect.ask_reset", name=self._name)
        if not await confirmed(
            self._context, question, t("connect.reset_means"), button=t("connect.offsets_reset")
        ):
            return
        with layout.complaints(self._context):
            said = await actions.reset_offsets(self._context, self._number, self._name)
            layout.tell(said or t("connect.offsets_changed"))
        await self._offsets_section.refresh()

    async def _delete(self) -> None:
        t = self._context.t
        question = t("connect.ask_delete", name=self._name)
        if not await confirmed(
            self._context, question, t("connect.delete_means"), button=t("common.delete"), typed=self._name
        ):
            return
        with layout.complaints(self._context):
            await actions.delete(self._context, self._number, self._name)
            ui.navigate.to(layout.link(self._context, "/{cluster}/connect", connect=self._number or None))


def number_of(context: PageContext) -> int:
    """Which of the Connect clusters of the settings the address means."""
    text = context.query.get("connect", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0


def tasks_told(context: PageContext, row: ConnectorRow) -> str:
    counts = Counter(task.state for task in row.tasks)
    told = ", ".join(
        f"{count} {context.t(f'connect.state_{state}')}" for state, count in sorted(counts.items())
    )
    return told or context.t("connect.no_tasks_short")


def cause_of(trace: str) -> str:
    """The line that says what went wrong: Java's traces begin with it, Python's end with it."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    if not lines:
        return ""
    return (lines[-1] if lines[0].startswith("Traceback") else lines[0])[:MAX_CAUSE_CHARS]


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json(context: PageContext, text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(context.t("connect.bad_json", error=error)) from None
    if found is not None and not isinstance(found, dict):
        raise UserError(context.t("connect.bad_json", error="{…}"))
    return found


async def build(context: PageContext) -> None:
    _Connector(context).draw()
