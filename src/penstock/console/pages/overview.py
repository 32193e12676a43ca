"""The first screen: is the cluster healthy, what is wrong and what to do, how much flows, how far readers are behind."""

from __future__ import annotations

from typing import Final

from nicegui import ui

from penstock.advice.doctor import with_connection
from penstock.console.access.actions import Action
from penstock.console.clusters.checkups import CHECKUPS, Checkup
from penstock.console.clusters.findings import ERROR, Finding, findings
from penstock.console.clusters.model import ClusterView
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.charts import Chart, Charts, Line
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.parts.live import Live
from penstock.console.pages.parts.numeric import figure, sort_figures
from penstock.console.pages.parts.tiles import Tile, Tiles
from penstock.console.pages.screens import Screen

ICONS: Final = {"error": "error", "warning": "warning_amber", "note": "info"}
CLASSES: Final = {"error": "console-bad", "warning": "console-warn", "note": "console-soft"}


class _Overview:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._live = Live(context)
        self._found: tuple[Finding, ...] | None = None
        self._broker_rows: list[dict[str, object]] = []
        self._charts: Charts | None = None

    def draw(self) -> None:
        t = self._context.t
        self._health = ui.card().classes("console-card w-full p-4 gap-3").props('data-testid="health"')
        self._tiles = Tiles(self._described_tiles())
        self._chart_box = ui.column().classes("w-full gap-3")
        ui.label(t("overview.brokers")).classes("console-section-title")
        self._brokers = grid(self._context, self._columns(), [], key="id", testid="brokers")
        sort_figures(self._brokers, "partitions", "leaders", "size")
        self._advice()
        self._live.on_look(self._show)

    def _described_tiles(self) -> list[Tile]:
        t, context = self._context.t, self._context
        topics = layout.link(context, "/{cluster}/topics")
        groups = layout.link(context, "/{cluster}/groups")
        return [
            Tile("brokers", t("overview.brokers"), layout.link(context, "/{cluster}/cluster")),
            Tile("topics", t("overview.topics"), topics),
            Tile("partitions", t("overview.partitions"), topics),
            Tile("groups", t("overview.groups"), groups),
            Tile("size", t("overview.size")),
            Tile("records_in", t("overview.records_in")),
            Tile("records_out", t("overview.records_out")),
            Tile("bytes_in", t("overview.bytes_in")),
            Tile("bytes_out", t("overview.bytes_out")),
            Tile("requests", t("overview.requests")),
            Tile("lag", t("overview.lag"), groups),
            Tile("lag_s", t("overview.lag_s"), groups),
        ]

    def _show(self, view: ClusterView) -> None:
        found = tuple(findings(view))
        if not self._context.may(Action.VIEW):  # names of topics and groups
            found = tuple(one._replace(named="…", command="") for one in found)
        if found != self._found:
            self._found = found
            self._show_health(view, found)
        self._tiles.set(_figures(view))
        rows = [_broker(self._context, view, place) for place in range(len(view.brokers))]
        if rows != self._broker_rows:
            self._broker_rows = rows
            self._brokers.rows = rows
        if self._charts is None:
            self._charts = Charts(self._context, _charts(self._context, view))
            with self._chart_box:
                self._charts.draw()
        else:
            self._charts.refresh_soon()

    def _show_health(self, view: ClusterView, found: tuple[Finding, ...]) -> None:
        t = self._context.t
        self._health.clear()
        with self._health:
            is_bad = any(one.severity == ERROR for one in found)
            icon, kind = ("error", "console-bad") if is_bad else ("check_circle", "console-good")
            if found and not is_bad:
                icon, kind = "warning_amber", "console-warn"
            with ui.row().classes("items-center gap-3 no-wrap w-full"):
                ui.icon(icon).classes(f"{kind} text-2xl").props("aria-hidden=true")
                said = (
                    t("overview.problems", count=len(found))
                    if found
                    else t(
                        "overview.healthy", brokers=len(view.brokers), partitions=view.health.num_partitions
                    )
                )
                ui.label(said).classes("text-base font-medium").props('data-testid="health-line"')
            for one in found:
                self._finding(one)

    def _finding(self, one: Finding) -> None:
        t = self._context.t
        with ui.row().classes("items-start gap-3 no-wrap w-full").props('data-testid="finding"'):
            ui.icon(ICONS[one.severity]).classes(f"{CLASSES[one.severity]} text-lg").props("aria-hidden=true")
            with ui.column().classes("gap-1 min-w-0"):
                ui.label(t(f"overview.{one.key}", count=one.amount, named=one.named)).classes("break-words")
                ui.label(t(f"overview.{one.key}_todo")).classes("console-soft break-words")
                if one.command:
                    _command(with_connection(one.command, self._context.cluster.bootstrap))

    def _advice(self) -> None:
        t = self._context.t
        if not self._context.may(Action.VIEW):
            return  # it is about all topics and groups, by their names
        with ui.row().classes("w-full items-center gap-2"):
            ui.label(t("overview.advice")).classes("console-section-title")
            ui.space()
            self._advised = ui.label().classes("console-soft text-sm")
            self._examine = ui.button(
                t("overview.examine"), icon="troubleshoot", on_click=lambda: self._examined(again=True)
            ).props('outline no-caps dense padding="4px 10px" data-testid="examine"')
        self._advice_box = ui.column().classes("w-full gap-2").props('data-testid="advice"')
        kept = CHECKUPS.kept(self._context.cluster.name)
        if kept is not None:
            self._show_advice(kept)
        else:
            with self._advice_box:
                ui.label(t("overview.no_advice")).classes("console-soft")

    async def _examined(self, *, again: bool) -> None:
        cluster = self._context.cluster
        self._examine.props("loading")
        try:
            with layout.complaints(self._context):
                self._context.require(Action.VIEW)
                self._show_advice(
                    await CHECKUPS.now(cluster.name, cluster.bootstrap, cluster.properties, again=again)
                )
        finally:
            self._examine.props(remove="loading")

    def _show_advice(self, checkup: Checkup) -> None:
        t = self._context.t
        self._advised.set_text(t("overview.advised", at=figures.clock(checkup.at_s)))
        self._advice_box.clear()
        with self._advice_box:
            if not checkup.findings:
                ui.label(t("overview.nothing_found")).classes("console-soft")
            for one in checkup.findings:
                kind = one.severity.value
                with (
                    ui.expansion().classes("console-card w-full").props('data-testid="advice-finding"') as box
                ):
                    with box.add_slot("header"), ui.row().classes("items-center gap-3 no-wrap grow min-w-0"):
                        ui.icon(ICONS[kind]).classes(f"{CLASSES[kind]} text-lg").props("aria-hidden=true")
                        ui.label(one.title).classes("break-words min-w-0")
                    with ui.column().classes("gap-2 w-full"):
                        for line in one.evidence:
                            ui.label(line).classes("console-mono break-words")
                        ui.label(one.advice).classes("break-words")
                        if one.command:
                            _command(with_connection(one.command, self._context.cluster.bootstrap))

    def _columns(self) -> list[Col]:
        t, view = self._context.t, self._live.view
        columns = [
            Col("id", t("overview.id")),
            Col("address", t("overview.address")),
            Col("rack", t("overview.rack")),
            Col("state", t("overview.state"), "chip"),
            Col("partitions", t("overview.partitions"), "number"),
            Col("leaders", t("overview.leaders"), "number"),
            Col("size", t("overview.size"), "number"),
            Col("disk", t("overview.disk"), "number"),
        ]
        if view is None or not view.by_broker:
            return columns
        return [
            *columns,
            Col("bytes_in", t("overview.bytes_in"), "number"),
            Col("bytes_out", t("overview.bytes_out"), "number"),
            Col("requests", t("overview.requests"), "number"),
        ]


