"""Plan: what a cluster should be for what is wanted of it, with the arithmetic, and what is beyond the usual in this one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from nicegui import ui

from penstock.advice.doctor.finding import Finding
from penstock.advice.plan import Advice, Wanted, plan, units
from penstock.advice.plan.measured import Measured, as_wanted
from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.parts.section import banner
from penstock.console.pages.parts.tiles import Tile, Tiles
from penstock.console.pages.screens import Screen
from penstock.console.upstream.asking import asked

LOOKS_S: Final = (5, 15, 60)
SOFT: Final = "#8a94a3"
LINES: Final = "rgba(138,148,163,0.22)"
COLOR: Final = "#2a86a6"
LIMITING: Final = "#d98a2b"
MAX_FIGURE_CHARS: Final = 40


class Input(NamedTuple):
    """A field of the form: how it is read, and how a measured figure is written into it."""

    name: str
    default: str
    read: Callable[[str], float]
    write: Callable[[float], str]


def _whole(text: str) -> float:
    try:
        found = int(text)
    except ValueError:
        raise UserError(f"'{text}' is not a whole number") from None
    return found


def _times(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"'{text}' is not a number") from None


def _share(value: float) -> str:
    return f"{value * 100:g}%"


def _span(seconds: float) -> str:
    return f"{seconds / 86_400:.4g} days" if seconds >= 86_400 else f"{seconds / 3600:.4g} h"


INPUTS: Final = (
    Input("bytes_per_s", "5 MB/s", lambda text: 0.0, units.rate),
    Input("record_bytes", "1 KB", units.parse_size, units.size),
    Input("retention_s", "7 days", units.parse_span, _span),
    Input("replication", "3", _whole, lambda value: f"{value:.0f}"),
    Input("consumers", "12", _whole, lambda value: f"{value:.0f}"),
    Input("groups", "1", _whole, lambda value: f"{value:.0f}"),
    Input("broker_disk_bytes", "2 TB", units.parse_size, units.size),
    Input("broker_cores", "8", _whole, lambda value: f"{value:.0f}"),
    Input("growth_per_year", "20%", units.parse_share, _share),
    Input("years", "2", _times, lambda value: f"{value:g}"),
    Input("headroom", "30%", units.parse_share, _share),
    Input("compression", "1", _times, lambda value: f"{value:g}"),
)
WHOLE: Final = ("replication", "consumers", "groups", "broker_cores")
OPTIONAL: Final = ("broker_disk_bytes", "broker_cores")


class _Plan:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._fields: dict[str, ui.input] = {}
        self._now = Wanted(0.0)
        """What there is already, where it was measured."""

    def draw(self) -> None:
        t = self._context.t
        with layout.heading(t("plan.title"), t("plan.subtitle")):
            pass
        with ui.grid().classes("w-full gap-5 grid-cols-1 lg:grid-cols-[22rem_minmax(0,1fr)] items-start"):
            with ui.column().classes("w-full min-w-0 gap-3 console-card p-4"):
                self._form()
            with ui.column().classes("w-full min-w-0 gap-4"):
                self._results()
        self._reckon()

    def _form(self) -> None:
        t = self._context.t
        ui.label(t("plan.wanted")).classes("text-base font-medium")
        with ui.grid().classes("w-full gap-3 grid-cols-2"):
            for each in INPUTS:
                field = ui.input(t(f"plan.{each.name}"), value=each.default, on_change=self._reckon)
                field.props(
                    f'outlined dense debounce=300 maxlength={MAX_FIGURE_CHARS} data-testid="plan-{each.name}"'
                )
                self._fields[each.name] = field.classes("w-full")
        ui.separator()
        ui.label(t("plan.measure_told")).classes("console-soft text-sm")
        with ui.row().classes("w-full items-center gap-2 no-wrap"):
            self._seconds = ui.select(
                {each: t("plan.seconds", count=each) for each in LOOKS_S}, value=LOOKS_S[0]
            )
            self._seconds.props('outlined dense options-dense data-testid="plan-seconds"').classes("w-24")
            self._measure = ui.button(t("plan.measure"), icon="speed", on_click=self._measured)
            self._measure.props('outline no-caps data-testid="plan-measure"').classes("grow")
        self._told = (
            ui.label().classes("console-soft text-sm").props('data-testid="plan-told" aria-live=polite')
        )

    def _results(self) -> None:
        t = self._context.t
        self._problem = (
            ui.label().classes("console-bad break-words").props('role=alert data-testid="plan-problem"')
        )
        names = ("partitions", "brokers", "replication", "min_isr", "disk", "disk_each", "net_in", "net_out")
        self._tiles = Tiles([Tile(name, t(f"plan.tile_{name}")) for name in names])
        self._findings = ui.column().classes("w-full gap-2").props('data-testid="plan-findings"')
        with ui.grid().classes("w-full gap-4 grid-cols-1 xl:grid-cols-2"):
            self._disk = _chart(t("plan.disk_by_year"), "plan-chart-disk")
            self._brokers = _chart(t("plan.brokers_by"), "plan-chart-brokers")
        self._warnings = ui.column().classes("w-full gap-2")
        ui.label(t("plan.arithmetic")).classes("text-base font-medium")
        columns = [
            Col("what", t("plan.what"), is_sortable=False, is_wide=True),
            Col("arithmetic", t("plan.reckoned"), "mono", is_sortable=False, is_wide=True),
            Col("result", t("plan.result"), is_sortable=False),
        ]
        self._lines = grid(self._context, columns, [], key="id", testid="plan-lines", rows_per_page=100)
        ui.label(t("plan.commands")).classes("text-base font-medium")
        self._commands = ui.label().classes(
            "font-mono text-xs whitespace-pre-wrap break-all console-card p-3 w-full"
        )
        self._commands.props('data-testid="plan-commands"')

    # ------------------------------------------------------------------ the arithmetic

    def _wanted(self) -> Wanted:
        values: dict[str, Any] = {}
        for each in INPUTS:
            text = str(self._fields[each.name].value or "").strip()
            if each.name == "bytes_per_s" or (not text and each.name in OPTIONAL):
                continue
            try:
                value = each.read(text)
            except UserError as error:
                raise UserError(f"{self._context.t(f'plan.{each.name}')}: {error}") from None
            values[each.name] = int(value) if each.name in WHOLE else value
        rate = units.parse_throughput(
            str(self._fields["bytes_per_s"].value or "").strip(), values["record_bytes"]
        )
        return self._now._replace(bytes_per_s=rate, **values)

    def _reckon(self) -> None:
        try:
            advice = plan(self._wanted())
        except UserError as error:
            self._problem.text = str(error)
            return
        self._problem.text = ""
        self._show(advice)

    def _show(self, advice: Advice) -> None:
        self._tiles.set(
            {
                "partitions": units.count(advice.partitions),
                "brokers": units.count(advice.brokers),
                "replication": str(advice.replication),
                "min_isr": str(advice.min_isr),
                "disk": units.size(advice.disk_bytes),
                "disk_each": units.size(advice.disk_bytes_per_broker),
                "net_in": units.rate(advice.network_in_bytes_per_s),
                "net_out": units.rate(advice.network_out_bytes_per_s),
            }
        )
        t = self._context.t
        unit, scale = _scale(max(advice.disk_by_year, default=0.0))
        names = [t("plan.year", year=year) for year in range(len(advice.disk_by_year))]
        _set(self._disk, _bars(names, [each / scale for each in advice.disk_by_year], unit))
        by = sorted(advice.brokers_by, key=lambda each: each[1])
        _set(self._brokers, _ranked([name for name, _ in by], [count for _, count in by]))
        self._warnings.clear()
        with self._warnings:
            for warning in advice.warnings:
                banner(self._context, warning, kind="warning")
        self._lines.rows = [{"id": number, **line._asdict()} for number, line in enumerate(advice.lines)]
        self._lines.update()
        self._commands.text = "\n".join(advice.commands)

    # ------------------------------------------------------------------ this cluster

    async def _measured(self) -> None:
        t, seconds = self._context.t, int(self._seconds.value or LOOKS_S[0])
        self._measure.set_enabled(False)
        self._told.text = t("plan.measuring", count=seconds)
        with layout.complaints(self._context):
            self._context.require(Action.VIEW)
            measured, findings = await asked(partial(_look, self._context, seconds))
            self._fill(measured)
            self._show_findings(findings)
            self._told.text = t(
                "plan.measured", topics=len(measured.topics), brokers=measured.brokers,
                rate=units.rate(measured.bytes_per_s), records=units.count(measured.records_per_s),
            )  # fmt: skip
        if not self._measure.is_deleted:
            self._measure.set_enabled(True)

    def _fill(self, measured: Measured) -> None:
        found = as_wanted(measured, self._wanted())
        self._now = found
        for each in INPUTS:
            value = getattr(found, each.name)
            self._fields[each.name].value = "" if value is None else each.write(value)
        self._reckon()

    def _show_findings(self, findings: list[Finding]) -> None:
        self._findings.clear()
        with self._findings:
            if not findings:
                banner(self._context, self._context.t("plan.nothing_unusual"), kind="positive")
            for each in findings:
                with ui.expansion(each.title, icon="warning_amber").classes("w-full console-card"):
                    for line in each.evidence:
                        ui.label(line).classes("text-sm break-words w-full")
                    ui.label(each.advice).classes("font-medium break-words w-full")
                    if each.command:
                        ui.label(each.command).classes(
                            "font-mono text-xs whitespace-pre-wrap break-all w-full"
                        )


def _look(context: PageContext, seconds: int) -> tuple[Measured, list[Finding]]:
    """Blocks for so long, and a little more."""
    from penstock.advice.doctor.gathering import Watch, gather
    from penstock.advice.plan.limits import check
    from penstock.advice.plan.measured import measure
    from penstock.client.clients import Connection
    from penstock.client.errors import Unreachable

    facts = gather(
        Connection(context.cluster.bootstrap, context.cluster.properties), watch=Watch(look_s=seconds)
    )
    if facts.unreachable is not None:
        raise Unreachable(facts.unreachable)
    found = measure(facts)
    return found, check(found)


def _chart(title: str, testid: str) -> ui.echart:
    with ui.card().classes("console-card w-full min-w-0 p-3 gap-1"):
        ui.label(title).classes("console-soft text-sm")
        chart = ui.echart({"series": []}).classes("w-full h-56")
        chart.props(f'role=img data-testid="{testid}"').props["aria-label"] = title
    return chart


def _set(chart: ui.echart, options: dict[str, Any]) -> None:
    chart.options.clear()
    chart.options.update(options)
    chart.update()


def _scale(most_bytes: float) -> tuple[str, float]:
    """The unit of a chart, and how many bytes it is."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9)):
        if most_bytes >= scale:
            return unit, scale
    return "MB", 1e6


