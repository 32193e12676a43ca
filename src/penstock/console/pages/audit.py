"""Who changed what: the newest entries of the audit log's topic, for those who may give rights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nicegui import ui

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.access.audit_reading import newest
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.figures import moment
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.parts.section import Section
from penstock.console.pages.screens import Screen

SHOWN: Final = 500
LOOK_S: Final = 10.0
_COLORS: Final = {"done": "positive", "refused": "negative", "failed": "negative", "cancelled": "warning"}


async def build(context: PageContext) -> None:
    context.require(Action.EDIT_SECURITY)
    audit = context.console.audit
    if audit.connection is None:
        raise UserError(context.t("audit.none"))
    log = _Log(context)
    with layout.heading(context.t("audit.title"), context.t("audit.subtitle", topic=audit.topic)):
        pass
    log.draw()


class _Log:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._entries: Sequence[dict[str, Any]] = ()
        self._wanted = ""

    def draw(self) -> None:
        t = self._context.t
        field = ui.input(placeholder=t("audit.search")).classes("w-full max-w-md")
        field.props(f'outlined dense clearable data-testid="search" {layout.SEARCH}')
        field.on_value_change(lambda event: self._search(str(event.value or "")))
        self._section = Section(self._context, self._look, self._show, every_s=LOOK_S)

    async def _look(self) -> Sequence[dict[str, Any]]:
        audit = self._context.console.audit
        home = next(
            each
            for each in self._context.console.clusters.values()
            if each.name == self._context.console.settings.audit.cluster
        )
        connection = audit.connection
        assert connection is not None
        found = await home.call(lambda admin: newest(admin, connection, audit.topic, SHOWN))
        return [each for each in found if self._may_see(each)]

    def _may_see(self, entry: dict[str, Any]) -> bool:
        """Those of other clusters are for who may give rights there; logins are of no cluster."""
        cluster = entry.get("cluster") or self._context.cluster.name
        return self._context.visitor.may(Action.EDIT_SECURITY, cluster=str(cluster))

    def _search(self, wanted: str) -> None:
        self._wanted = wanted.lower()
        self._section.draw_again()

    def _show(self, entries: Sequence[dict[str, Any]]) -> None:
        t = self._context.t
        columns = [
            Col("time", t("audit.time")), Col("visitor", t("audit.visitor")), Col("cluster", t("audit.cluster")),
            Col("what", t("audit.what"), is_wide=True), Col("resource", t("audit.resource")),
            Col("outcome", t("audit.outcome"), kind="chip"), Col("error", t("audit.error"), is_wide=True),
        ]  # fmt: skip
        rows = [_row(number, entry) for number, entry in enumerate(entries) if self._is_wanted(entry)]
        grid(self._context, columns, rows, key="number", testid="audit", rows_per_page=50)

    def _is_wanted(self, entry: dict[str, Any]) -> bool:
        return not self._wanted or any(self._wanted in str(value).lower() for value in entry.values())


def _row(number: int, entry: dict[str, Any]) -> dict[str, Any]:
    texts = {
        name: str(entry.get(name, ""))
        for name in ("visitor", "cluster", "what", "resource", "outcome", "error")
    }
    return {
        **texts, "number": number, "time": moment(int(entry["time_ms"])),
        "outcome_color": _COLORS.get(texts["outcome"], "grey"),
    }  # fmt: skip


SCREENS: Final = (Screen(layout.AUDIT, "/{cluster}/audit", "audit.title", "history", build),)
