"""A connector is made, or its configuration changed: a form from the plugin's definition, checked by the worker while one types.

What is sent is what was typed and nothing else: a default stays the worker's, whatever it becomes later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from nicegui import ui

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions import connect as actions
from penstock.console.context import PageContext
from penstock.console.pages import connector, layout
from penstock.console.pages.connector import number_of
from penstock.console.pages.parts.asking_first import asking
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.parts.section import Section
from penstock.console.upstream.asking import asked
from penstock.console.upstream.connect import ConnectServer, Field, PluginClass, Verdict
from penstock.console.upstream.servers import servers

NEW: Final = "/{cluster}/connect-new"
EDIT: Final = connector.EDIT
CLASS: Final = "connector.class"
OWN: Final = ("name", CLASS)
"""Asked for above the form."""
TYPING_PAUSE_S: Final = 0.5
SHOWN_AT_FIRST: Final = ("HIGH", "MEDIUM")
COMMON_GROUPS: Final = (
    "Common", "Transforms", "Predicates", "Error Handling", "Topic Creation", "Exactly Once Support", "Offsets Topic",
)  # fmt: skip
"""Of all connectors: those of the connector itself come first."""
NUMBERS: Final = ("INT", "LONG", "SHORT", "DOUBLE")


class _Form:
    def __init__(self, context: PageContext, *, name: str, config: Mapping[str, str], is_new: bool) -> None:
        self._context = context
        self._number = number_of(context)
        self._server: ConnectServer = servers(context.cluster).connect(self._number)
        self._name, self._is_new = name, is_new
        self._before = dict(config)
        self._config = dict(config)
        self._fields: dict[str, ui.input | ui.select | ui.switch] = {}
        self._notes: dict[str, ui.label] = {}
        self._known: tuple[str, ...] = ()
        self._checks = 0
        self._shows_all = False

    async def draw(self) -> None:
        t = self._context.t
        with ui.row().classes("w-full items-center gap-3"):
            field = ui.input(t("connect.name"), value=self._name, on_change=self._named)
            field.props('outlined dense autocomplete=off data-testid="connector-name"').classes(
                "grow max-w-md"
            )
            if not self._is_new:
                field.props("readonly")
            ui.label(self._config[CLASS]).classes("font-mono text-xs break-all opacity-80")
        with ui.row().classes("w-full items-center gap-4"):
            ui.switch(t("connect.all_settings"), on_change=self._switched).props('data-testid="all-settings"')
            ui.button(t("connect.as_json"), icon="data_object", on_click=self._as_json).props(
                'flat dense no-caps data-testid="as-json"'
            )
            self._summary = ui.label().classes("opacity-80").props('data-testid="summary" aria-live=polite')
        self._body = ui.column().classes("w-full gap-4").props('data-testid="form"')
        with ui.row().classes("w-full gap-2 items-center"):
            words = t("connect.create_button") if self._is_new else t("common.save")
            ui.button(words, icon="done", on_click=self._send).props('unelevated no-caps data-testid="send"')
            if self._is_new:
                states = {each: t(f"connect.begin_{each}") for each in ("RUNNING", "PAUSED", "STOPPED")}
                self._state = ui.select(states, value="RUNNING").props(
                    'outlined dense options-dense data-testid="initial-state"'
                )
        ui.timer(0.01, self._check, once=True)

    # ------------------------------------------------------------------ what is typed

    def _named(self, event: Any) -> None:
        self._name = str(event.value or "").strip()

    async def _switched(self, event: Any) -> None:
        self._shows_all = bool(event.value)
        self._known = ()
        await self._check()

    def _typed(self, name: str, value: object) -> None:
        text = (
            ("true" if value else "false")
            if isinstance(value, bool)
            else str(value if value is not None else "")
        )
        if isinstance(value, list):
            text = ",".join(map(str, value))
        if text == self._config.get(name, ""):
            return
        if text:
            self._config[name] = text
        else:
            self._config.pop(name, None)
        self._checks += 1
        with self._body:
            ui.timer(TYPING_PAUSE_S, partial(self._check_if_last, self._checks), once=True)

    async def _check_if_last(self, number: int) -> None:
        if number == self._checks:
            await self._check()

    # ------------------------------------------------------------------ what the worker says

    async def _check(self) -> Verdict | None:
        number = self._checks
        verdict: Verdict | None = None
        with layout.complaints(self._context):
            asked_about = {**self._config, "name": self._name or "unnamed"}
            verdict = await asked(partial(self._server.validate, asked_about))
        if verdict is None or self._body.is_deleted or number != self._checks:
            return verdict  # more was typed meanwhile; another check is on its way
        shown = [each for each in verdict.fields if each.name not in OWN and self._is_shown(each)]
        names = tuple(each.name for each in shown)
        if names != self._known:
            self._known = names
            self._draw_fields(shown, verdict.groups)
        for each in shown:
            self._tell(each)
        self._summarize(verdict)
        return verdict

    def _is_shown(self, field: Field) -> bool:
        if not field.is_visible:
            return False
        important = SHOWN_AT_FIRST[:1] if field.group in COMMON_GROUPS else SHOWN_AT_FIRST
        matters = field.is_required or field.importance in important
        return bool(self._shows_all or matters or field.errors or field.name in self._config)

    def _draw_fields(self, shown: list[Field], groups: tuple[str, ...]) -> None:
        self._fields, self._notes = {}, {}
        self._body.clear()
        order = {group: place for place, group in enumerate(groups)}
        by_group: dict[str, list[Field]] = {}
        for field in shown:
            by_group.setdefault(field.group, []).append(field)
        own = self._context.t("connect.own_settings", name=self._config[CLASS].rpartition(".")[2])
        with self._body:
            for group in sorted(
                by_group, key=lambda each: (each in COMMON_GROUPS, order.get(each, len(order)))
            ):
                with ui.column().classes("w-full gap-1"):
                    ui.label(group or own).classes("text-base font-medium")
                    with ui.grid().classes("w-full gap-x-4 gap-y-3 grid-cols-1 md:grid-cols-2"):
                        fields = by_group[group]
                        for field in sorted(
                            fields, key=lambda each: (not each.is_required, each.order, each.name)
                        ):
                            self._draw_field(field)

    def _draw_field(self, field: Field) -> None:
        with ui.column().classes("gap-0 min-w-0"):
            self._fields[field.name] = found = self._input(field)
            # Names are the plugin's, and of transforms the user's: in a string of props a quote would begin another one.
            found.props["data-testid"] = f"field-{field.name}"
            with ui.row().classes("items-baseline gap-2 w-full"):
                ui.label(field.name).classes("font-mono text-xs opacity-70 break-all")
                if field.is_required:
                    ui.label(self._context.t("connect.required")).classes("text-xs text-negative")
                elif field.default:
                    default = self._context.t("connect.default", value=field.default)
                    ui.label(default).classes("text-xs opacity-70 break-all")
            note = ui.label(field.documentation).classes("text-xs opacity-80 line-clamp-2 w-full")
            note.on("click", lambda: note.classes(toggle="line-clamp-2"))
            self._notes[field.name] = ui.label().classes("text-xs text-negative break-words w-full")
            self._notes[field.name].props["data-testid"] = f"error-{field.name}"

    def _input(self, field: Field) -> ui.input | ui.select | ui.switch:
        value = self._config.get(field.name, "")
        changed = partial(_changed, self._typed, field.name)
        if field.kind == "BOOLEAN":
            is_on = (value or field.default or "false").lower() == "true"
            return ui.switch(field.label, value=is_on, on_change=changed)
        if field.choices and field.kind != "LIST":
            choices = list(dict.fromkeys(["", *field.choices, *([value] if value else [])]))
            found = ui.select(choices, value=value, label=field.label, on_change=changed, with_input=True,
                              new_value_mode="add-unique")  # fmt: skip
            return found.props("outlined dense options-dense").classes("w-full")
        is_secret = field.kind == "PASSWORD"
        text = ui.input(field.label, value=value, on_change=changed, password=is_secret, password_toggle_button=is_secret,
                        autocomplete=list(field.choices) or None)  # fmt: skip
        text.props("outlined dense autocomplete=off").classes("w-full")
        if field.kind in NUMBERS:
            text.props("inputmode=numeric")
        return text

    def _tell(self, field: Field) -> None:
        """The errors at the field; a required one that nobody has come to yet is not told off."""
        note = self._notes.get(field.name)
        if note is None:
            return
        is_untouched = (
            field.is_required and field.name not in self._config and self._checks == 0 and self._is_new
        )
        note.text = "" if is_untouched else "\n".join(field.errors)

    def _summarize(self, verdict: Verdict) -> None:
        t = self._context.t
        count = sum(len(each.errors) for each in verdict.fields)
        self._summary.text = t("connect.can_be_used") if not count else t("connect.problems", count=count)

    # ------------------------------------------------------------------ sending it

    async def _send(self) -> None:
        t = self._context.t
        with layout.complaints(self._context):
            if not self._name:
                raise UserError(t("connect.name_missing"))
            self._checks += 1
            verdict = await self._check()
            if verdict is None:
                return
            wrong = [f"{each.name}: {each.errors[0]}" for each in verdict.fields if each.errors]
            if wrong:
                raise UserError(t("connect.wrong", count=len(wrong), first=wrong[0]))
            config = {**self._config, "name": self._name}
            if self._is_new:
                state = str(self._state.value)
                await actions.create(self._context, self._number, self._name, config, state=state)
            else:
                names = config.keys() | self._before.keys()
                changed = sorted(each for each in names if config.get(each) != self._before.get(each))
                await actions.configure(self._context, self._number, self._name, config, changed=changed)
            target = layout.link(
                self._context, connector.PATH, connector=self._name, connect=self._number or None
            )
            ui.navigate.to(target)

    async def _as_json(self) -> None:
        """All of it as text, to be pasted or changed by hand."""
        t = self._context.t
        with asking("json-dialog", wide=True) as dialog:
            ui.label(t("connect.as_json")).classes("text-lg")
            text = json.dumps(dict(sorted(self._config.items())), indent=2, ensure_ascii=False)
            area = ui.textarea(value=text).props(
                'outlined input-class="font-mono text-xs h-80" data-testid="json"'
            )
            area.classes("w-full")
            with ui.row().classes("w-full justify-end gap-2"):
                ui.button(t("common.cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(t("connect.take"), on_click=lambda: dialog.submit(True)).props(
                    'unelevated no-caps data-testid="json-take"'
                )
        is_taken = await answered(dialog)
        text = str(area.value or "")
        if is_taken:
            with layout.complaints(self._context):
                self._config = {CLASS: self._config[CLASS]} | _config(self._context, text)
                self._checks += 1
                self._known = ()
                await self._check()


def _changed(typed: Any, name: str, event: Any) -> None:
    typed(name, event.value)


def _config(context: PageContext, text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(context.t("connect.bad_json", error=error)) from None
    if isinstance(found, dict) and isinstance(found.get("config"), dict):
        found = found["config"]
    if not isinstance(found, dict) or not all(
        isinstance(each, str | int | float | bool) for each in found.values()
    ):
        raise UserError(context.t("connect.bad_json", error='{"name": "value"}'))
    plain = {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in found.items()
    }
    plain.pop("name", None)
    return plain


async def _draw_plugins(context: PageContext) -> None:
    """Which connector, first."""
    t = context.t
    server = servers(context.cluster).connect(number_of(context))
    search = ui.input(placeholder=t("connect.search_plugins")).props(
        f'dense outlined clearable debounce=200 data-testid="search" {layout.SEARCH}'
    )
    search.classes("w-full max-w-md")

    def show(found: list[PluginClass]) -> None:
        wanted = str(search.value or "").lower()
        rows = [
            {
                "class": one.name,
                "short": one.name.rpartition(".")[2],
                "short_href": layout.link(
                    context, NEW, connect=context.query.get("connect"), **{"class": one.name}
                ),
                "kind": one.kind,
                "version": one.version,
            }
            for one in sorted(found, key=lambda each: each.name.rpartition(".")[2].lower())
            if wanted in one.name.lower()
        ]
        columns = [
            Col("short", t("connect.class"), "link"),
            Col("kind", t("connect.kind")),
            Col("version", t("connect.version")),
            Col("class", t("connect.full_class"), "mono", is_wide=True),
        ]
        grid(context, columns, rows, key="class", testid="plugins", rows_per_page=50)

    section = Section(context, lambda: asked(server.plugins), show)
    search.on_value_change(section.draw_again)


async def build(context: PageContext) -> None:
    t = context.t
    name = context.path.get("connector", "")
    if name:
        context.require(Action.EDIT_CONNECTORS, name)
        with layout.heading(t("connect.edit"), name):
            pass
        found = await asked(partial(servers(context.cluster).connect(number_of(context)).connector, name))
        config = {key: value for key, value in found.config.items() if key != "name"}
        await _Form(context, name=name, config=config, is_new=False).draw()
        return
    if not context.may_somewhere(Action.EDIT_CONNECTORS):
        context.require(Action.EDIT_CONNECTORS)
    chosen = context.query.get("class", "")
    with layout.heading(t("connect.create"), t("connect.choose_plugin") if not chosen else ""):
        pass
    if chosen:
        await _Form(context, name="", config={CLASS: chosen}, is_new=True).draw()
    else:
        await _draw_plugins(context)
