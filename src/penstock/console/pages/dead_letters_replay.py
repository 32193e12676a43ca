"""Replaying dead letters: which, where to, what it would do, and how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nicegui import ui

from penstock.client.errors import UserError
from penstock.console.actions import dead_letters as actions
from penstock.console.actions.dead_letters import Choice, Progress
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.asking_first import asking
from penstock.console.pages.parts.dialogs import answered

if TYPE_CHECKING:
    from penstock.admin.dead_letters.replaying import Summary

LOOK_S: Final = 0.2
ALL: Final = ""


class Replaying:
    """One dialog. Closing it ends what it began; a browser that goes away does not."""

    def __init__(self, context: PageContext, topic: str, causes: list[str]) -> None:
        self._context, self._topic, self._causes = context, topic, causes
        self._progress: Progress | None = None

    async def ask(self) -> None:
        t, client = self._context.t, ui.context.client
        with asking("replay-dialog") as dialog:
            ui.label(t("dead.replay")).classes("text-lg")
            ui.label(t("dead.replay_told")).classes("console-soft text-sm")
            causes = {ALL: t("dead.all_causes"), **{each: each for each in self._causes}}
            self._cause = ui.select(causes, value=ALL, label=t("dead.cause"))
            self._cause.props('outlined dense options-dense data-testid="replay-cause"').classes("w-full")
            self._to = ui.input(t("dead.to"), placeholder=t("dead.to_origin"))
            self._to.props('outlined dense autocomplete=off data-testid="replay-to"').classes("w-full")
            self._limit = ui.input(t("dead.limit")).props(
                'outlined dense inputmode=numeric data-testid="replay-limit"'
            )
            self._limit.classes("w-full")
            self._keeps = ui.checkbox(t("dead.keep_timestamps"))
            self._bar = ui.linear_progress(0, show_value=False).props(
                'instant-feedback data-testid="replay-progress"'
            )
            self._told = (
                ui.label().classes("w-full break-words").props('data-testid="replay-told" aria-live=polite')
            )
            with ui.row().classes("w-full justify-end gap-2"):
                self._stop = ui.button(t("common.stop"), icon="stop", on_click=self._stopped)
                self._stop.props('flat no-caps color=negative data-testid="replay-stop"')
                ui.button(t("common.close"), on_click=lambda: dialog.submit(None)).props(
                    'flat no-caps data-testid="replay-close"'
                )
                self._preview = ui.button(t("dead.preview"), on_click=self._previewed)
                self._preview.props('outline no-caps data-testid="replay-preview"')
                self._start = ui.button(t("dead.replay_now"), icon="replay", on_click=self._replayed)
                self._start.props('unelevated no-caps data-testid="replay-start"')
            ui.timer(LOOK_S, self._look)
        self._rest()
        await answered(dialog)
        if self._progress is not None and not client.is_deleted:
            self._progress.stop()

    def _choice(self) -> Choice:
        limit = str(self._limit.value or "").strip()
        if limit and not (limit.isascii() and limit.isdigit() and 0 < int(limit) < 2**31):
            raise UserError(self._context.t("dead.bad_limit"))
        return Choice(
            cause=str(self._cause.value) or None,
            to=str(self._to.value or "").strip() or None,
            limit=int(limit) if limit else None,
            keeps_timestamps=bool(self._keeps.value),
        )

    async def _previewed(self) -> None:
        await self._run(is_real=False)

    async def _replayed(self) -> None:
        await self._run(is_real=True)

    async def _run(self, *, is_real: bool) -> None:
        t = self._context.t
        with layout.complaints(self._context):
            choice = self._choice()
            self._progress = Progress()
            self._work()
            try:
                do = actions.replay if is_real else actions.preview
                summary = await do(self._context, self._topic, choice, self._progress)
            finally:
                self._progress = None
                self._rest()
            told = _told(self._context, summary)
            self._told.text = t("dead.did" if is_real else "dead.would", what=told)

    def _work(self) -> None:
        self._told.text = ""
        self._bar.set_visibility(True)
        self._stop.set_visibility(True)
        for each in (self._preview, self._start):
            each.set_enabled(False)

    def _rest(self) -> None:
        self._bar.set_visibility(False)
        self._stop.set_visibility(False)
        for each in (self._preview, self._start):
            each.set_enabled(True)

    def _stopped(self) -> None:
        if self._progress is not None:
            self._progress.stop()

    def _look(self) -> None:
        progress = self._progress
        if progress is not None:
            self._bar.value = progress.seen / progress.total if progress.total else 0
            self._told.text = self._context.t("dead.progress", seen=progress.seen, total=progress.total)


def _told(context: PageContext, summary: Summary) -> str:
    t = context.t
    targets = ", ".join(
        t("dead.to_topic", count=count, topic=topic) for topic, count in sorted(summary.replayed.items())
    )
    parts = [targets or t("dead.nothing")]
    parts.append(t("dead.limited") if summary.is_limited else t("dead.left", count=summary.left))
    if summary.foreign:
        parts.append(t("dead.foreign", count=summary.foreign))
    return "; ".join(parts)
