"""One topic: its partitions, configs, who reads and who writes it, what is in it; and what may be done to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nicegui import ui

from penstock.admin import Cluster
from penstock.admin.configs import OF_TOPIC, TOPIC
from penstock.admin.transactions import Producer
from penstock.console.access.actions import Action
from penstock.console.actions import topics as actions
from penstock.console.clusters.model import ClusterView, GroupPartition, TopicRow
from penstock.console.context import PageContext
from penstock.console.pages import layout, topic_changes
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.charts import Chart, Charts, Line
from penstock.console.pages.parts.config_table import Config, ConfigTable, configs_of
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.parts.live import Live
from penstock.console.pages.parts.numeric import figure, sort_figures
from penstock.console.pages.parts.scan import ScanPanel
from penstock.console.pages.parts.section import Section
from penstock.console.pages.parts.tiles import Tile, Tiles
from penstock.console.pages.screens import Screen
from penstock.console.pages.topics import state_of
from penstock.model.ids import TopicPartition

GROUP: Final = "/{cluster}/groups/{group:path}"
MESSAGES: Final = "/{cluster}/topics/{topic}/messages"
MAX_PRODUCERS: Final = 1000
"""Rows of the table."""
MAX_READERS: Final = 500


class _Topic:
    def __init__(self, context: PageContext, name: str) -> None:
        self._context = context
        self._name = name
        self._live = Live(context)
        self._partition_rows: list[dict[str, Any]] = []
        self._reader_rows: list[dict[str, Any]] = []
        self._charts: Charts | None = None
        self._partitions: ui.table | None = None
        self._readers: ui.table | None = None

    def draw(self) -> None:
        t = self._context.t
        self._missing = (
            ui.label(t("topic.missing", topic=self._name))
            .classes("console-warn")
            .props('role=status data-testid="missing"')
        )
        self._missing.set_visibility(False)
        self._tiles = Tiles(
            [
                Tile("state", t("topics.state")),
                Tile("partitions", t("topics.partitions")),
                Tile("replication", t("topics.replication")),
                Tile("records", t("topics.records")),
                Tile("rate", t("topics.rate")),
                Tile("size", t("topics.size")),
            ]
        )
        panels: dict[str, Callable[[], None]] = {
            "partitions": self._draw_partitions,
            "configs": self._draw_configs,
            "readers": self._draw_readers,
            "producers": self._draw_producers,
            "statistics": self._draw_statistics,
        }
        chosen = self._context.query.get("tab", "partitions")
        chosen = chosen if chosen in panels else "partitions"
        with ui.tabs().classes("w-full") as tabs:
            tabs.props(
                'dense no-caps align=left inline-label outside-arrows mobile-arrows data-testid="tabs"'
            )
            for name in panels:
                ui.tab(name, t(f"topic.tab_{name}")).props(f'data-testid="tab-{name}"')
        drawn: set[str] = set()
        boxes = {}
        with ui.tab_panels(tabs, value=chosen, animated=False).classes("w-full console-panels") as shown:
            for name in panels:
                with ui.tab_panel(name).classes("p-0 gap-4"):
                    boxes[name] = ui.column().classes("w-full gap-4")

        def draw_chosen() -> None:
            name = str(shown.value)
            if name not in drawn:
                drawn.add(name)
                with boxes[name]:
                    panels[name]()

        shown.on_value_change(draw_chosen)
        draw_chosen()
        self._live.on_look(self._show)

    def _show(self, view: ClusterView) -> None:
        row = view.topics.get(self._name)
        self._missing.set_visibility(row is None)
        if row is None:
            return
        state, _ = state_of(self._context, row)
        self._tiles.set(
            {
                "state": state,
                "partitions": figures.count(len(row.partitions)),
                "replication": str(row.replication_factor),
                "records": figures.count(row.records),
                "rate": figures.rate(row.per_second),
                "size": figures.size(row.size_bytes),
            }
        )
        if self._charts is not None:
            self._charts.refresh_soon()
        if self._partitions is not None:
            partitions = [_partition(self._context, row, place) for place in range(len(row.partitions))]
            if partitions != self._partition_rows:
                self._partition_rows = partitions
                self._partitions.rows = partitions
        if self._readers is not None:
            readers = _readers(self._context, view, self._name)
            if readers != self._reader_rows:
                self._reader_rows = readers
                self._readers.rows = readers

    def _draw_partitions(self) -> None:
        t = self._context.t
        view = self._live.view
        row = None if view is None else view.topics.get(self._name)
        columns = [
            Col("partition", t("topic.partition")),
            Col("state", t("topics.state"), "chip"),
            Col("leader", t("topic.leader")),
            Col("replicas", t("topic.replicas")),
            Col("isr", t("topic.isr")),
            Col("start", t("topic.start"), "number"),
            Col("end", t("topic.end"), "number"),
            Col("records", t("topics.records"), "number"),
            Col("rate", t("topics.rate"), "number"),
            Col("size", t("topics.size"), "number"),
        ]
        rows = (
            []
            if row is None
            else [_partition(self._context, row, place) for place in range(len(row.partitions))]
        )
        self._partition_rows = rows
        self._partitions = grid(
            self._context, columns, rows, key="partition", testid="partitions", rows_per_page=50
        )
        sort_figures(self._partitions, "start", "end", "records", "rate", "size")
        self._charts = Charts(
            self._context,
            [
                Chart(
                    t("topic.chart_rate"), [Line(f"topic/{self._name}/rate", t("topics.rate"))], testid="rate"
                ),
                Chart(
                    t("topic.chart_size"),
                    [Line(f"topic/{self._name}/size", t("topics.size"))],
                    "bytes",
                    "size",
                ),
            ],
        )
        self._charts.draw()

    def _draw_configs(self) -> None:
        context, name = self._context, self._name
        may_edit = context.may(Action.EDIT_TOPICS, name)

        async def look() -> list[Config]:
            return await context.cluster.call(lambda admin: configs_of(admin, TOPIC, name, here=OF_TOPIC))

        async def change(key: str, value: str | None) -> None:
            await actions.set_config(context, name, key, value)
            table.update(await look())

        table: ConfigTable

        def draw(found: list[Config]) -> None:
            nonlocal table
            table = ConfigTable(context, found, here=OF_TOPIC, change=change if may_edit else None)
            table.draw()

        Section(context, look, draw)

    def _draw_readers(self) -> None:
        t, view = self._context.t, self._live.view
        columns = [
            Col("group", t("topic.group"), "link"),
            Col("kind", t("groups.kind")),
            Col("state", t("groups.state")),
            Col("members", t("groups.members"), "number"),
            Col("lag", t("groups.lag"), "number"),
            Col("lag_s", t("groups.lag_s"), "number"),
        ]
        self._reader_rows = [] if view is None else _readers(self._context, view, self._name)
        self._readers = grid(
            self._context, columns, self._reader_rows, key="group", testid="readers", empty=t("topic.no_readers"),
            rows_per_page=50,
        )  # fmt: skip
        sort_figures(self._readers, "members", "lag", "lag_s")

    def _draw_producers(self) -> None:
        context, name, t = self._context, self._name, self._context.t

        async def look() -> list[dict[str, Any]]:
            def ask(admin: Cluster) -> dict[TopicPartition, list[Producer]]:
                return admin.transactions.producers(admin.topics.partitions(name))

            found = await context.cluster.call(ask)
            return [
                {
                    "key": f"{partition.partition}/{one.producer_id}",
                    "partition": partition.partition,
                    "producer": str(one.producer_id),
                    "epoch": one.producer_epoch,
                    "sequence": one.last_sequence,
                    "last": figures.moment(one.last_timestamp_ms),
                    "open": ""
                    if one.start_offset is None
                    else t("topic.open_since", offset=one.start_offset),
                    "open_color": "warning",
                }
                for partition, producers in sorted(found.items())
                for one in producers
            ][:MAX_PRODUCERS]

        def draw(rows: list[dict[str, Any]]) -> None:
            ui.label(t("topic.producers_note")).classes("console-soft")
            columns = [
                Col("partition", t("topic.partition")),
                Col("producer", t("topic.producer_id"), "mono"),
                Col("epoch", t("topic.epoch"), "number"),
                Col("sequence", t("topic.sequence"), "number"),
                Col("last", t("topic.last_write")),
                Col("open", t("topic.transaction"), "chip"),
            ]
            grid(context, columns, rows, key="key", testid="producers", empty=t("topic.no_producers"))

        Section(context, look, draw, every_s=5.0)

    def _draw_statistics(self) -> None:
        ScanPanel(self._context, self._name).draw()


def _partition(context: PageContext, row: TopicRow, place: int) -> dict[str, Any]:
    one = row.partitions[place]
    if one.is_offline:
        state, color = context.t("topic.is_offline"), "negative"
    elif one.is_under_replicated:
        state, color = context.t("topic.is_behind"), "warning"
    else:
        state, color = context.t("topics.in_sync"), "positive"
    records = None
    if one.start_offset is not None and one.end_offset is not None:
        records = max(0, one.end_offset - one.start_offset)
    return {
        "partition": one.number,
        "state": state,
        "state_color": color,
        "leader": "–" if one.leader < 0 else one.leader,
        "replicas": ", ".join(map(str, one.replicas)),
        "isr": ", ".join(map(str, one.isr)),
        **figure("start", one.start_offset, figures.count(one.start_offset)),
        **figure("end", one.end_offset, figures.count(one.end_offset)),
        **figure("records", records, figures.count(records)),
        **figure("rate", one.per_second, figures.rate(one.per_second)),
        **figure("size", one.size_bytes, figures.size(one.size_bytes)),
    }


def _readers(context: PageContext, view: ClusterView, topic: str) -> list[dict[str, Any]]:
    rows = []
    for name in view.readers.get(topic, ())[:MAX_READERS]:
        if not context.may(Action.VIEW, name):
            continue
        group = view.groups[name]
        mine: list[GroupPartition] = [one for one in group.partitions if one.partition.topic == topic]
        lags = [one.lag for one in mine if one.lag is not None]
        ages = [one.lag_s for one in mine if one.lag_s is not None]
        lag, lag_s = sum(lags) if lags else None, max(ages) if ages else None
        rows.append(
            {
                "group": name,
                "group_href": layout.link(context, GROUP, group=name),
                "kind": context.t(f"groups.kind_{group.kind.value}"),
                "state": group.state,
                **figure("members", group.members, figures.count(group.members)),
                **figure("lag", lag, figures.count(lag)),
                **figure("lag_s", lag_s, figures.duration(lag_s)),
            }
        )
    return rows


async def build(context: PageContext) -> None:
    name, t = context.path["topic"], context.t
    view = context.cluster.snapshot.latest
    row = None if view is None else view.topics.get(name)
    with layout.heading(name, t("topics.internal") if row is not None and row.is_internal else ""):
        if context.may(Action.READ_MESSAGES, name):
            target = layout.link(context, MESSAGES, topic=name)
            ui.button(t("topic.messages"), icon="mail", on_click=lambda: ui.navigate.to(target)).props(
                'unelevated no-caps data-testid="messages"'
            )
        topic_changes.menu(context, name)
    _Topic(context, name).draw()


SCREENS = (Screen("topic", "/{cluster}/topics/{topic}", "topic.title", "topic", build, in_menu=False),)
