"""What ties a page to the looks at its cluster: it is drawn with the last look, and again when there is a newer one.

A cluster that does not answer is said in a line at the top; the page keeps what was known, and works.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from nicegui import ui

from penstock.client.errors import one_line
from penstock.console.clusters.model import ClusterView
from penstock.console.context import PageContext
from penstock.console.pages.parts import figures

log = logging.getLogger("penstock.console")

EVERY_S: Final = 1.0


class Live:
    """Made where the line about trouble shall stand. `draw` is called with each new look, the first time at once if there
    is one."""

    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._draws: list[Callable[[ClusterView], None]] = []
        self._shown: ClusterView | None = None
        self._said = ""
        with ui.row().classes(
            "console-banner w-full items-center no-wrap gap-3 p-3 rounded border"
        ) as banner:
            banner.props('role=status aria-live=polite data-testid="stale"')
            ui.icon("sync_problem").classes("console-warn text-xl").props("aria-hidden=true")
            self._line = ui.label().classes("grow min-w-0 break-words")
        self._banner = banner
        self._trouble()
        ui.timer(EVERY_S, self._tick)

    @property
    def view(self) -> ClusterView | None:
        return self._context.cluster.snapshot.latest

    def on_look(self, draw: Callable[[ClusterView], None]) -> None:
        self._draws.append(draw)
        view = self.view
        if view is not None:
            draw(view)
            self._shown = view

    def again(self) -> None:
        """With what is known: after the person chose something."""
        view = self.view
        if view is not None:
            self._draw(view)

    def _tick(self) -> None:
        self._trouble()
        view = self.view
        if view is not None and view is not self._shown:
            self._draw(view)

    def _draw(self, view: ClusterView) -> None:
        self._shown = view
        for draw in self._draws:
            try:
                draw(view)
            except Exception:
                log.exception("A bug in a page of %s", self._context.cluster.name)

    def _trouble(self) -> None:
        said = self._what_is_wrong()
        if said != self._said:
            self._said = said
            self._line.set_text(said)
        self._banner.set_visibility(bool(said))

    def _what_is_wrong(self) -> str:
        snapshot, t = self._context.cluster.snapshot, self._context.t
        trouble, view = snapshot.trouble, snapshot.latest
        if trouble is None:
            return "" if view is not None else t("live.first_look")
        if view is None:
            return t("live.never_answered", error=one_line(trouble.said))
        return t("live.stale", at=figures.clock(view.at_s), error=one_line(trouble.said))
