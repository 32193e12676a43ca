"""All groups: who is behind, in records and in seconds; searched, sorted and paged on the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nicegui import ui

from penstock.console.access.actions import Action
from penstock.console.actions import groups as actions
from penstock.console.clusters import lists
from penstock.console.clusters.lists import Wanted
from penstock.console.clusters.model import GroupKind, GroupRow
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.grid import Col
from penstock.console.pages.parts.live import Live
from penstock.console.pages.parts.paged import PagedList, visible
from penstock.console.pages.screens import Screen

GROUP: Final = "/{cluster}/groups/{group:path}"
STATE_COLORS: Final[Mapping[str, str]] = {
    "Stable": "positive", "Empty": "grey", "Dead": "grey", "PreparingRebalance": "warning",
    "CompletingRebalance": "warning", "Assigning": "warning", "Reconciling": "warning", "NotReady": "warning",
}  # fmt: skip
MAX_TOPICS_NAMED: Final = 2


def topics_text(row: GroupRow) -> str:
    """The first few, and how many more."""
    named = ", ".join(row.topics[:MAX_TOPICS_NAMED])
    more = len(row.topics) - MAX_TOPICS_NAMED
    return f"{named} +{more}" if more > 0 else named


def _row(context: PageContext, row: GroupRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "href": layout.link(context, GROUP, group=row.name),
        "kind": context.t(f"groups.kind_{row.kind.value}"),
        "state": row.state,
        "state_color": STATE_COLORS.get(row.state, "grey"),
        "members": figures.count(row.members),
        "topics": topics_text(row),
        "lag": figures.count(row.lag),
        "lag_s": figures.duration(row.lag_s),
        "rate": figures.rate(row.per_second),
    }


class _Groups:
    def __init__(self, context: PageContext) -> None:
        t = context.t
        self._context = context
        self._live = Live(context)
        columns = [
            Col("name", t("common.name"), "link"),
            Col("kind", t("groups.kind")),
            Col("state", t("groups.state"), "chip"),
            Col("members", t("groups.members"), "number"),
            Col("topics", t("groups.topics")),
            Col("lag", t("groups.lag"), "number"),
            Col("lag_s", t("groups.lag_s"), "number"),
            Col("rate", t("groups.rate"), "number"),
        ]
        self._list = PagedList(
            context,
            self._look,
            columns,
            wanted=Wanted(search=context.query.get("search", ""), sort="lag", descending=True),
            testid="groups",
            placeholder=t("groups.search"),
            can_select=context.may_somewhere(Action.EDIT_GROUPS),
        )

    def draw(self) -> None:
        t = self._context.t
        with ui.row().classes("w-full items-center gap-3"):
            self._list.draw_search()
            kinds = {"": t("groups.all_kinds")} | {
                one.value: t(f"groups.kind_{one.value}") for one in GroupKind
            }
            ui.select(
                kinds, value="", on_change=lambda event: self._list.change(kind=str(event.value or ""))
            ).props(
                f'dense outlined options-dense aria-label="{t("groups.kind")}" data-testid="kind"'
            ).classes("min-w-40")
            ui.space()
            self._count = ui.label().classes("console-soft").props('data-testid="count" role=status')
        self._list.draw_table()
        if self._context.may_somewhere(Action.EDIT_GROUPS):
            self._list.draw_delete(actions.delete)
        self._live.on_look(lambda view: self._list.refresh())

    def _look(self, wanted: Wanted) -> tuple[Sequence[Mapping[str, Any]], int]:
        view, context = self._live.view, self._context
        if view is None:
            return [], 0
        page = lists.groups(view.groups.values(), wanted, may_see=visible(context))
        self._count.set_text(context.t("groups.count", count=figures.count(page.total)))
        return [_row(context, row) for row in page.rows], page.total


async def build(context: PageContext) -> None:
    with layout.heading(context.t("groups.title")):
        pass
    _Groups(context).draw()


SCREENS = (Screen("groups", "/{cluster}/groups", "groups.title", "groups", build),)