def _frame(**more: Any) -> dict[str, Any]:
    return {
        "animation": False,
        "grid": {"left": 8, "right": 56, "top": 24, "bottom": 4, "containLabel": True},
        "tooltip": {"show": False},
        **more,
    }


def _bars(names: list[str], values: list[float], unit: str) -> dict[str, Any]:
    label = {
        "show": True,
        "position": "top",
        "color": SOFT,
        ":formatter": f"p => (+p.value.toPrecision(3)) + ' {unit}'",
    }
    return _frame(
        xAxis={
            "type": "category",
            "data": names,
            "axisLabel": {"color": SOFT},
            "axisLine": {"lineStyle": {"color": LINES}},
        },
        yAxis={"type": "value", "axisLabel": {"color": SOFT}, "splitLine": {"lineStyle": {"color": LINES}}},
        series=[
            {"type": "bar", "data": values, "itemStyle": {"color": COLOR}, "barMaxWidth": 44, "label": label}
        ],
    )


def _ranked(names: list[str], values: list[int]) -> dict[str, Any]:
    """The largest counts, so it is in another colour."""
    most = max(values, default=0)
    data = [{"value": each, "itemStyle": {"color": LIMITING if each == most else COLOR}} for each in values]
    return _frame(
        xAxis={
            "type": "value",
            "minInterval": 1,
            "axisLabel": {"color": SOFT},
            "splitLine": {"lineStyle": {"color": LINES}},
        },
        yAxis={
            "type": "category",
            "data": names,
            "axisLabel": {"color": SOFT},
            "axisLine": {"lineStyle": {"color": LINES}},
        },
        series=[
            {
                "type": "bar",
                "data": data,
                "barMaxWidth": 22,
                "label": {"show": True, "position": "right", "color": SOFT},
            }
        ],
    )


async def build(context: PageContext) -> None:
    context.require(Action.VIEW)
    _Plan(context).draw()


SCREENS: Final = (Screen("plan", "/{cluster}/plan", "plan.title", "calculate", build),)
