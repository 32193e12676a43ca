"""The dialogs that take messages elsewhere: to another topic, or into a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nicegui import ui

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions import messages as actions
from penstock.console.context import PageContext
from penstock.console.messages.asked import Asked
from penstock.console.messages.jobs import Job
from penstock.console.messages.model import CSV, JSON_LINES, MAX_EXPORTED, Copy
from penstock.console.pages import layout
from penstock.console.pages.messages_table import Place
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.asking_first import asking

if TYPE_CHECKING:
    from penstock.console.messages.copying import Copying

DEFAULT_EXPORT: Final = 10_000
MAX_NAMES: Final = 500
"""Of topics that are offered while one types."""
EXPORT: Final = "/{cluster}/topics/{topic}/messages/export"


async def copy(
    context: PageContext, topic: str, asked: Asked, chosen: Sequence[Place], *, session: str
) -> None:
    """The range is that of the search, or `chosen`."""
    with asking("copy") as dialog:
        form = _Copy(context, topic, asked, tuple(chosen), dialog, session)
        form.draw()
    await dialog
    form.stop()
    if not dialog.is_deleted:
        dialog.delete()


class _Copy:
    def __init__(
        self,
        context: PageContext,
        topic: str,
        asked: Asked,
        chosen: tuple[Place, ...],
        dialog: ui.dialog,
        session: str,
    ) -> None:
        self._context, self._topic, self._asked = context, topic, asked
        self._chosen, self._dialog, self._session = chosen, dialog, session
        self._running: tuple[Copying, Job] | None = None

    def draw(self) -> None:
        t = self._context.t
        ui.label(t("messages.copy_title", topic=self._topic)).classes("console-title")
        options = {"all": t("messages.copy_what_all")}
        if self._chosen:
            options["chosen"] = t("messages.copy_what_chosen", count=len(self._chosen))
        self._what = ui.radio(options, value="chosen" if self._chosen else "all").props(
            'dense data-testid="copy-what"'
        )
        view = self._context.cluster.snapshot.latest
        names = (
            [] if view is None else [each for each in view.topics if self._context.may(Action.PRODUCE, each)]
        )
        self._target = ui.input(t("messages.copy_target"), autocomplete=names[:MAX_NAMES])
        self._target.props('outlined dense autofocus stack-label data-testid="copy-target"').classes("w-full")
        self._limit = ui.number(t("messages.copy_limit"), min=1, precision=0)
        self._limit.props('outlined dense clearable stack-label data-testid="copy-limit"').classes("w-full")
        self._limit.bind_visibility_from(self._what, "value", lambda value: value == "all")
        self._partitions = ui.switch(t("messages.keeps_partitions")).props(
            'dense data-testid="copy-partitions"'
        )
        self._times = ui.switch(t("messages.keeps_timestamps"), value=True).props(
            'dense data-testid="copy-times"'
        )
        self._bar = (
            ui.linear_progress(0, show_value=False).props("rounded instant-feedback").classes("w-full")
        )
        self._status = ui.label().classes("console-soft").props('role=status data-testid="copy-status"')
        self._bar.set_visibility(False)
        with ui.row().classes("w-full justify-end gap-2"):
            self._close = ui.button(t("common.close"), on_click=self._dialog.close).props("flat no-caps")
            self._stop = ui.button(t("messages.stop"), on_click=self.stop).props(
                'outline no-caps data-testid="copy-stop"'
            )
            self._stop.set_visibility(False)
            self._start = ui.button(t("messages.copy_start"), on_click=self._go)
            self._start.props('unelevated no-caps data-testid="copy-start"')
        self._timer = ui.timer(0.2, self._tick, active=False)

    def stop(self) -> None:
        if self._running is not None:
            self._running[1].cancel()

    async def _go(self) -> None:
        context, t = self._context, self._context.t
        with layout.complaints(context):
            asked = self._asked
            if asked.is_live:
                asked = Asked(**{**vars(asked), "mode": "oldest"})
            is_chosen = self._what.value == "chosen"
            wanted = Copy(
                search=asked.search(self._topic),
                target=str(self._target.value or "").strip(),
                keeps_partitions=bool(self._partitions.value),
                keeps_timestamps=bool(self._times.value),
                limit=None if self._limit.value is None or is_chosen else int(self._limit.value),
                chosen=self._chosen if is_chosen else None,
            )
            self._show(is_running=True)
            try:
                copying = await actions.copied(context, wanted, self._begun, session=self._session)
            finally:
                self._show(is_running=False)
            words = "messages.copy_stopped" if copying.progress.state == "stopped" else "messages.copy_done"
            said = t(words, count=figures.count(copying.written), target=wanted.target)
            self._status.set_text(said)
            layout.tell(said)

    def _begun(self, copying: Copying, job: Job) -> None:
        self._running = (copying, job)

    def _show(self, *, is_running: bool) -> None:
        self._bar.set_visibility(is_running)
        self._stop.set_visibility(is_running)
        self._start.set_visibility(not is_running)
        self._timer.active = is_running

    def _tick(self) -> None:
        if self._running is None:
            return
        copying, progress = self._running[0], self._running[0].progress
        self._bar.set_value(progress.fraction)
        self._status.set_text(
            self._context.t(
                "messages.copy_status", written=figures.count(copying.written),
                records=figures.count(progress.counts.offsets), total=figures.count(progress.total),
            )
        )  # fmt: skip


async def export(context: PageContext, topic: str, asked: Asked) -> None:
    t = context.t
    with asking("export") as dialog:
        ui.label(t("messages.export_title", topic=topic)).classes("console-title")
        ui.label(t("messages.export_hint")).classes("console-soft")
        form = ui.radio(
            {JSON_LINES: t("messages.export_jsonl"), CSV: t("messages.export_csv")}, value=JSON_LINES
        )
        form.props('dense inline data-testid="export-form"')
        documents = ui.switch(t("messages.export_documents")).props('dense data-testid="export-documents"')
        documents.bind_visibility_from(form, "value", lambda value: value == JSON_LINES)
        limit = ui.number(
            t("messages.export_limit"), value=DEFAULT_EXPORT, min=1, max=MAX_EXPORTED, precision=0
        )
        limit.props('outlined dense data-testid="export-limit"').classes("w-full")

        def take() -> None:
            with layout.complaints(context):
                given = Asked(**{**vars(asked), "mode": "oldest"}) if asked.is_live else asked
                given.search(topic)
                if limit.value is None:
                    raise UserError(f"{t('messages.export_limit')}: 1 … {MAX_EXPORTED:,}")
                more = {
                    "form": form.value,
                    "records": int(limit.value),
                    "documents": int(bool(documents.value)),
                }
                ui.navigate.to(layout.link(context, EXPORT, topic=topic, **given.query(), **more))
                dialog.close()

        with ui.row().classes("w-full justify-end gap-2"):
            ui.button(t("common.cancel"), on_click=dialog.close).props("flat no-caps")
            ui.button(t("common.download"), icon="download", on_click=take).props(
                'unelevated no-caps data-testid="export-take"'
            )
    await dialog
    if not dialog.is_deleted:
        dialog.delete()
