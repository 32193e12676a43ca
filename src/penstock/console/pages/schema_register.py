"""A schema is written, checked against what is there, and registered."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

from nicegui import ui

from penstock.client.errors import UserError
from penstock.client.schema_registry import RegistryRefused
from penstock.console.access.actions import Action
from penstock.console.actions import schemas as actions
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.diff import show_difference
from penstock.console.pages.parts.difference import Line, difference
from penstock.console.pages.parts.editor import editor
from penstock.console.pages.parts.section import banner
from penstock.console.pages.schema_subject import PATH as SUBJECT
from penstock.console.pages.schema_subject import pretty, pretty_text
from penstock.console.upstream.asking import asked
from penstock.console.upstream.registry import KINDS, Candidate, Check, RegistryServer, SubjectVersion
from penstock.console.upstream.servers import servers
from penstock.schemas.model import SchemaReference

PATH: Final = "/{cluster}/schema-register"
EXAMPLES: Final = {
    "AVRO": '{\n  "type": "record",\n  "name": "Order",\n  "fields": [\n    {"name": "id", "type": "string"}\n  ]\n}\n',
    "JSON": '{\n  "type": "object",\n  "properties": {\n    "id": {"type": "string"}\n  }\n}\n',
    "PROTOBUF": 'syntax = "proto3";\n\nmessage Order {\n  string id = 1;\n}\n',
}
MAX_MESSAGES: Final = 20
MAX_SCHEMA_CHARS: Final = 1 << 20


class _Register:
    def __init__(self, context: PageContext, registry: RegistryServer) -> None:
        self._context, self._registry = context, registry
        self._newest: SubjectVersion | None = None

    async def draw(self) -> None:
        context, t = self._context, self._context.t
        subject = context.query.get("subject", "")
        if subject:
            context.require(Action.EDIT_SCHEMAS, subject)
            self._newest = await asked(partial(_newest, self._registry, subject))
        kind = self._newest.kind if self._newest else "AVRO"
        text = pretty(self._newest) if self._newest else EXAMPLES["AVRO"]
        with layout.heading(t("schemas.register"), subject):
            pass
        with ui.row().classes("w-full items-center gap-3"):
            self._subject = ui.input(t("schemas.subject"), value=subject, placeholder="orders-value")
            self._subject.props('outlined dense data-testid="subject" autocomplete=off').classes(
                "grow max-w-md"
            )
            self._kind = ui.toggle(list(KINDS), value=kind, on_change=self._kind_chosen).props(
                'no-caps data-testid="kind"'
            )
        self._editor = editor(
            context, text, language=_language(kind), testid="editor", label=t("schemas.tab_schema")
        )
        self._editor.classes("h-80 max-h-[50vh]")
        self._references = ui.textarea(
            t("schemas.references_field"), placeholder="name subject version"
        ).props('outlined dense autogrow rows=1 data-testid="references-field"')
        self._references.classes("w-full font-mono text-sm")
        if self._newest and self._newest.references:
            self._references.value = "\n".join(
                f"{each.name} {each.subject} {each.version}" for each in self._newest.references
            )
        with ui.row().classes("gap-2"):
            ui.button(t("schemas.check"), icon="rule", on_click=self._check).props(
                'outline no-caps data-testid="check"'
            )
            if context.may_somewhere(Action.EDIT_SCHEMAS):
                ui.button(t("schemas.register_button"), icon="done", on_click=self._register).props(
                    'unelevated no-caps data-testid="do-register"'
                )
        self._outcome = ui.column().classes("w-full gap-3").props('data-testid="outcome" aria-live=polite')

    def _kind_chosen(self) -> None:
        kind = str(self._kind.value)
        self._editor.set_language(_language(kind))
        if self._editor.value in (*EXAMPLES.values(), ""):
            self._editor.set_value(EXAMPLES[kind])

    def _candidate(self) -> tuple[str, Candidate]:
        subject = str(self._subject.value or "").strip()
        if not subject:
            raise UserError(self._context.t("schemas.subject_missing"))
        text = str(self._editor.value or "")
        if len(text) > MAX_SCHEMA_CHARS:
            raise UserError(self._context.t("schemas.too_long", most=MAX_SCHEMA_CHARS))
        return subject, Candidate(
            text, str(self._kind.value), _references(self._context, str(self._references.value or ""))
        )

    async def _check(self) -> bool:
        """Shows what the registry says, and the difference from the newest version."""
        with layout.complaints(self._context):
            subject, candidate = self._candidate()
            self._context.require(Action.EDIT_SCHEMAS, subject)  # what is shown is the newest version of it
            try:
                check = await asked(partial(self._registry.check, subject, candidate))
            except RegistryRefused as error:
                check = Check(False, (str(error),))
            newest = await asked(partial(_newest, self._registry, subject))
            lines = await asked(partial(_lines, newest, candidate))
            self._show(check, newest, lines)
            return check.is_compatible
        return False

    def _show(self, check: Check, newest: SubjectVersion | None, lines: list[Line]) -> None:
        t = self._context.t
        self._outcome.clear()
        with self._outcome:
            if check.is_compatible:
                words = t("schemas.compatible") if newest else t("schemas.first_version")
                banner(self._context, words, kind="positive")
            else:
                banner(self._context, t("schemas.incompatible"))
                with ui.column().classes("gap-1 w-full").props('data-testid="messages"'):
                    for message in check.messages[:MAX_MESSAGES]:
                        ui.label(message).classes("font-mono text-xs break-words w-full")
            if newest is not None:
                ui.label(t("schemas.difference_from", version=newest.version)).classes("opacity-80")
                show_difference(lines)

    async def _register(self) -> None:
        if not await self._check():
            return
        with layout.complaints(self._context):
            subject, candidate = self._candidate()
            schema_id = await actions.register(self._context, subject, candidate)
            layout.tell(self._context.t("schemas.registered", id=schema_id))
            ui.navigate.to(layout.link(self._context, SUBJECT, subject=subject))


def _newest(registry: RegistryServer, subject: str) -> SubjectVersion | None:
    try:
        versions = registry.state(subject).versions
        return registry.version(subject, versions[-1]) if versions else None
    except RegistryRefused as error:
        if error.code in (40401, 40402):
            return None
        raise


def _lines(newest: SubjectVersion | None, candidate: Candidate) -> list[Line]:
    if newest is None:
        return []
    return difference(pretty(newest), pretty_text(candidate.text, candidate.kind))


def _references(context: PageContext, text: str) -> tuple[SchemaReference, ...]:
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        parts = line.split()
        if len(parts) != 3 or not parts[2].isascii() or not parts[2].isdigit():
            raise UserError(context.t("schemas.bad_reference", line=line))
        found.append(SchemaReference(parts[0], parts[1], int(parts[2])))
    return tuple(found)


def _language(kind: str) -> Literal["ProtoBuf", "JSON"]:
    return "ProtoBuf" if kind == "PROTOBUF" else "JSON"


async def build(context: PageContext) -> None:
    if not context.may_somewhere(Action.EDIT_SCHEMAS):
        context.require(Action.EDIT_SCHEMAS)
    await _Register(context, servers(context.cluster).registry).draw()
