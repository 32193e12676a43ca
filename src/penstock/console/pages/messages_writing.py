"""The dialog that writes messages: one by a form, or several by lines of JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from nicegui import events, ui

from penstock.client.errors import UserError
from penstock.console.actions import messages as actions
from penstock.console.context import PageContext
from penstock.console.messages.produce import (
    MAX_TEXT_BYTES,
    SCHEMA,
    WRITE_FORMATS,
    NewRecord,
    parse_headers,
    parse_lines,
)
from penstock.console.pages import layout
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.asking_first import asking

_FIELD: Final = "outlined dense stack-label autocomplete=off"
_EXAMPLE: Final = '{"key": "1", "value": {"total": 3}, "headers": {"source": "shop"}}'


async def write(context: PageContext, topic: str, done: Callable[[], Awaitable[None]]) -> None:
    """`done` is called when something was written."""
    schemas = {part: await _schema(context, topic, part) for part in ("key", "value")}
    with asking("produce", wide=True) as dialog:
        _Form(context, topic, schemas, dialog, done).draw()
    await dialog
    if not dialog.is_deleted:
        dialog.delete()


async def _schema(context: PageContext, topic: str, part: str) -> actions.SubjectSchema | None:
    with layout.complaints(context):
        return await actions.subject_schema(context, topic, is_key=part == "key")
    return None


class _Form:
    def __init__(
        self,
        context: PageContext,
        topic: str,
        schemas: dict[str, actions.SubjectSchema | None],
        dialog: ui.dialog,
        done: Callable[[], Awaitable[None]],
    ) -> None:
        self._context, self._topic, self._schemas = context, topic, schemas
        self._dialog, self._done = dialog, done
        self._formats: dict[str, ui.select] = {}
        self._texts: dict[str, ui.textarea] = {}

    def draw(self) -> None:
        t = self._context.t
        ui.label(t("messages.produce_to", topic=self._topic)).classes("console-title")
        with ui.tabs().props("dense no-caps align=left").classes("w-full") as tabs:
            ui.tab("one", t("messages.one")).props('data-testid="one"')
            ui.tab("several", t("messages.several")).props('data-testid="several"')
        with ui.tab_panels(tabs, value="one").classes("w-full bg-transparent") as panels:
            with ui.tab_panel("one").classes("p-0 pt-2 gap-3"):
                self._one()
            with ui.tab_panel("several").classes("p-0 pt-2 gap-3"):
                self._several()
        self._panels = panels
        with ui.row().classes("w-full justify-end gap-2"):
            ui.button(t("common.cancel"), on_click=self._dialog.close).props("flat no-caps")
            self._button = ui.button(t("messages.write"), icon="send", on_click=self._write)
            self._button.props('unelevated no-caps data-testid="write"')

    def _one(self) -> None:
        t = self._context.t
        self._part("key", rows=1)
        self._part("value", rows=8)
        self._headers = ui.textarea(t("messages.headers"), placeholder=t("messages.headers_hint"))
        self._headers.props(
            f'{_FIELD} autogrow rows=1 input-class="console-mono" data-testid="headers"'
        ).classes("w-full")
        with ui.row().classes("w-full gap-3"):
            self._partition = ui.number(
                t("messages.partition"), min=0, precision=0, placeholder=t("messages.partition_hint")
            )
            self._timestamp = ui.input(t("messages.timestamp"), placeholder=t("messages.timestamp_hint"))
            for field, name in ((self._partition, "partition"), (self._timestamp, "timestamp")):
                field.props(f'{_FIELD} clearable data-testid="produce-{name}"').classes(
                    "grow w-full sm:w-auto"
                )

    def _part(self, part: str, *, rows: int) -> None:
        t, schema = self._context.t, self._schemas[part]
        names = {
            each: t(f"messages.format_{each}")
            for each in WRITE_FORMATS
            if each != SCHEMA or schema is not None
        }
        with ui.row().classes("w-full gap-3 items-start"):
            area = ui.textarea(
                t(f"messages.{part}"), value=schema.sample if schema is not None and part == "value" else ""
            )
            area.props(
                f'{_FIELD} autogrow rows={rows} input-style="max-height: 45vh" data-testid="produce-{part}"'
            )
            area.classes("grow w-full sm:w-auto").props('input-class="console-mono"')
            chosen = SCHEMA if schema is not None else ("text" if part == "key" else "json")
            form = ui.select(names, value=chosen, label=t("messages.format"))
            form.props(f'outlined dense options-dense data-testid="produce-{part}-format"').classes(
                "w-full sm:w-44"
            )
        if schema is not None:
            subject = f"{self._topic}-{part}"
            with ui.expansion(
                t("messages.schema_of", kind=schema.kind, id=schema.id, subject=subject)
            ).classes("w-full") as shown:
                shown.props("dense dense-toggle")
                ui.label(schema.text).classes("console-mono message-text w-full")
            shown.bind_visibility_from(form, "value", lambda value: value == SCHEMA)
        area.bind_enabled_from(form, "value", lambda value: value != "null")
        self._formats[part], self._texts[part] = form, area

    def _several(self) -> None:
        t = self._context.t
        self._lines = ui.textarea(t("messages.lines"), placeholder=_EXAMPLE)
        self._lines.props(f'{_FIELD} rows=10 input-class="console-mono" data-testid="lines"').classes(
            "w-full"
        )
        with ui.row().classes("w-full gap-4 items-center"):
            upload = ui.upload(
                label=t("messages.upload"),
                auto_upload=True,
                max_files=1,
                max_file_size=MAX_TEXT_BYTES,
                on_upload=self._uploaded,
            )
            upload.props('flat bordered accept=".jsonl,.ndjson,.json,.txt" data-testid="upload"').classes(
                "w-full sm:w-64 message-upload"
            )
            self._keeps_partitions = ui.switch(t("messages.keeps_partitions")).props(
                'dense data-testid="lines-partitions"'
            )
            self._keeps_timestamps = ui.switch(t("messages.keeps_timestamps")).props(
                'dense data-testid="lines-times"'
            )
        self._uploaded_text = ""

    async def _uploaded(self, event: events.UploadEventArguments) -> None:
        with layout.complaints(self._context):
            try:
                self._uploaded_text = (await event.file.read()).decode()
            except UnicodeDecodeError:
                raise UserError("the file is not UTF-8") from None
            ui.notify(f"{event.file.name}: {figures.size(len(self._uploaded_text))}")

    async def _write(self) -> None:
        context, t = self._context, self._context.t
        self._button.disable()
        try:
            with layout.complaints(context):
                make = self._record if self._panels.value == "one" else self._records
                written = await actions.produce(context, self._topic, make())
                if len(written) == 1:
                    layout.tell(
                        t(
                            "messages.written_one",
                            partition=written[0].partition,
                            offset=figures.count(written[0].offset),
                        )
                    )
                else:
                    layout.tell(t("messages.written", count=figures.count(len(written))))
                await self._done()
                if self._panels.value != "one":
                    self._dialog.close()
        finally:
            self._button.enable()

    def _record(self) -> Callable[[], Sequence[NewRecord]]:
        """The fields are read now, and encoded in a thread."""
        context, topic = self._context, self._topic
        texts = {part: str(area.value or "") for part, area in self._texts.items()}
        forms = {part: str(form.value) for part, form in self._formats.items()}
        if forms["key"] == "text" and not texts["key"]:
            forms["key"] = "null"
        headers = parse_headers(str(self._headers.value or ""))
        partition = None if self._partition.value is None else int(self._partition.value)
        timestamp_ms = _timestamp(str(self._timestamp.value or ""))

        def make() -> Sequence[NewRecord]:
            encoded = {
                part: actions.encoder(context, topic, forms[part], is_key=part == "key").text(texts[part])
                for part in texts
            }
            return [NewRecord(encoded["key"], encoded["value"], headers, partition, timestamp_ms)]

        return make

    def _records(self) -> Callable[[], Sequence[NewRecord]]:
        context, topic = self._context, self._topic
        text = str(self._lines.value or "") or self._uploaded_text
        value_form = SCHEMA if self._formats["value"].value == SCHEMA else "json"
        key_form = SCHEMA if self._formats["key"].value == SCHEMA else "text"
        partitions, timestamps = bool(self._keeps_partitions.value), bool(self._keeps_timestamps.value)

        def make() -> Sequence[NewRecord]:
            return parse_lines(
                text,
                actions.encoder(context, topic, key_form, is_key=True),
                actions.encoder(context, topic, value_form, is_key=False),
                keeps_partitions=partitions,
                keeps_timestamps=timestamps,
            )

        return make


def _timestamp(text: str) -> int | None:
    from penstock.console.messages.asked import parse_time

    return int(parse_time(text).timestamp() * 1000) if text.strip() else None
