"""One group: who is in it, how far it is in each partition, its lag over time; and where it may be sent next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from nicegui import ui

from penstock.admin import Cluster
from penstock.admin.groups.model import assignment_text
from penstock.client.errors import Refused
from penstock.console.access.actions import Action
from penstock.console.actions import groups as actions
from penstock.console.clusters.model import SPARK_MARKERS, ClusterView, GroupKind, GroupPartition, GroupRow
from penstock.console.context import PageContext
from penstock.console.pages import group_reset, layout
from penstock.console.pages.groups import GROUP
from penstock.console.pages.parts import figures
from penstock.console.pages.parts.asking_first import confirmed
from penstock.console.pages.parts.charts import Chart, Charts, Line
from penstock.console.pages.parts.dialogs import answered
from penstock.console.pages.parts.grid import Col, grid
from penstock.console.pages.parts.live import Live
from penstock.console.pages.parts.numeric import figure, sort_figures
from penstock.console.pages.parts.section import Section, banner
from penstock.console.pages.parts.tiles import Tile, Tiles
from penstock.console.pages.screens import Screen
from penstock.model.ids import TopicPartition

TOPIC: Final = "/{cluster}/topics/{topic}"
MAX_ASSIGNMENT: Final = 300
"""Characters of what one member reads."""
MEMBERS_EVERY_S: Final = 5.0


class MemberRow(NamedTuple):
    member_id: str
    client_id: str
    host: str
    instance_id: str
    epoch: int | None
    assignment: str
    partitions: int
    owned: tuple[TopicPartition, ...] = ()


def members_of(admin: Cluster, name: str, kind: GroupKind) -> list[MemberRow]:
    """Of groups of every kind. Blocks. A group that nobody has joined has none."""
    from penstock.admin.groups.requests import GroupRequests
    from penstock.admin.groups.share_groups import share_groups
    from penstock.admin.groups.streams_groups import streams_groups

    if kind is GroupKind.SHARE:
        (shared,) = admin.ask(lambda client: share_groups(GroupRequests(client), [name]))
        return [
            MemberRow(one.member_id, one.client_id, one.host, "", one.epoch, assignment_text(one.assignment),
                      len(one.assignment), tuple(one.assignment))
            for one in shared.members
        ]  # fmt: skip
    if kind is GroupKind.STREAMS:
        (streams,) = admin.ask(lambda client: streams_groups(GroupRequests(client), [name]))
        return [
            MemberRow(one.member_id, one.client_id, "", "", one.epoch, str(one.assigned.active),
                      sum(map(len, one.assigned.active.values())))
            for one in streams.members
        ]  # fmt: skip
    described = admin.groups.describe_each([name])[name]
    if isinstance(described, Refused):
        raise described
    return [
        MemberRow(one.member_id, one.client_id, one.host, one.instance_id, one.epoch,
                  assignment_text(one.assignment), len(one.assignment), tuple(one.assignment))
        for one in described.members
    ]  # fmt: skip


def is_of_markers(row: GroupRow) -> bool:
    """Of an exactly-once query of Penstock: its offsets are numbers of batches, and to change them breaks it."""
    return SPARK_MARKERS in row.topics


def can_be_reset(row: GroupRow | None) -> bool:
    return row is None or (
        row.kind not in (GroupKind.SHARE, GroupKind.CONNECT_WORKERS, GroupKind.OTHER)
        and not is_of_markers(row)
    )


class _Group:
    def __init__(self, context: PageContext, name: str) -> None:
        self._context = context
        self._name = name
        self._live = Live(context)
        self._rows: list[dict[str, Any]] = []
        self._readers: dict[TopicPartition, str] = {}
        self._charts: Charts | None = None

    def draw(self) -> None:
        context, t, name = self._context, self._context.t, self._name
        view = self._live.view
        row = None if view is None else view.groups.get(name)
        self._missing = ui.label(t("group.missing", group=name)).classes("console-warn")
        self._missing.props('role=status data-testid="missing"').set_visibility(False)
        if row is not None and row.kind is GroupKind.SPARK:
            banner(context, t("group.spark_markers" if is_of_markers(row) else "group.spark"), kind="info")
        if row is not None and row.error:
            banner(context, t("group.refused", error=row.error), kind="warning")
        self._tiles = Tiles(
            [
                Tile("state", t("groups.state")),
                Tile("members", t("groups.members")),
                Tile("lag", t("groups.lag")),
                Tile("lag_s", t("groups.lag_s")),
                Tile("rate", t("groups.rate")),
                Tile("coordinator", t("group.coordinator")),
            ]
        )
        self._charts = Charts(
            context,
            [
                Chart(t("group.chart_lag"), [Line(f"group/{name}/lag", t("groups.lag"))], testid="lag"),
                Chart(
                    t("group.chart_lag_s"),
                    [Line(f"group/{name}/lag_s", t("groups.lag_s"))],
                    "seconds",
                    "lag-s",
                ),
            ],
        )
        self._charts.draw()
        ui.label(t("group.partitions")).classes("console-section-title")
        columns = [
            Col("topic", t("group.topic"), "link"),
            Col("partition", t("topic.partition")),
            Col("reader", t("group.reader")),
            Col("committed", t("group.committed"), "number"),
            Col("end", t("topic.end"), "number"),
            Col("lag", t("groups.lag"), "number"),
            Col("lag_s", t("groups.lag_s"), "number"),
        ]
        self._rows = [] if view is None or row is None else _partitions(context, view, row, self._readers)
        self._table = grid(
            context,
            columns,
            self._rows,
            key="key",
            testid="partitions",
            empty=t("group.no_offsets"),
            rows_per_page=50,
        )
        sort_figures(self._table, "committed", "end", "lag", "lag_s")
        ui.label(t("group.members")).classes("console-section-title")
        kind = GroupKind.CLASSIC if row is None else row.kind
        if kind in (GroupKind.CONNECT_WORKERS, GroupKind.OTHER):
            ui.label(t("group.members_unknown")).classes("console-soft")
        else:
            Section(context, lambda: self._members(kind), self._show_members, every_s=MEMBERS_EVERY_S)
        self._live.on_look(self._show)

    def _show(self, view: ClusterView) -> None:
        row = view.groups.get(self._name)
        self._missing.set_visibility(row is None)
        if row is None:
            return
        self._tiles.set(
            {
                "state": row.state,
                "members": figures.count(row.members),
                "lag": figures.count(row.lag),
                "lag_s": figures.duration(row.lag_s),
                "rate": figures.rate(row.per_second),
                "coordinator": str(row.coordinator),
            }
        )
        rows = _partitions(self._context, view, row, self._readers)
        if rows != self._rows:
            self._rows = rows
            self._table.rows = rows
        if self._charts is not None:
            self._charts.refresh_soon()

    async def _members(self, kind: GroupKind) -> list[MemberRow]:
        view = self._live.view
        row = None if view is None else view.groups.get(self._name)
        if row is not None and row.state in ("Empty", "Dead"):
            return []
        return await self._context.cluster.call(lambda admin: members_of(admin, self._name, kind))

    def _show_members(self, found: list[MemberRow]) -> None:
        t = self._context.t
        self._readers = {
            partition: member.instance_id or f"{member.client_id} {member.host.lstrip('/')}".strip()
            for member in found
            for partition in member.owned
        }
        self._live.again()
        columns = [
            Col("client", t("group.client_id")),
            Col("host", t("group.host")),
            Col("count", t("topics.partitions"), "number"),
            Col("assignment", t("group.assignment"), is_sortable=False, is_wide=True),
            Col("member", t("group.member_id"), "mono", is_sortable=False),
        ]
        rows = [
            {
                "client": one.client_id + (f" ({one.instance_id})" if one.instance_id else ""),
                "host": one.host.lstrip("/"),
                "count": one.partitions,
                "assignment": self._assignment(one),
                "member": one.member_id,
            }
            for one in sorted(found)
        ]
        grid(self._context, columns, rows, key="member", testid="members", empty=t("group.no_members"))

    def _assignment(self, one: MemberRow) -> str:
        """Nothing of it where a topic is in it, or may be, that the visitor may not see."""
        may = self._context.may
        topics = {each.topic for each in one.owned}
        if not may(Action.VIEW) and not (topics and all(may(Action.VIEW, each) for each in topics)):
            return "…" if one.assignment else ""
        return one.assignment[:MAX_ASSIGNMENT] + ("…" if len(one.assignment) > MAX_ASSIGNMENT else "")


def _partitions(
    context: PageContext, view: ClusterView, row: GroupRow, readers: Mapping[TopicPartition, str]
) -> list[dict[str, Any]]:
    """Those with offsets, and those that a member reads and has committed nothing in."""
    known = {one.partition for one in row.partitions}
    unknown = [GroupPartition(one, None, _end(view, one), None, None) for one in readers if one not in known]
    return [
        {
            "key": str(one.partition),
            "topic": one.partition.topic,
            "topic_href": layout.link(context, TOPIC, topic=one.partition.topic),
            "partition": one.partition.partition,
            "reader": readers.get(one.partition, "–"),
            **figure("committed", one.committed, figures.count(one.committed)),
            **figure("end", one.end_offset, figures.count(one.end_offset)),
            **figure("lag", one.lag, figures.count(one.lag)),
            **figure("lag_s", one.lag_s, figures.duration(one.lag_s)),
        }
        for one in sorted([*row.partitions, *unknown], key=lambda one: one.partition)
        if context.may(Action.VIEW, one.partition.topic)
    ]


def _end(view: ClusterView, partition: TopicPartition) -> int | None:
    topic = view.topics.get(partition.topic)
    if topic is None or partition.partition >= len(topic.partitions):
        return None
    return topic.partitions[partition.partition].end_offset


async def _delete_offsets(context: PageContext, name: str, row: GroupRow) -> None:
    t = context.t
    with (
        ui.dialog().props('data-testid="delete-offsets-dialog"') as dialog,
        ui.card().classes("w-full max-w-md gap-3"),
    ):
        ui.label(t("group.delete_offsets")).classes("console-title")
        ui.label(t("group.delete_offsets_note")).classes("console-soft")
        chosen = ui.select(list(row.topics), multiple=True, label=t("group.topics")).props(
            'outlined dense use-chips data-testid="offset-topics"'
        )
        chosen.classes("w-full")

        async def done() -> None:
            topics = set(chosen.value or ())
            wanted: list[TopicPartition] = [
                one.partition for one in row.partitions if one.partition.topic in topics
            ]
            if wanted:
                with layout.complaints(context):
                    await actions.delete_offsets(context, name, wanted)
                    layout.tell(t("group.offsets_deleted", count=len(wanted)))
                    dialog.close()

        with ui.row().classes("w-full justify-end gap-2"):
            ui.button(t("common.cancel"), on_click=dialog.close).props("flat no-caps")
            ui.button(t("common.delete"), on_click=done).props(
                'unelevated no-caps color=negative data-testid="delete-offsets"'
            )
    await answered(dialog)


async def _delete(context: PageContext, name: str, row: GroupRow | None) -> None:
    t = context.t
    detail = (
        t("group.delete_marker_note") if row is not None and is_of_markers(row) else t("group.delete_note")
    )
    if await confirmed(
        context, t("group.delete_question", group=name), detail, button=t("common.delete"), typed=name
    ):
        with layout.complaints(context):
            await actions.delete(context, [name])
            ui.navigate.to(layout.link(context, "/{cluster}/groups"))


async def build(context: PageContext) -> None:
    name, t = context.path["group"], context.t
    view = context.cluster.snapshot.latest
    row = None if view is None else view.groups.get(name)
    with layout.heading(name, "" if row is None else t(f"groups.kind_{row.kind.value}")):
        if context.may(Action.EDIT_GROUPS, name):
            if can_be_reset(row):
                ui.button(
                    t("group.reset"), icon="restart_alt", on_click=lambda: group_reset.show(context, name)
                ).props('unelevated no-caps data-testid="reset"')
            with (
                ui.button(icon="more_vert").props(
                    f'flat round dense aria-label="{t("topic.actions")}" data-testid="group-menu"'
                ),
                ui.menu().props("auto-close"),
            ):
                if row is not None and row.partitions and can_be_reset(row):
                    ui.menu_item(
                        t("group.delete_offsets"), on_click=lambda: _delete_offsets(context, name, row)
                    ).props('data-testid="forget"')
                ui.menu_item(t("group.delete"), on_click=lambda: _delete(context, name, row)).props(
                    'data-testid="delete"'
                )
    _Group(context, name).draw()


SCREENS = (Screen("group", GROUP, "group.title", "groups", build, in_menu=False),)