def _command(text: str) -> None:
    ui.label(text).classes("console-mono console-command whitespace-pre-wrap break-all").props(
        'data-testid="command"'
    )


def _figures(view: ClusterView) -> dict[str, str | None]:
    totals = view.totals
    sizes = [one.size_bytes for one in view.brokers if one.size_bytes is not None]
    return {
        "brokers": figures.count(len(view.brokers)),
        "topics": figures.count(len(view.topics)),
        "partitions": figures.count(view.health.num_partitions),
        "groups": figures.count(len(view.groups)),
        "size": figures.size(sum(sizes)) if sizes else None,
        "records_in": figures.rate(totals.records_in),
        "records_out": figures.rate(totals.records_out),
        "bytes_in": None if totals.bytes_in is None else figures.size(totals.bytes_in),
        "bytes_out": None if totals.bytes_out is None else figures.size(totals.bytes_out),
        "requests": None if totals.requests is None else figures.rate(totals.requests),
        "lag": figures.count(totals.lag),
        "lag_s": figures.duration(totals.lag_s),
    }


def _broker(context: PageContext, view: ClusterView, place: int) -> dict[str, object]:
    one = view.brokers[place]
    totals = view.by_broker.get(one.id)
    used = None
    if one.disk_total_bytes is not None and one.disk_usable_bytes is not None:
        used = one.disk_total_bytes - one.disk_usable_bytes
    word, color = ("overview.serves", "positive") if one.answers else ("overview.silent", "negative")
    if one.answers and one.is_controller:
        word = "overview.controls"
    known = totals is not None
    return {
        "id": one.id,
        "address": f"{one.host}:{one.port}",
        "rack": one.rack or "",
        "state": context.t(word),
        "state_color": color,
        **figure("partitions", one.partitions, figures.count(one.partitions)),
        **figure("leaders", one.leaders, figures.count(one.leaders)),
        **figure("size", one.size_bytes, figures.size(one.size_bytes)),
        "disk": figures.share(used, one.disk_total_bytes),
        "bytes_in": figures.size(totals.bytes_in) if known and totals is not None else figures.UNKNOWN,
        "bytes_out": figures.size(totals.bytes_out) if known and totals is not None else figures.UNKNOWN,
        "requests": figures.rate(totals.requests) if known and totals is not None else figures.UNKNOWN,
    }


