"""Pipelines: queries of SQL and of Spark and programs of streams, with how they are."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

from nicegui import ui

from penstock.client.errors import Refused, Unreachable, UserError, one_line
from penstock.console.access.actions import Action
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.asking_first import asking
from penstock.console.pages.parts.grid import Col, button, fill, grid
from penstock.console.pages.parts.numeric import figure, sort_figures
from penstock.console.pages.parts.section import Section, banner
from penstock.console.pages.screens import Screen
from penstock.console.pages.sql_catalog import seen_by
from penstock.console.pipelines import FAILED, SPARK, Pipeline, pipelines
from penstock.console.upstream.asking import asked
from penstock.console.upstream.servers import servers
from penstock.console.upstream.spark import SparkQuery, spark_queries
from penstock.console.upstream.sql import Query

REFRESH_S: Final = 3.0
COLORS: Final = {"RUNNING": "positive", "ERROR": "negative", "FAILED": "negative", "PAUSED": "warning"}


class Seen(NamedTuple):
    rows: tuple[Pipeline, ...]
    problems: tuple[str, ...]
    """Servers that could not be asked, and why."""


class _Pipelines:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._by_key: dict[str, Pipeline] = {}

    def draw(self) -> None:
        t = self._context.t
        with layout.heading(t("pipelines.title"), t("pipelines.subtitle")):
            pass
        Section(self._context, self._look, self._show, every_s=REFRESH_S)
        columns = [
            Col("name", t("common.name"), is_wide=True),
            Col("kind", t("pipelines.kind")),
            Col("state", t("pipelines.state"), "chip"),
            Col("tier", t("pipelines.tier")),
            Col("rate", t("pipelines.rate"), "number"),
            Col("latency", t("pipelines.latency"), "number"),
            Col("lag", t("pipelines.lag"), "number"),
            Col("size", t("pipelines.state_size"), "number"),
            Col("watermark", t("pipelines.watermark")),
            Col("error", t("pipelines.error"), is_wide=True),
            Col("acts", "", "buttons"),
        ]
        self._table = grid(self._context, columns, [], key="id", testid="pipelines", on_act=self._open)
        sort_figures(self._table, "rate", "latency", "lag", "size")

    async def _look(self) -> Seen:
        return await asked(partial(_ask, self._context))

    def _show(self, seen: Seen) -> None:
        context, t = self._context, self._context.t
        for problem in seen.problems:
            banner(context, problem, kind="warning")
        self._by_key = {f"{each.kind}/{each.name}/{number}": each for number, each in enumerate(seen.rows)}
        failed = sum(each.state in (FAILED, "FAILED") for each in seen.rows)
        with ui.row().classes("w-full items-center gap-4"):
            ui.label(t("pipelines.count", count=len(seen.rows))).classes("console-soft")
            if failed:
                ui.badge(t("pipelines.failed", count=failed), color="negative").props('data-testid="failed"')
        fill(
            self._table,
            [self._row(key, each) for key, each in self._by_key.items()],
            empty=t("pipelines.none"),
        )

    def _row(self, key: str, one: Pipeline) -> dict[str, Any]:
        t = self._context.t
        size = figures.size(one.state_bytes)
        if one.state_rows:
            size += " · " + t("pipelines.rows", count=figures.count(one.state_rows))
        return {
            "id": key,
            "name": one.name,
            "kind": t(f"pipelines.kind_{one.kind}"),
            "state": one.state,
            "state_color": COLORS.get(one.state, "grey"),
            "tier": one.tier,
            **figure("rate", one.rows_per_s, figures.rate(one.rows_per_s)),
            **figure("latency", one.latency_s, figures.duration(one.latency_s)),
            **figure("lag", one.lag, figures.count(one.lag)),
            **figure("size", one.state_bytes, size),
            "watermark": "" if one.watermark_s is None else figures.moment(round(one.watermark_s * 1000)),
            "error": one.error[:200],
            "acts": [button("open", "open_in_full", t("pipelines.details"))],
        }

    def _open(self, _: str, key: str) -> None:
        context, t, one = self._context, self._context.t, self._by_key[key]
        with asking("pipeline", wide=True) as dialog:
            ui.label(one.name).classes("text-lg break-all")
            if one.tier:
                ui.label(f"{one.tier}: {one.tier_reason}" if one.tier_reason else one.tier).classes(
                    "console-soft"
                )
            if one.error:
                ui.label(one.error).classes("console-bad break-words w-full whitespace-pre-wrap")
            for label, names in (("pipelines.reads", one.reads), ("pipelines.writes", one.writes)):
                if names:
                    ui.label(f"{t(label)}: {', '.join(names)}").classes("break-all")
            if one.statement:
                ui.label(one.statement).classes("font-mono text-xs whitespace-pre-wrap break-words w-full")
            if one.kind == SPARK and one.latency_s is not None:
                ui.label(t("pipelines.latency_spark")).classes("console-soft text-sm")
            with ui.row().classes("w-full justify-end gap-2"):
                if one.group and context.may(Action.VIEW, one.group):
                    target = layout.link(context, "/{cluster}/groups/{group:path}", group=one.group)
                    ui.button(t("pipelines.to_group"), on_click=lambda: ui.navigate.to(target)).props(
                        'flat no-caps data-testid="to-group"'
                    )
                ui.button(t("common.close"), on_click=dialog.close).props("flat no-caps")
        dialog.on("hide", dialog.delete)
        dialog.open()


def _ask(context: PageContext) -> Seen:
    """Of each server what it says; one that is away is told and no reason to show less of the others."""
    cluster, problems = context.cluster, []
    queries: tuple[Query, ...] = ()
    spark: list[SparkQuery] = []
    if cluster.sql_url:
        try:
            queries = seen_by(context, servers(cluster).sql.catalog()).queries
        except (UserError, Refused, Unreachable) as error:
            problems.append(one_line(error))
    for url in cluster.spark_urls:
        try:
            spark += spark_queries(url, authority=cluster.ca_file)
        except Unreachable as error:
            problems.append(one_line(error))
    found = pipelines(cluster.snapshot.latest, queries, spark)
    allowed = [each for each in found if context.may(Action.VIEW, each.name)]
    return Seen(tuple(allowed), tuple(problems))


async def build(context: PageContext) -> None:
    _Pipelines(context).draw()


SCREENS: Final = (Screen("pipelines", "/{cluster}/pipelines", "pipelines.title", "route", build),)
