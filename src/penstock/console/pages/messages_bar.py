"""The bar above the table of messages: what to show, and what to look for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from nicegui import ui

from penstock.console.context import PageContext
from penstock.console.messages.asked import KINDS, LIMITS, LIVE, MODES, OFFSET, PATH, TIME, Asked
from penstock.console.messages.decode import Format
from penstock.console.messages.wanted import Part
from penstock.console.pages import layout

_FIELD: Final = "outlined dense"
_NARROW: Final = "message-field"
_SMALL: Final = "message-field-small"
_MEDIUM: Final = "message-field-medium"
_GROW: Final = "message-field-grow"


class Bar:
    """`start` is called when the visitor asks for something, by a button or by Enter."""

    def __init__(self, context: PageContext, asked: Asked, start: Callable[[], Awaitable[None]]) -> None:
        self._context = context
        self._start = start
        self._fields: dict[str, Any] = {}
        self._asked = asked

    def draw(self) -> None:
        with ui.card().classes("console-card w-full gap-2 p-3").props('data-testid="filters" role=search'):
            with ui.row().classes("w-full gap-2 items-center"):
                self._places()
                self._conditions()
            self._more()
        self._show_fields()

    def asked(self) -> Asked:
        """As it stands in the fields now."""
        found: dict[str, Any] = {}
        for name, field in self._fields.items():
            value = field.value
            found[name] = bool(value) if isinstance(getattr(self._asked, name), bool) else (value or "")
        found["limit"] = int(found["limit"] or Asked.limit)
        said: dict[str, Any] = {
            name: value if isinstance(value, bool | int) else str(value) for name, value in found.items()
        }
        return Asked(**said)

    def _places(self) -> None:
        t, asked = self._context.t, self._asked
        self._select(
            "mode", t("messages.mode"), {each: t(f"messages.mode_{each}") for each in MODES}, asked.mode
        )
        self._fields["mode"].on_value_change(self._show_fields)
        self._input("start", t("messages.start_time"), asked.start)
        limits = {each: f"{each:,}" for each in sorted({*LIMITS, asked.limit})}
        self._select("limit", t("messages.limit"), limits, asked.limit, classes=_SMALL)

    def _conditions(self) -> None:
        t, asked = self._context.t, self._asked
        kinds = {each: t(f"messages.kind_{each}") for each in KINDS}
        self._select("kind", t("messages.kind"), kinds, asked.kind, classes=_MEDIUM)
        self._fields["kind"].on_value_change(self._show_fields)
        text = self._input("text", t("messages.text"), asked.text, classes=_GROW)
        text.props(f"clearable input-class=console-mono {layout.SEARCH}")
        parts = {each.value: t(f"messages.part_{each.value}") for each in Part}
        self._select("part", t("messages.part"), parts, asked.part)
        self._switch("ignores_case", t("messages.ignore_case"), asked.ignores_case)
        self._go = ui.button(t("messages.search"), icon="search", on_click=self._start)
        self._go.props('unelevated no-caps data-testid="search"').classes("grow sm:grow-0")

    def _more(self) -> None:
        t, asked = self._context.t, self._asked
        is_open = any(
            (
                asked.until,
                asked.partitions,
                asked.key,
                asked.header,
                asked.nulls,
                asked.uncommitted,
                asked.control,
            )
        ) or (asked.formats_are_chosen)
        with ui.expansion(t("messages.filters"), value=is_open).classes("w-full") as more:
            more.props('dense dense-toggle data-testid="more-filters" header-class="console-soft px-1"')
            with ui.row().classes("w-full gap-x-3 gap-y-2 items-center pt-2"):
                self._input("partitions", t("messages.partitions"), asked.partitions, t("messages.all"))
                self._input(
                    "until", t("messages.until"), asked.until, t("messages.time_hint"), classes=_MEDIUM
                )
                self._input("key", t("messages.key"), asked.key, t("messages.key_hint"), classes=_MEDIUM)
                self._input(
                    "header",
                    t("messages.header"),
                    asked.header,
                    t("messages.header_hint"),
                    classes=_MEDIUM,
                )
                formats = {each.value: t(f"messages.format_{each.value}") for each in Format}
                self._select(
                    "key_format",
                    t("messages.key_format"),
                    formats,
                    asked.key_format,
                    classes=_MEDIUM,
                )
                self._select(
                    "value_format",
                    t("messages.value_format"),
                    formats,
                    asked.value_format,
                    classes=_MEDIUM,
                )
                self._switch("nulls", t("messages.nulls"), asked.nulls)
                self._switch("uncommitted", t("messages.uncommitted"), asked.uncommitted)
                self._switch("control", t("messages.control"), asked.control)

    def _show_fields(self) -> None:
        """Only those that mean something in the mode that is chosen."""
        t = self._context.t
        mode, kind = self._fields["mode"].value, self._fields["kind"].value
        start = self._fields["start"]
        start.set_visibility(mode in (OFFSET, TIME))
        start.props["label"] = t("messages.start_offset" if mode == OFFSET else "messages.start_time")
        start.props["placeholder"] = "0" if mode == OFFSET else t("messages.time_hint")
        start.update()
        self._fields["until"].set_visibility(mode != LIVE)
        self._fields["part"].set_visibility(kind != PATH)
        self._fields["ignores_case"].set_visibility(kind != PATH)
        text = self._fields["text"]
        text.props["placeholder"] = t(f"messages.hint_{kind}")
        text.update()
        self._go.set_text(t("messages.follow" if mode == LIVE else "messages.search"))

    def _input(
        self, name: str, label: str, value: str, placeholder: str = "", *, classes: str = _NARROW
    ) -> ui.input:
        field = ui.input(label, value=value, placeholder=placeholder)
        field.props(f'{_FIELD} stack-label autocomplete=off data-testid="{name}"').classes(classes)
        field.on("keydown.enter", self._start)
        self._fields[name] = field
        return field

    def _select(
        self, name: str, label: str, options: dict[Any, str], value: Any, *, classes: str = _NARROW
    ) -> None:
        field = ui.select(options, label=label, value=value if value in options else next(iter(options)))
        field.props(f'{_FIELD} options-dense data-testid="{name}"').classes(classes)
        self._fields[name] = field

    def _switch(self, name: str, label: str, value: bool) -> None:
        self._fields[name] = ui.switch(label, value=value).props(f'dense data-testid="{name}"')
