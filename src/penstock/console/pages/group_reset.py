"""The dialog that sends a group elsewhere: what is wanted, then what it would do, then the doing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from nicegui import ui

from penstock.admin import Target
from penstock.admin.groups.reset import parse_datetime_ms, parse_duration_ms
from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions import groups as actions
from penstock.console.actions.groups import PlannedOffset
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.topic_changes import whole
from penstock.model.ids import TopicPartition

FORMS: Final = ("earliest", "latest", "shift", "time", "ago", "offset", "values")
MAX_CHOICES: Final = 2000


async def show(context: PageContext, group: str) -> None:
    await answered(_Reset(context, group).draw())


class _Reset:
    def __init__(self, context: PageContext, group: str) -> None:
        self._context = context
        self._group = group
        view = context.cluster.snapshot.latest
        self._row = None if view is None else view.groups.get(group)
        self._known = {} if view is None else {name: len(row.partitions) for name, row in view.topics.items()}
        self._planned: list[PlannedOffset] = []

    def draw(self) -> ui.dialog:
        t, context = self._context.t, self._context
        own = (
            [] if self._row is None else [name for name in self._row.topics if context.may(Action.VIEW, name)]
        )
        others = [name for name in self._known if name not in own and context.may(Action.VIEW, name)]
        with (
            ui.dialog().props('data-testid="reset-dialog"') as dialog,
            ui.card().classes("w-full max-w-3xl gap-3"),
        ):
            self._dialog = dialog
            ui.label(t("group.reset_title", group=self._group)).classes("console-title break-words")
            self._topics = ui.select(
                [*own, *others[:MAX_CHOICES]], value=own, multiple=True, with_input=True, label=t("group.topics"),
                on_change=self._unplanned,
            ).props('outlined dense use-chips data-testid="reset-topics"').classes("w-full")  # fmt: skip
            with ui.row().classes("w-full gap-3 items-start"):
                self._form = ui.select(
                    {form: t(f"group.form_{form}") for form in FORMS}, value="earliest", label=t("group.to"),
                    on_change=self._chosen,
                ).props('outlined dense data-testid="reset-form"').classes("grow min-w-48")  # fmt: skip
                self._value = ui.input(on_change=self._unplanned).props(
                    'outlined dense data-testid="reset-value"'
                )
                self._value.classes("grow min-w-48")
                self._partitions = ui.input(t("group.only_partitions"), on_change=self._unplanned)
                self._partitions.props('outlined dense data-testid="reset-partitions"').classes("min-w-40")
            self._values = ui.textarea(t("group.values"), on_change=self._unplanned)
            self._values.props('outlined dense autogrow data-testid="reset-values"').classes(
                "w-full console-mono max-h-60"
            )
            self._box = ui.column().classes("w-full gap-2")
            with ui.row().classes("w-full justify-end gap-2"):
                ui.button(t("common.cancel"), on_click=dialog.close).props("flat no-caps")
                ui.button(t("group.plan"), on_click=self._plan).props(
                    'outline no-caps data-testid="reset-plan"'
                )
                self._go = ui.button(t("group.execute"), on_click=self._execute).props(
                    'unelevated no-caps color=negative data-testid="reset-execute"'
                )
        self._chosen()
        return dialog

    def _chosen(self) -> None:
        form, t = str(self._form.value), self._context.t
        self._value.set_visibility(form in ("shift", "time", "ago", "offset"))
        self._values.set_visibility(form == "values")
        self._partitions.set_visibility(form != "values")
        if form in ("shift", "time", "ago", "offset"):
            self._value.props["label"] = t(f"group.value_{form}")
            self._value.props["placeholder"] = {
                "shift": "-100",
                "time": "2026-11-20T08:00:00",
                "ago": "PT1H",
                "offset": "0",
            }[form]
            self._value.props["stack-label"] = True
            self._value.update()
        if form == "values" and not self._values.value:
            self._values.set_value(self._prefilled())
        self._unplanned()

    def _prefilled(self) -> str:
        topics = set(self._topics.value or ())
        known = {} if self._row is None else {one.partition: one.committed for one in self._row.partitions}
        lines = []
        for topic in sorted(topics):
            for number in range(self._known.get(topic, 0)):
                place = TopicPartition(topic, number)
                lines.append(f"{topic}:{number}={known.get(place, 0)}")
        return "\n".join(lines)

    def _unplanned(self) -> None:
        """Whatever was planned is not what would be done now."""
        self._planned = []
        self._go.set_enabled(False)
        self._box.clear()

    async def _plan(self) -> None:
        context = self._context
        self._unplanned()
        with layout.complaints(context):
            form = str(self._form.value)
            if form == "values":
                values = parse_values(context, str(self._values.value or ""))
                self._planned = await actions.plan_values(context, self._group, values)
            else:
                target = _target(context, form, str(self._value.value or "").strip())
                self._planned = await actions.plan(context, self._group, self._wanted(), target)
            self._show_plan()

    def _wanted(self) -> list[TopicPartition]:
        context = self._context
        topics = [str(topic) for topic in self._topics.value or ()]
        if not topics:
            raise UserError(context.t("group.needs_topic"))
        numbers = [
            whole(context, one.strip()) for one in str(self._partitions.value or "").split(",") if one.strip()
        ]
        found = []
        for topic in topics:
            count = self._known.get(topic, 0)
            for number in numbers or range(count):
                if not 0 <= number < count:
                    raise UserError(context.t("group.no_partition", partition=f"{topic}-{number}"))
                found.append(TopicPartition(topic, number))
        return found

    def _show_plan(self) -> None:
        t = self._context.t
        with self._box:
            again = sum(-one.change for one in self._planned if one.change is not None and one.change < 0)
            left_out = sum(one.change for one in self._planned if one.change is not None and one.change > 0)
            ui.label(
                t(
                    "group.planned",
                    count=len(self._planned),
                    again=figures.count(again),
                    left_out=figures.count(left_out),
                )
            ).props('data-testid="plan-sum" role=status').classes("font-medium")
            columns = [
                Col("partition", t("topic.partition"), is_sortable=False),
                Col("now", t("group.now"), "number", is_sortable=False),
                Col("then", t("group.then"), "number", is_sortable=False),
                Col("change", t("group.change"), "number", is_sortable=False),
                Col("note", "", is_sortable=False, is_wide=True),
            ]
            grid(
                self._context,
                columns,
                [_row(one) for one in self._planned],
                key="partition",
                testid="plan",
                rows_per_page=10,
            )
        self._go.set_enabled(bool(self._planned))

    async def _execute(self) -> None:
        context, planned = self._context, self._planned
        if not planned:
            return
        with layout.complaints(context):
            await actions.reset(context, self._group, planned)
            layout.tell(context.t("group.was_reset", group=self._group, count=len(planned)))
            self._dialog.close()


def _row(one: PlannedOffset) -> dict[str, Any]:
    change = one.change
    return {
        "partition": str(one.partition),
        "now": figures.count(one.now),
        "then": figures.count(one.then),
        "change": "–" if change is None else f"{change:+,}" if change else "0",
        "note": one.note,
    }


def _target(context: PageContext, form: str, value: str) -> Target:
    if form in ("earliest", "latest"):
        return Target(form)
    if not value:
        raise UserError(context.t("group.needs_value"))
    if form == "time":
        return Target("time", parse_datetime_ms(value))
    if form == "ago":
        return Target("time", round(time.time() * 1000) - parse_duration_ms(value))
    return Target(form, whole(context, value))


def parse_values(context: PageContext, text: str) -> Mapping[TopicPartition, int]:
    """Lines of TOPIC:PARTITION=OFFSET. UserError names the first that is none."""
    found: dict[TopicPartition, int] = {}
    for line in text.splitlines():
        line = line.strip()
        if not line:
            continue
        place, equals, offset = line.rpartition("=")
        topic, colon, number = place.rpartition(":")
        if not equals or not colon or not topic:
            raise UserError(context.t("group.bad_line", line=line))
        partition = TopicPartition(topic, whole(context, number.strip()))
        if partition in found:
            raise UserError(context.t("group.twice", partition=partition))
        found[partition] = whole(context, offset.strip())
    if not found:
        raise UserError(context.t("group.nothing_planned"))
    return found
