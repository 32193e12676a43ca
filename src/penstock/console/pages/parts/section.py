"""A part of a page that is looked up after the page is there, and again when it is asked to.

What was there stays while the new is on its way. What goes wrong is told in the part itself, with a way to try again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from nicegui import ui
from nicegui.element import Element

from penstock.client.errors import Refused, Unreachable, UserError, one_line
from penstock.console.context import PageContext

log = logging.getLogger("penstock.console")
T = TypeVar("T")

KEPT_DRAWINGS: Final = 4
"""A handler of a button that is drawn anew meanwhile must find its place on the page for as long as it runs."""


class Section(Generic[T]):
    """`look` fetches, `draw` shows it; with `every_s` it is looked up again and again, and drawn where something has changed."""

    def __init__(
        self,
        context: PageContext,
        look: Callable[[], Awaitable[T]],
        draw: Callable[[T], None],
        *,
        every_s: float | None = None,
    ) -> None:
        self._context, self._look, self._draw = context, look, draw
        self._shown: T | None = None
        self._problem = ""
        self._is_looking = False
        self._kept: deque[list[Element]] = deque(maxlen=KEPT_DRAWINGS)
        self._box = ui.column().classes("w-full gap-4")
        with self._box:
            ui.skeleton().classes("w-full h-24").props(f'aria-label="{context.t("common.loading")}"')
        ui.timer(0.01, self.refresh, once=True)
        if every_s is not None:
            ui.timer(every_s, self.refresh, immediate=False)

    async def refresh(self) -> None:
        """Looks once more, unless it does so already."""
        if self._is_looking or self._box.is_deleted:
            return
        self._is_looking = True
        try:
            found = await self._look()
        except (UserError, Refused, Unreachable) as error:
            self._show_problem(one_line(error))
        except Exception:
            log.exception("A bug in a page of %s", self._context.cluster.name)
            self._show_problem(self._context.t("common.bug"))
        else:
            if not self._box.is_deleted and (found != self._shown or self._problem):
                self._problem, self._shown = "", found
                self._clear()
                with self._box:
                    self._draw(found)
        finally:
            self._is_looking = False

    def draw_again(self) -> None:
        """What is known already, for another choice of it."""
        if self._shown is not None and not self._box.is_deleted:
            self._clear()
            with self._box:
                self._draw(self._shown)

    def _clear(self) -> None:
        self._kept.append(list(self._box.descendants()))
        self._box.clear()

    def _show_problem(self, problem: str) -> None:
        if self._box.is_deleted or problem == self._problem:
            return
        self._problem, self._shown = problem, None
        self._clear()
        with self._box:
            banner(self._context, problem, retry=self.refresh)


def banner(
    context: PageContext,
    text: str,
    *,
    kind: str = "negative",
    retry: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """A line across the page: `negative`, `warning`, `info` or `positive`."""
    icon = {"negative": "error_outline", "warning": "warning_amber", "positive": "check_circle"}.get(
        kind, "info"
    )
    with ui.row().classes("console-banner w-full items-center no-wrap gap-3 p-3 console-card") as row:
        row.props(f'role=alert data-testid="banner-{kind}"')
        ui.icon(icon).classes(f"text-{kind} text-xl").props("aria-hidden=true")
        ui.label(text).classes("grow min-w-0 break-words")
        if retry is not None:
            ui.button(context.t("section.retry"), on_click=retry).props('flat no-caps data-testid="retry"')
