"""One subject: its versions, the difference between two, references, compatibility, and what deletes it."""

from __future__ import annotations

import json
from functools import partial
from typing import Final, NamedTuple

from nicegui import ui

from penstock.console.access.actions import Action
from penstock.console.actions import schemas as actions
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.asking_first import confirmed
from penstock.console.pages.parts.diff import show_difference
from penstock.console.pages.parts.difference import Line, difference
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.parts.section import Section, banner
from penstock.console.pages.parts.tabbed import Tab, tabbed
from penstock.console.upstream.asking import asked
from penstock.console.upstream.registry import LEVELS, MODES, RegistryServer, SubjectState, SubjectVersion
from penstock.console.upstream.servers import servers

PATH: Final = "/{cluster}/schemas/{subject:path}"
REGISTER: Final = "/{cluster}/schema-register"
INHERITED: Final = ""
MAX_SHOWN_CHARS: Final = 200_000
"""Of a schema on the page; what is copied is all of it."""


class Seen(NamedTuple):
    """One look at a subject: `shown` is the version that was chosen, `other` is what it is compared with."""

    state: SubjectState
    shown: SubjectVersion
    other: SubjectVersion | None
    referenced_by: tuple[tuple[str, int], ...]
    lines: tuple[Line, ...]


class _Subject:
    def __init__(self, context: PageContext, registry: RegistryServer) -> None:
        self._context, self._registry = context, registry
        self._subject = context.path["subject"]
        self._version = _number(context.query.get("version"))
        self._other: int | None = None
        self._tab = "schema"
        self._may_edit = context.may(Action.EDIT_SCHEMAS, self._subject)

    def draw(self) -> None:
        t = self._context.t
        with layout.heading(self._subject):
            if self._may_edit:
                target = layout.link(self._context, REGISTER, subject=self._subject)
                ui.button(
                    t("schemas.new_version"), icon="add", on_click=lambda: ui.navigate.to(target)
                ).props('unelevated no-caps data-testid="new-version"')
                ui.button(icon="delete", on_click=self._delete_subject).props(
                    f'flat round color=negative aria-label="{t("schemas.delete_subject")}" data-testid="delete-subject"'
                )
        self._section = Section(self._context, self._look, self._show)

    async def _look(self) -> Seen:
        return await asked(partial(self._ask, self._version, self._other))

    def _ask(self, version: int | None, other: int | None) -> Seen:
        registry, subject = self._registry, self._subject
        state = registry.state(subject)
        every = sorted({*state.versions, *state.deleted_versions})
        number = version if version in every else max(state.versions or every)
        shown = registry.version(subject, number)
        before = [each for each in every if each < number] or [each for each in every if each != number]
        against = other if other in every else (before[-1] if before else None)
        compared = None if against is None else registry.version(subject, against)
        lines = difference(pretty(compared), pretty(shown)) if compared is not None else []
        referenced = registry.referenced_by(subject, shown.version)
        return Seen(state, shown, compared, tuple(referenced), tuple(lines))

    def _show(self, seen: Seen) -> None:
        t, shown, state = self._context.t, seen.shown, seen.state
        with ui.row().classes("w-full items-center gap-x-6 gap-y-2"):
            _fact(t("schemas.kind"), shown.kind, "kind")
            _fact(t("schemas.version"), str(shown.version), "version")
            _fact(t("schemas.id"), str(shown.id), "id")
            own = state.level if state.has_own_level else t("schemas.level_of_all", level=state.level)
            _fact(t("schemas.compatibility"), own, "level")
            _fact(t("schemas.mode"), state.mode, "mode")
        if shown.version in state.deleted_versions:
            banner(self._context, t("schemas.version_deleted"), kind="warning")
        with ui.grid().classes("w-full gap-4 grid-cols-1 md:grid-cols-[9rem_minmax(0,1fr)]"):
            self._versions(seen)
            with ui.column().classes("w-full min-w-0 gap-0"):
                self._tabs(seen)

    def _versions(self, seen: Seen) -> None:
        t, state = self._context.t, seen.state
        with ui.column().classes("gap-1 w-full min-w-0").props('role=navigation data-testid="versions"'):
            ui.label(t("schemas.versions")).classes("opacity-80")
            with ui.row().classes("md:flex-col gap-1 max-h-96 overflow-auto w-full"):
                for number in sorted({*state.versions, *state.deleted_versions}, reverse=True):
                    words = t("schemas.version_n", version=number)
                    if number in state.deleted_versions:
                        words = t("schemas.version_n_deleted", version=number)
                    button = ui.button(words, on_click=partial(self._choose, number))
                    is_shown = number == seen.shown.version
                    look = "unelevated" if is_shown else "flat"
                    button.props(f'{look} no-caps dense align=left data-testid="version-{number}"').classes(
                        "px-3"
                    )

    def _tabs(self, seen: Seen) -> None:
        t = self._context.t
        draws = {
            "schema": partial(self._schema, seen.shown),
            "difference": partial(self._difference, seen),
            "references": partial(self._references, seen),
            "settings": partial(self._settings, seen),
        }
        tabs = [Tab(name, t(f"schemas.tab_{name}"), draw) for name, draw in draws.items()]
        tabbed(tabs, shown=self._tab, on_turn=self._turned)

    def _turned(self, name: str) -> None:
        self._tab = name

    def _schema(self, shown: SubjectVersion) -> None:
        text = pretty(shown)
        with ui.row().classes("w-full justify-end -mb-2"):
            ui.button(
                self._context.t("common.copy"), icon="content_copy", on_click=lambda: ui.clipboard.write(text)
            ).props('flat dense no-caps data-testid="copy"')
        label = ui.label(text[:MAX_SHOWN_CHARS]).classes(
            "font-mono text-xs whitespace-pre overflow-auto console-card p-3 w-full"
        )
        label.props('data-testid="schema-text" tabindex=0').classes("max-h-[60vh]")

    def _difference(self, seen: Seen) -> None:
        t, every = self._context.t, sorted({*seen.state.versions, *seen.state.deleted_versions}, reverse=True)
        if seen.other is None:
            ui.label(t("schemas.one_version")).classes("opacity-80")
            return
        with ui.row().classes("items-center gap-2 pb-2"):
            choices = [each for each in every if each != seen.shown.version]
            field = ui.select(choices, value=seen.other.version, label=t("schemas.compared_with"))
            field.props('dense outlined options-dense data-testid="compared-with"').classes("w-40")
            field.on_value_change(lambda event: self._compare(int(event.value)))
            ui.label(t("schemas.to_version", version=seen.shown.version)).classes("opacity-80")
        show_difference(seen.lines)

    def _references(self, seen: Seen) -> None:
        t = self._context.t
        columns = [
            Col("name", t("common.name"), is_wide=True),
            Col("subject", t("schemas.subject"), "link", is_wide=True),
            Col("version", t("schemas.version"), "number"),
        ]
        ui.label(t("schemas.references")).classes("font-medium pb-1")
        rows = [
            {"name": each.name, "subject": each.subject, "version": each.version,
             "subject_href": layout.link(self._context, PATH, subject=each.subject, version=each.version)}
            for each in seen.shown.references
        ]  # fmt: skip
        grid(self._context, columns, rows, key="name", testid="references")
        ui.label(t("schemas.referenced_by")).classes("font-medium pt-4 pb-1")
        rows = [
            {"name": f"{subject}@{version}", "subject": subject, "version": version,
             "subject_href": layout.link(self._context, PATH, subject=subject, version=version)}
            for subject, version in seen.referenced_by
        ]  # fmt: skip
        grid(self._context, columns[1:], rows, key="name", testid="referenced-by")

    def _settings(self, seen: Seen) -> None:
        t, state = self._context.t, seen.state
        with ui.column().classes("gap-4 max-w-md w-full"):
            choices = {INHERITED: t("schemas.level_inherited"), **{each: each for each in LEVELS}}
            level = ui.select(
                choices, value=state.level if state.has_own_level and state.level in LEVELS else INHERITED,
                label=t("schemas.compatibility"),
            )  # fmt: skip
            level.props('outlined dense options-dense data-testid="level-choice"').classes("w-full")
            level.on_value_change(lambda event: self._set_level(str(event.value)))
            modes = list(MODES) if state.mode in MODES else [state.mode, *MODES]
            mode = ui.select(modes, value=state.mode, label=t("schemas.mode"))
            mode.props('outlined dense options-dense data-testid="mode-choice"').classes("w-full")
            mode.on_value_change(lambda event: self._set_mode(str(event.value)))
            delete = ui.button(
                t("schemas.delete_version", version=seen.shown.version), icon="delete",
                on_click=lambda: self._delete_version(seen),
            )  # fmt: skip
            delete.props('outline no-caps color=negative data-testid="delete-version"')
        if not self._may_edit:
            for each in (level, mode, delete):
                each.disable()

    # ------------------------------------------------------------------ what a person does

    async def _choose(self, version: int) -> None:
        self._version, self._other = version, None
        await self._section.refresh()

    async def _compare(self, other: int) -> None:
        self._other = other
        await self._section.refresh()

    async def _set_level(self, level: str) -> None:
        with layout.complaints(self._context):
            if level == INHERITED:
                await actions.remove_level(self._context, self._subject)
            else:
                await actions.set_level(self._context, self._subject, level)
            layout.tell(
                self._context.t(
                    "schemas.level_set", level=level or self._context.t("schemas.level_inherited")
                )
            )
        await self._section.refresh()

    async def _set_mode(self, mode: str) -> None:
        with layout.complaints(self._context):
            await actions.set_mode(self._context, self._subject, mode)
            layout.tell(self._context.t("schemas.mode_set", mode=mode))
        await self._section.refresh()

    async def _delete_version(self, seen: Seen) -> None:
        t, version = self._context.t, seen.shown.version
        is_permanent = version in seen.state.deleted_versions
        detail = t("schemas.delete_permanent") if is_permanent else t("schemas.delete_soft")
        question = t("schemas.ask_delete_version", version=version, subject=self._subject)
        if not await confirmed(self._context, question, detail, button=t("common.delete")):
            return
        with layout.complaints(self._context):
            await actions.delete_version(self._context, self._subject, version, permanent=is_permanent)
            layout.tell(t("schemas.version_gone", version=version))
            if is_permanent and len(seen.state.versions) + len(seen.state.deleted_versions) == 1:
                ui.navigate.to(layout.link(self._context, "/{cluster}/schemas"))
                return
        await self._section.refresh()

    async def _delete_subject(self) -> None:
        t = self._context.t
        with layout.complaints(self._context):
            state = await asked(partial(self._registry.state, self._subject))
            is_permanent = not state.versions
            detail = t("schemas.delete_permanent") if is_permanent else t("schemas.delete_soft")
            question = t("schemas.ask_delete_subject", subject=self._subject, count=len(state.versions))
            if not await confirmed(
                self._context, question, detail, button=t("common.delete"), typed=self._subject
            ):
                return
            await actions.delete_subject(self._context, self._subject, permanent=is_permanent)
            ui.navigate.to(layout.link(self._context, "/{cluster}/schemas"))


def pretty(version: SubjectVersion) -> str:
    """The schema as it is, with line ends where it is JSON."""
    return pretty_text(version.text, version.kind)


def pretty_text(text: str, kind: str) -> str:
    if kind == "PROTOBUF":
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _fact(name: str, value: str, testid: str) -> None:
    with ui.row().classes("items-baseline gap-2"):
        ui.label(name).classes("opacity-70 text-sm")
        ui.label(value).classes("font-medium").props(f'data-testid="fact-{testid}"')


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


async def build(context: PageContext) -> None:
    _Subject(context, servers(context.cluster).registry).draw()
