"""The statistics of a topic: a scan with progress, that can be stopped, and what it has found so far."""

from __future__ import annotations

import asyncio
import threading
from typing import Final

from nicegui import background_tasks, ui

from penstock.client.errors import UserError, one_line
from penstock.console.access.actions import Action
from penstock.console.clusters.statistics import Sizes, Statistics, scan
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.grid import Col, grid

MAX_SCANS: Final = 2
"""At a time, in this process: each takes a core."""
EVERY_S: Final = 0.3
_running: Final[set[threading.Event]] = set()


class ScanPanel:
    def __init__(self, context: PageContext, topic: str) -> None:
        self._context = context
        self._topic = topic
        self._stop = threading.Event()
        self._found: Statistics | None = None
        self._shown: tuple[int, bool] | None = None

    def draw(self) -> None:
        t = self._context.t
        if not self._context.may(Action.READ_MESSAGES, self._topic):
            ui.label(t("scan.not_allowed")).classes("console-soft")
            return
        ui.label(t("scan.note")).classes("console-soft")
        with ui.row().classes("w-full items-center gap-3 no-wrap"):
            self._begin = ui.button(t("scan.start"), icon="query_stats", on_click=self._start).props(
                'unelevated no-caps data-testid="scan-start"'
            )
            self._end = ui.button(t("common.stop"), icon="stop", on_click=self._stop_it).props(
                'outline no-caps data-testid="scan-halt"'
            )
            self._bar = (
                ui.linear_progress(value=0, show_value=False)
                .classes("grow")
                .props('data-testid="scan-progress"')
            )
        self._said = ui.label().classes("console-soft").props('role=status data-testid="scan-state"')
        self._box = ui.column().classes("w-full gap-4")
        self._timer = ui.timer(EVERY_S, self._tick, active=False)
        ui.context.client.on_disconnect(self._stop.set)
        self._look()

    async def _start(self) -> None:
        with layout.complaints(self._context):
            self._context.require(Action.READ_MESSAGES, self._topic)
            if len(_running) >= MAX_SCANS:
                raise UserError(self._context.t("scan.too_many", most=MAX_SCANS))
            self._stop = stop = threading.Event()
            _running.add(stop)
            ui.context.client.on_disconnect(stop.set)
            self._found = found = Statistics(self._topic)
            self._timer.activate()
            background_tasks.create(self._run(found, stop), name=f"scan of {self._topic}")
            self._look()

    async def _run(self, found: Statistics, stop: threading.Event) -> None:
        cluster = self._context.cluster
        try:
            await asyncio.to_thread(
                scan,
                self._topic,
                bootstrap=cluster.bootstrap,
                properties=cluster.properties,
                statistics=found,
                stop=stop,
            )
        except Exception as error:
            found.error = one_line(error)
        finally:
            _running.discard(stop)

    def _stop_it(self) -> None:
        self._stop.set()

    def _tick(self) -> None:
        self._look()
        if self._found is None or self._found.is_over:
            self._timer.deactivate()

    def _look(self) -> None:
        found, t = self._found, self._context.t
        is_running = found is not None and not found.is_over
        self._begin.set_visibility(not is_running)
        self._end.set_visibility(is_running)
        self._bar.set_visibility(found is not None)
        if found is None:
            return
        self._bar.set_value(round(found.share, 3))
        word = "scan.running"
        if found.error:
            word = "scan.failed"
        elif found.is_cancelled:
            word = "scan.stopped"
        elif found.is_over:
            word = "scan.done"
        self._said.set_text(t(word, records=figures.count(found.records), error=found.error))
        if (found.records, found.is_over) != self._shown:
            self._shown = found.records, found.is_over
            self._box.clear()
            with self._box:
                _show(self._context, found)


def _show(context: PageContext, found: Statistics) -> None:
    t = context.t
    if not found.records:
        return
    approximately = "" if found.distinct.is_exact else "≈ "
    pairs = [
        (t("scan.records"), figures.count(found.records)),
        (t("scan.distinct"), approximately + figures.count(found.distinct.count)),
        (
            t("scan.null_keys"),
            f"{figures.count(found.null_keys)} ({figures.share(found.null_keys, found.records)})",
        ),
        (
            t("scan.null_values"),
            f"{figures.count(found.null_values)} ({figures.share(found.null_values, found.records)})",
        ),
        (t("scan.first"), figures.moment(found.first_ms)),
        (t("scan.last"), figures.moment(found.last_ms)),
    ]
    with ui.element("div").classes("console-pairs w-full").props('data-testid="scan-figures"'):
        for label, value in pairs:
            ui.label(label).classes("console-soft")
            ui.label(value).classes("console-figures")
    columns = [
        Col("what", "", is_sortable=False),
        *(
            Col(name, t(f"scan.{name}"), "number", is_sortable=False)
            for name in ("total", "least", "mean", "median", "p99", "most")
        ),
    ]  # fmt: skip
    rows = [_sizes(t("scan.key_sizes"), found.keys), _sizes(t("scan.value_sizes"), found.values)]
    grid(context, columns, rows, key="what", testid="scan-sizes")
    by_partition = [
        {
            "partition": number,
            "records": figures.count(count),
            "share": figures.share(count, found.records),
        }
        for number, count in sorted(found.by_partition.items())
    ]
    columns = [
        Col("partition", t("topic.partition")),
        Col("records", t("scan.records"), "number", is_sortable=False),
        Col("share", t("scan.share"), "number", is_sortable=False),
    ]
    grid(context, columns, by_partition, key="partition", testid="scan-partitions")


def _sizes(what: str, sizes: Sizes) -> dict[str, str]:
    return {
        "what": what,
        "total": figures.size(sizes.total),
        "least": figures.size(sizes.smallest),
        "mean": figures.size(sizes.mean),
        "median": figures.size(sizes.quantile(0.5)),
        "p99": figures.size(sizes.quantile(0.99)),
        "most": figures.size(sizes.largest),
    }
