"""Queries, streams and tables of the SQL server, and a drawing of how they hang together."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final

from nicegui import ui

from penstock.console.access.actions import Action
from penstock.console.actions import sql as actions
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.asking_first import asking, confirmed
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.flow import placed
from penstock.console.pages.parts.grid import Col, button, grid
from penstock.console.pages.parts.section import Section
from penstock.console.upstream.asking import asked
from penstock.console.upstream.servers import servers
from penstock.console.upstream.sql import Catalog, Query

COLORS: Final = {"RUNNING": "positive", "ERROR": "negative", "FAILED": "negative", "PAUSED": "warning"}
STREAM, TABLE, QUERY = "#2a86a6", "#7a68c4", "#d98a2b"
MAX_DRAWN: Final = 300
ROW_PX: Final = 64
SOFT: Final = "#8a94a3"


def seen_by(context: PageContext, catalog: Catalog) -> Catalog:
    """Without the sources over topics that the visitor may not see, and the queries that read or write such a one: their
    statements tell of it."""
    if context.may(Action.VIEW):
        return catalog
    sources = tuple(each for each in catalog.sources if context.may(Action.VIEW, each.topic))
    names = {each.name for each in sources}
    queries = tuple(
        each
        for each in catalog.queries
        if (each.sources or each.sinks)
        and names.issuperset((*each.sources, *each.sinks))
        and all(context.may(Action.VIEW, topic) for topic in each.topics)
    )
    return Catalog(sources, queries)


class CatalogView:
    """Of one look; made again for the next."""

    def __init__(self, context: PageContext, catalog: Catalog, section: Section[Catalog]) -> None:
        self._context, self._catalog, self._section = context, catalog, section
        self._may_run = context.may_somewhere(Action.RUN_SQL)

    # ------------------------------------------------------------------ queries

    def queries(self) -> None:
        t = self._context.t
        rows = [self._query_row(each) for each in self._catalog.queries]
        columns = [
            Col("id", t("sql.query")),
            Col("state", t("sql.state"), "chip"),
            Col("kind", t("sql.kind")),
            Col("tier", t("sql.tier")),
            Col("sinks", t("sql.sinks")),
            Col("statement", t("sql.statement"), "mono", is_wide=True),
            Col("acts", "", "buttons"),
        ]
        grid(
            self._context,
            columns,
            rows,
            key="id",
            testid="queries",
            empty=t("sql.no_queries"),
            on_act=self._query_act,
        )

    def _query_row(self, query: Query) -> dict[str, Any]:
        t = self._context.t
        acts = [button("explain", "account_tree", t("sql.explain"))]
        if self._context.may(Action.RUN_SQL, query.id):
            acts.append(button("terminate", "stop", t("sql.terminate")))
        return {
            "id": query.id,
            "state": query.state,
            "state_color": COLORS.get(query.state, "grey"),
            "kind": query.kind.lower(),
            "tier": query.tier,
            "sinks": ", ".join(query.sinks),
            "statement": " ".join(query.statement.split())[:300],
            "acts": acts,
        }

    async def _query_act(self, name: str, query_id: str) -> None:
        query = next((each for each in self._catalog.queries if each.id == query_id), None)
        if query is None:
            return
        if name == "explain":
            await self._explain(query)
        else:
            await self._terminate(query)

    async def _explain(self, query: Query) -> None:
        t = self._context.t
        with layout.complaints(self._context):
            plan = await asked(partial(servers(self._context.cluster).sql.plan, query.id))
            with asking("explained", wide=True) as dialog:
                ui.label(query.id).classes("text-lg break-all")
                if query.tier:
                    ui.label(f"{query.tier}: {query.tier_reason}").classes("console-soft")
                for at_ms, message in query.errors[-5:]:
                    told = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))
                    ui.label(f"{told}  {message}").classes("console-bad break-words w-full")
                for text in (query.statement, plan):
                    ui.label(text).classes("font-mono text-xs whitespace-pre overflow-auto w-full max-h-72")
                ui.button(t("common.close"), on_click=dialog.close).props("flat no-caps").classes("self-end")
            dialog.on("hide", dialog.delete)
            dialog.open()

    async def _terminate(self, query: Query) -> None:
        t = self._context.t
        question = t("sql.ask_terminate", query=query.id)
        if not await confirmed(self._context, question, t("sql.terminate_means"), button=t("sql.terminate")):
            return
        with layout.complaints(self._context):
            layout.tell(
                await actions.terminate(self._context, query.id) or t("sql.terminated", query=query.id)
            )
        await self._section.refresh()

    # ------------------------------------------------------------------ streams and tables

    def sources(self) -> None:
        t = self._context.t
        acts = [button("drop", "delete", t("sql.drop"))]
        rows = [
            {
                "name": each.name,
                "kind": each.kind.lower() + (t("sql.windowed") if each.is_windowed else ""),
                "topic": each.topic,
                "topic_href": layout.link(self._context, "/{cluster}/topics/{topic}", topic=each.topic),
                "key": each.key_format,
                "value": each.value_format,
                "acts": acts if self._context.may(Action.RUN_SQL, each.name) else [],
            }
            for each in self._catalog.sources
        ]
        columns = [
            Col("name", t("common.name")),
            Col("kind", t("sql.kind")),
            Col("topic", t("sql.topic"), "link"),
            Col("key", t("sql.key_format")),
            Col("value", t("sql.value_format")),
            Col("acts", "", "buttons"),
        ]
        grid(
            self._context,
            columns,
            rows,
            key="name",
            testid="sources",
            empty=t("sql.no_sources"),
            on_act=self._drop,
        )

    async def _drop(self, _: str, name: str) -> None:
        t, source = self._context.t, self._catalog.source(name)
        if source is None:
            return
        with asking("drop-dialog") as dialog:
            ui.label(t("sql.ask_drop", name=name)).classes("text-lg break-words w-full")
            with_topic = ui.checkbox(t("sql.with_topic", topic=source.topic)).props(
                'data-testid="with-topic"'
            )
            with ui.row().classes("w-full justify-end gap-2"):
                ui.button(t("common.cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(t("sql.drop"), on_click=lambda: dialog.submit(True)).props(
                    'unelevated no-caps color=negative data-testid="confirm-yes"'
                )
        if not await answered(dialog):
            return
        with layout.complaints(self._context):
            said = await actions.drop(self._context, source, with_topic=bool(with_topic.value))
            layout.tell(said or t("sql.dropped", name=name))
        await self._section.refresh()

    # ------------------------------------------------------------------ the drawing

    def graph(self) -> None:
        t, options = self._context.t, drawing(self._catalog)
        if not self._catalog.sources:
            ui.label(t("sql.no_sources")).classes("console-soft")
            return
        with ui.row().classes("gap-4"):
            for color, words in ((STREAM, "sql.streams"), (TABLE, "sql.tables"), (QUERY, "sql.tab_queries")):
                with ui.row().classes("items-center gap-2"):
                    ui.icon("square").style(f"color: {color}").props("aria-hidden=true")
                    ui.label(t(words)).classes("console-soft")
        rows = 1 + max(node["y"] for node in options["series"][0]["data"]) / ROW_PX
        with ui.element("div").classes("w-full overflow-x-auto console-card"):
            chart = ui.echart(options).classes("w-full min-w-[40rem]")
            chart.style(f"height: {min(900, 80 + int(rows * ROW_PX))}px").props(
                'data-testid="graph" role=img'
            )
            chart.props["aria-label"] = t("sql.graph_told", count=len(self._catalog.sources))


def drawing(catalog: Catalog) -> dict[str, Any]:
    """For ECharts. Names are drawn on a canvas, never as HTML."""
    sources = catalog.sources[:MAX_DRAWN]
    queries = [each for each in catalog.queries if each.sinks][:MAX_DRAWN]
    labels = {f"s:{each.name}": each.name for each in sources} | {f"q:{each.id}": each.id for each in queries}
    colors = {f"s:{each.name}": STREAM if each.kind == "STREAM" else TABLE for each in sources}
    edges = [(f"s:{source}", f"q:{each.id}") for each in queries for source in each.sources]
    edges += [(f"q:{each.id}", f"s:{sink}") for each in queries for sink in each.sinks]
    edges = [(one, other) for one, other in edges if one in labels and other in labels]
    places = placed(list(labels), edges)
    nodes = [
        {
            "id": node,
            "name": labels[node],
            "x": places[node][0] * 220,
            "y": places[node][1] * ROW_PX,
            "symbol": "roundRect" if node.startswith("s:") else "circle",
            "symbolSize": [26, 18] if node.startswith("s:") else 12,
            "itemStyle": {"color": colors.get(node, QUERY)},
            "label": {"position": "bottom" if node.startswith("s:") else "top"},
        }
        for node in labels
    ]
    return {
        "animation": False,
        "tooltip": {"show": True, "renderMode": "richText", "confine": True},
        "series": [
            {
                "type": "graph", "layout": "none", "data": nodes, "roam": False, "top": 40, "bottom": 40, "left": 90,
                "right": 90, "edgeSymbol": ["none", "arrow"], "edgeSymbolSize": 7,
                "links": [{"source": one, "target": other} for one, other in edges],
                "lineStyle": {"color": SOFT, "width": 1.4},
                "label": {"show": True, "color": SOFT, "fontSize": 11, "width": 170, "overflow": "truncate"},
            }
        ],
    }  # fmt: skip
