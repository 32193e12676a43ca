"""Live charts of series that the history keeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicegui import background_tasks, ui

from penstock.console.context import PageContext
from penstock.console.history.series import Point

PERIODS_S: Final[Mapping[str, int]] = {"15m": 900, "1h": 3600, "6h": 21_600, "24h": 86_400, "7d": 604_800}
COLORS: Final = ("#2a86a6", "#d98a2b", "#7a68c4", "#4d9a63", "#c0564f")
_SOFT: Final = "#8a94a3"
_LINES: Final = "rgba(138,148,163,0.22)"
_FORMATS: Final[Mapping[str, str]] = {
    "count": "v => v >= 1e9 ? +(v/1e9).toFixed(1)+'G' : v >= 1e6 ? +(v/1e6).toFixed(1)+'M' : v >= 1e3 ? "
    "+(v/1e3).toFixed(1)+'k' : +(+v).toFixed(2)",
    "bytes": "v => v >= 1073741824 ? (v/1073741824).toFixed(1)+' GiB' : v >= 1048576 ? (v/1048576).toFixed(1)+' MiB' : "
    "v >= 1024 ? (v/1024).toFixed(1)+' KiB' : (+v).toFixed(0)+' B'",
    "seconds": "v => v >= 86400 ? (v/86400).toFixed(1)+' d' : v >= 3600 ? (v/3600).toFixed(1)+' h' : v >= 60 ? "
    "(v/60).toFixed(1)+' min' : +(+v).toFixed(1)+' s'",
}


@dataclass(frozen=True)
class Line:
    series: str
    """In the history."""
    label: str


@dataclass(frozen=True)
class Chart:
    title: str
    lines: Sequence[Line]
    unit: str = "count"
    """count, bytes or seconds."""
    testid: str = ""


class Charts:
    """Some charts with one choice of the period above them. `refresh` fetches the series once for all."""

    def __init__(self, context: PageContext, charts: Sequence[Chart], *, period: str = "1h") -> None:
        self._context = context
        self._charts = charts
        self._period = period
        self._elements: list[ui.echart] = []
        self._is_fetching = False
        self._shown: Mapping[str, list[Point]] | None = None

    def draw(self) -> None:
        t = self._context.t
        with ui.row().classes("w-full items-center gap-2"):
            ui.label(t("chart.title")).classes("console-section-title")
            ui.space()
            ui.toggle(
                list(PERIODS_S), value=self._period, on_change=lambda event: self._chosen(event.value)
            ).props(f'dense unelevated no-caps size=sm aria-label="{t("chart.period")}" data-testid="period"')
        with ui.element("div").classes("w-full grid gap-4 grid-cols-1 lg:grid-cols-2"):
            for chart in self._charts:
                with ui.card().classes("console-card w-full p-3 gap-1 min-w-0"):
                    ui.label(chart.title).classes("console-soft text-sm")
                    element = ui.echart(_options(chart)).classes("w-full h-44")
                    element.props(f'data-testid="chart-{chart.testid}" role=img')
                    element.props["aria-label"] = chart.title
                    self._elements.append(element)
        ui.timer(0.05, self.refresh, once=True)

    def refresh_soon(self) -> None:
        background_tasks.create(self.refresh(), name="console charts")

    async def refresh(self) -> None:
        if self._is_fetching or not self._elements or self._elements[0].is_deleted:
            return
        self._is_fetching = True
        try:
            names = [line.series for chart in self._charts for line in chart.lines]
            until_s = time.time()
            since_s = until_s - PERIODS_S[self._period]
            history, cluster = self._context.console.history, self._context.cluster.name
            found = await asyncio.to_thread(history.read, cluster, names, since_s=since_s, until_s=until_s)
        finally:
            self._is_fetching = False
        if found == self._shown or self._elements[0].is_deleted:
            return
        self._shown = found
        for chart, element in zip(self._charts, self._elements, strict=True):
            for place, line in enumerate(chart.lines):
                points = [[round(at_s * 1000), round(value, 2)] for at_s, value in found[line.series]]
                if points:
                    points.append([round(until_s * 1000), points[-1][1]])
                element.options["series"][place]["data"] = points
            began_ms = min(
                (line["data"][0][0] for line in element.options["series"] if line["data"]), default=0
            )
            # A console that was started a minute ago has no hour to show.
            element.options["xAxis"]["min"] = max(round(since_s * 1000), began_ms)
            element.options["xAxis"]["max"] = round(until_s * 1000)
            element.update()

    def _chosen(self, period: object) -> None:
        if period in PERIODS_S:
            self._period = str(period)
            self._shown = None
            self.refresh_soon()


def _options(chart: Chart) -> dict[str, Any]:
    form = _FORMATS[chart.unit]
    return {
        "animation": False,
        "color": list(COLORS),
        "grid": {"left": 8, "right": 14, "top": 26 if len(chart.lines) > 1 else 10, "bottom": 4, "containLabel": True},
        "legend": {
            "show": len(chart.lines) > 1, "top": 0, "right": 0, "icon": "roundRect", "itemWidth": 10, "itemHeight": 4,
            "textStyle": {"color": _SOFT},
        },
        "tooltip": {"trigger": "axis", ":valueFormatter": f"(v) => v == null ? '–' : ({form})(v)"},
        "xAxis": {
            "type": "time", "axisLine": {"lineStyle": {"color": _LINES}}, "axisLabel": {"color": _SOFT, "hideOverlap": True},
            "splitLine": {"show": False}, "splitNumber": 4,
        },
        "yAxis": {
            "type": "value", "min": 0, "splitNumber": 3, "axisLabel": {"color": _SOFT, ":formatter": form},
            "splitLine": {"lineStyle": {"color": _LINES}}, "minInterval": 0,
        },
        "series": [
            {
                "name": line.label, "type": "line", "showSymbol": False, "step": False, "data": [],
                "lineStyle": {"width": 1.6}, "areaStyle": {"opacity": 0.08} if len(chart.lines) == 1 else None,
            }
            for line in chart.lines
        ],
    }  # fmt: skip