def _charts(context: PageContext, view: ClusterView) -> list[Chart]:
    t = context.t
    found = [
        Chart(
            t("overview.chart_records"),
            [Line("cluster/records_in", t("overview.in")), Line("cluster/records_out", t("overview.out"))],
            testid="records",
        )
    ]
    if view.totals.bytes_in is not None or view.by_broker:
        lines = [Line("cluster/bytes_in", t("overview.in")), Line("cluster/bytes_out", t("overview.out"))]
        found.append(Chart(t("overview.chart_bytes"), lines, "bytes", "bytes"))
        found.append(
            Chart(
                t("overview.chart_requests"),
                [Line("cluster/requests", t("overview.requests"))],
                testid="requests",
            )
        )
    found.append(Chart(t("overview.chart_lag"), [Line("cluster/lag", t("overview.lag"))], testid="lag"))
    found.append(
        Chart(t("overview.chart_lag_s"), [Line("cluster/lag_s", t("overview.lag_s"))], "seconds", "lag-s")
    )
    found.append(Chart(t("overview.size"), [Line("cluster/size", t("overview.size"))], "bytes", "size"))
    return found


async def build(context: PageContext) -> None:
    view = context.cluster.snapshot.latest
    with layout.heading(
        context.cluster.name,
        context.t("overview.cluster_id", id=view.cluster_id or figures.UNKNOWN) if view is not None else "",
    ):
        pass
    _Overview(context).draw()


SCREENS = (Screen("overview", "/{cluster}", "overview.title", "monitor_heart", build),)
