"""The cluster itself: brokers and their configs, leaders, and replicas that move."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from nicegui import ui

from penstock.admin import ConfigResource
from penstock.admin.configs import BROKER, OF_BROKER
from penstock.admin.moves.model import Reassignment
from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions import cluster as actions
from penstock.console.actions.cluster import MOVES, Run
from penstock.console.clusters.model import ClusterView
from penstock.console.context import PageContext
from penstock.console.pages import layout
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.asking_first import confirmed
from penstock.console.pages.parts.config_table import Config, ConfigTable, configs_of
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.parts.live import Live
from penstock.console.pages.parts.numeric import figure, sort_figures
from penstock.console.pages.parts.section import Section
from penstock.console.pages.screens import Screen
from penstock.console.pages.topic_changes import throttle_of, whole
from penstock.model.ids import TopicPartition

OF_ALL_BROKERS: Final = 3
MOVES_EVERY_S: Final = 2.0
MAX_MOVES_SHOWN: Final = 500
LOOKS_FOR_CHANGE: Final = 20
LOOK_AGAIN_S: Final = 0.25


class _Cluster:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._live = Live(context)
        self._broker_rows: list[dict[str, Any]] = []
        self._balance_said = ""

    def draw(self) -> None:
        t = self._context.t
        panels: dict[str, Callable[[], None]] = {
            "brokers": self._draw_brokers,
            "moves": self._draw_moves,
            "configs": self._draw_configs,
        }
        with ui.tabs().classes("w-full") as tabs:
            tabs.props('dense no-caps align=left inline-label data-testid="tabs"')
            for name in panels:
                ui.tab(name, t(f"cluster.tab_{name}")).props(f'data-testid="tab-{name}"')
        with ui.tab_panels(tabs, value="brokers", animated=False, keep_alive=True).classes(
            "w-full console-panels"
        ):
            for name, draw in panels.items():
                with ui.tab_panel(name).classes("p-0 gap-4"):
                    draw()
        self._live.on_look(self._show)

    def _draw_brokers(self) -> None:
        t = self._context.t
        columns = [
            Col("id", t("overview.id")),
            Col("address", t("overview.address")),
            Col("rack", t("overview.rack")),
            Col("state", t("overview.state"), "chip"),
            Col("partitions", t("overview.partitions"), "number"),
            Col("leaders", t("overview.leaders"), "number"),
            Col("size", t("overview.size"), "number"),
            Col("free", t("cluster.free"), "number"),
            Col("disk", t("overview.disk"), "number"),
        ]
        self._brokers = grid(self._context, columns, [], key="id", testid="brokers")
        sort_figures(self._brokers, "partitions", "leaders", "size")
        ui.label(t("cluster.leaders")).classes("console-section-title")
        with ui.row().classes("w-full items-center gap-3"):
            self._balance = ui.label().classes("grow min-w-0").props('data-testid="balance"')
            if self._context.may(Action.EDIT_CLUSTER, "cluster"):
                ui.button(t("cluster.elect"), icon="how_to_vote", on_click=self._elect).props(
                    'outline no-caps data-testid="elect"'
                )

    def _show(self, view: ClusterView) -> None:
        rows = [_broker(self._context, view, place) for place in range(len(view.brokers))]
        if rows != self._broker_rows:
            self._broker_rows = rows
            self._brokers.rows = rows
        t, health = self._context.t, view.health
        said = (
            t("cluster.not_preferred", count=len(health.not_preferred), skew=f"{health.leader_skew:.2f}")
            if health.not_preferred
            else t("cluster.all_preferred")
        )
        if said != self._balance_said:
            self._balance_said = said
            self._balance.set_text(said)

    async def _elect(self) -> None:
        t = self._context.t
        if await confirmed(
            self._context,
            t("cluster.elect_question"),
            t("cluster.elect_note"),
            button=t("cluster.elect"),
            is_harmful=False,
        ):
            with layout.complaints(self._context):
                count = await actions.elect_preferred_leaders(self._context)
                layout.tell(t("cluster.elected", count=count))

    def _draw_moves(self) -> None:
        context, t = self._context, self._context.t
        ui.label(t("cluster.moves_note")).classes("console-soft")
        if context.may(Action.EDIT_CLUSTER, "cluster"):
            with ui.row().classes("w-full items-center gap-2"):
                for name, icon in (
                    ("drain", "logout"),
                    ("replace", "swap_horiz"),
                    ("move", "drive_file_move"),
                ):
                    ui.button(
                        t(f"cluster.{name}"), icon=icon, on_click=lambda name=name: _move(context, name)
                    ).props(f'outline no-caps data-testid="{name}"')
                ui.button(t("cluster.cancel_moves"), icon="cancel", on_click=self._cancel).props(
                    'flat no-caps color=negative data-testid="cancel-moves"'
                )
        _RunLine(context)

        async def look() -> dict[TopicPartition, Reassignment]:
            found = await context.cluster.call(lambda admin: admin.moves.ongoing())
            return {one: move for one, move in found.items() if context.may(Action.VIEW, one.topic)}

        def draw(found: dict[TopicPartition, Reassignment]) -> None:
            columns = [
                Col("partition", t("topic.partition")),
                Col("from", t("cluster.from")),
                Col("to", t("cluster.to")),
                Col("adding", t("cluster.adding")),
                Col("removing", t("cluster.removing")),
            ]
            rows = [
                {
                    "partition": str(partition),
                    "from": _listed(one.origin),
                    "to": _listed(one.target),
                    "adding": _listed(one.adding),
                    "removing": _listed(one.removing),
                }
                for partition, one in list(found.items())[:MAX_MOVES_SHOWN]
            ]
            ui.label(t("cluster.ongoing", count=len(found))).props('data-testid="ongoing" role=status')
            grid(
                context,
                columns,
                rows,
                key="partition",
                testid="reassignments",
                empty=t("cluster.nothing_moves"),
            )

        Section(context, look, draw, every_s=MOVES_EVERY_S)

    async def _cancel(self) -> None:
        t = self._context.t
        if await confirmed(
            self._context,
            t("cluster.cancel_question"),
            t("cluster.cancel_note"),
            button=t("cluster.cancel_moves"),
        ):
            with layout.complaints(self._context):
                count = await actions.cancel_moves(self._context)
                layout.tell(t("cluster.cancelled", count=count))

    def _draw_configs(self) -> None:
        context, t = self._context, self._context.t
        view = self._live.view
        choices = {-1: t("cluster.all_brokers")}
        choices |= {
            one.id: t("cluster.broker", id=one.id) for one in (view.brokers if view is not None else ())
        }
        chosen = view.brokers[0].id if view is not None and view.brokers else -1
        ui.label(t("cluster.configs_note")).classes("console-soft")
        select = ui.select(choices, value=chosen, label=t("cluster.configs_of")).props(
            'outlined dense data-testid="config-broker"'
        )
        select.classes("min-w-52")
        box = ui.column().classes("w-full gap-3")
        may_edit = context.may(Action.EDIT_CLUSTER, "cluster")

        def draw_for() -> None:
            box.clear()
            broker = None if select.value is None or select.value < 0 else int(select.value)
            with box:
                _broker_configs(context, broker, may_edit=may_edit)

        select.on_value_change(draw_for)
        draw_for()


def _is_changed(one: Config, value: str | None, here: int) -> bool:
    if value is None:
        return not one.is_set_here(here)
    return one.is_set_here(here) and (one.is_sensitive or one.value == value)


def _broker_configs(context: PageContext, broker: int | None, *, may_edit: bool) -> None:
    here = OF_ALL_BROKERS if broker is None else OF_BROKER
    resource = ConfigResource.all_brokers() if broker is None else ConfigResource.broker(broker)

    async def look() -> list[Config]:
        return await context.cluster.call(
            lambda admin: configs_of(admin, BROKER, resource.name, here=here, broker=broker)
        )

    async def change(key: str, value: str | None) -> None:
        await actions.set_broker_config(context, broker, key, value)
        # A broker hears of its configs a moment after they are stored.
        for _ in range(LOOKS_FOR_CHANGE):
            found = await look()
            if any(one.name == key and _is_changed(one, value, here) for one in found):
                break
            await asyncio.sleep(LOOK_AGAIN_S)
        table.update(found)

    table: ConfigTable

    def draw(found: list[Config]) -> None:
        nonlocal table
        table = ConfigTable(context, found, here=here, change=change if may_edit else None)
        table.draw()

    Section(context, look, draw)


class _RunLine:
    """How far the move is that this console carries out."""

    def __init__(self, context: PageContext) -> None:
        self._context = context
        with ui.card().classes("console-card w-full p-3 gap-2").props('data-testid="run"') as card:
            self._card = card
            self._what = ui.label().classes("font-medium break-words")
            self._bar = ui.linear_progress(value=0, show_value=False)
            self._said = (
                ui.label().classes("console-soft break-words").props('role=status data-testid="run-state"')
            )
        self._tick()
        ui.timer(1.0, self._tick)

    def _tick(self) -> None:
        run = MOVES.of(self._context.cluster.name) if self._context.may(Action.VIEW) else None
        self._card.set_visibility(run is not None)
        if run is not None:
            self._what.set_text(run.what)
            self._bar.set_value(round(run.share, 3))
            self._said.set_text(_progress(self._context, run))


def _progress(context: PageContext, run: Run) -> str:
    t = context.t
    if run.error:
        return t("cluster.run_failed", error=run.error)
    if run.is_over:
        return t("cluster.run_done", count=run.moved)
    if run.progress is None:
        return t("cluster.run_began")
    one = run.progress
    return t("cluster.run_progress", done=one.done, total=one.total, size=figures.size(one.moved_bytes))


async def _move(context: PageContext, name: str) -> None:
    """`name`: drain, replace or move."""
    t, view = context.t, context.cluster.snapshot.latest
    ids = [] if view is None else sorted({one.id for one in view.brokers} | set(view.health.missing_brokers))
    with ui.dialog().props('data-testid="move-dialog"') as dialog, ui.card().classes("w-full max-w-md gap-3"):
        ui.label(t(f"cluster.{name}")).classes("console-title")
        ui.label(t(f"cluster.{name}_note")).classes("console-soft")
        broker = substitute = place = replicas = None
        if name == "move":
            place = ui.input(t("cluster.partition"), placeholder="orders-0")
            place.props('outlined dense autofocus data-testid="move-partition"').classes("w-full")
            replicas = ui.input(t("cluster.replicas"), placeholder="1, 2, 3")
            replicas.props('outlined dense data-testid="move-replicas"').classes("w-full")
        else:
            broker = (
                ui.select(ids, label=t("cluster.away_from"))
                .props('outlined dense data-testid="move-broker"')
                .classes("w-full")
            )
        if name == "replace":
            substitute = ui.select(ids, label=t("cluster.substitute"))
            substitute.props('outlined dense data-testid="move-substitute"').classes("w-full")
        throttle = ui.input(t("cluster.throttle")).props(
            'outlined dense inputmode=numeric data-testid="move-throttle"'
        )
        throttle.classes("w-full")

        async def go() -> None:
            with layout.complaints(context):
                limit = throttle_of(context, str(throttle.value or "").strip())
                if place is not None and replicas is not None:
                    partition = _partition_named(context, str(place.value or ""))
                    brokers = [
                        whole(context, one.strip())
                        for one in str(replicas.value or "").split(",")
                        if one.strip()
                    ]
                    await MOVES.move(context, partition, brokers, throttle=limit)
                elif broker is not None:
                    if broker.value is None or (substitute is not None and substitute.value is None):
                        raise UserError(t("cluster.needs_broker"))
                    if substitute is None:
                        await MOVES.drain(context, int(broker.value), throttle=limit)
                    else:
                        await MOVES.replace(
                            context, int(broker.value), substitute=int(substitute.value), throttle=limit
                        )
                dialog.close()

        with ui.row().classes("w-full justify-end gap-2"):
            ui.button(t("common.cancel"), on_click=dialog.close).props("flat no-caps")
            ui.button(t("cluster.begin"), on_click=go).props('unelevated no-caps data-testid="move-begin"')
    await answered(dialog)


def _partition_named(context: PageContext, text: str) -> TopicPartition:
    topic, dash, number = text.strip().rpartition("-")
    view = context.cluster.snapshot.latest
    row = None if view is None else view.topics.get(topic)
    if not dash or row is None or not number.isdecimal() or int(number) >= len(row.partitions):
        raise UserError(context.t("group.no_partition", partition=text.strip()))
    return TopicPartition(topic, int(number))


def _listed(brokers: list[int]) -> str:
    return ", ".join(map(str, brokers)) or "–"


def _broker(context: PageContext, view: ClusterView, place: int) -> dict[str, Any]:
    one = view.brokers[place]
    used = None
    if one.disk_total_bytes is not None and one.disk_usable_bytes is not None:
        used = one.disk_total_bytes - one.disk_usable_bytes
    word = (
        "overview.silent"
        if not one.answers
        else "overview.controls"
        if one.is_controller
        else "overview.serves"
    )
    return {
        "id": one.id,
        "address": f"{one.host}:{one.port}",
        "rack": one.rack or "",
        "state": context.t(word),
        "state_color": "positive" if one.answers else "negative",
        **figure("partitions", one.partitions, figures.count(one.partitions)),
        **figure("leaders", one.leaders, figures.count(one.leaders)),
        **figure("size", one.size_bytes, figures.size(one.size_bytes)),
        "free": figures.size(one.disk_usable_bytes),
        "disk": figures.share(used, one.disk_total_bytes),
    }


async def build(context: PageContext) -> None:
    view = context.cluster.snapshot.latest
    with layout.heading(
        context.t("cluster.title"),
        "" if view is None else context.t("overview.cluster_id", id=view.cluster_id),
    ):
        pass
    _Cluster(context).draw()


SCREENS = (Screen("cluster", "/{cluster}/cluster", "cluster.title", "dns", build),)
