"""Changes to groups: where they read on, and that they are forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.admin import Cluster, Target
from penstock.client.errors import Refused, UserError
from penstock.console.access.actions import Action
from penstock.console.context import PageContext
from penstock.model.ids import TopicPartition


class PlannedOffset(NamedTuple):
    partition: TopicPartition
    now: int | None
    then: int
    note: str = ""

    @property
    def change(self) -> int | None:
        """Records: below zero they are read again, above it they are left out."""
        return None if self.now is None else self.then - self.now


async def plan(
    context: PageContext, group: str, partitions: Iterable[TopicPartition], target: Target
) -> list[PlannedOffset]:
    """What a reset would do. Writes nothing. UserError while the group has members."""
    wanted = list(partitions)

    def work(admin: Cluster) -> list[PlannedOffset]:
        admin.groups.check_inactive(group)
        committed = admin.groups.committed(group)
        planned = admin.groups.plan_reset(group, wanted, target)
        asked: dict[TopicPartition, int] = {}
        if target.form == "offset" and target.value is not None:
            asked = dict.fromkeys(planned.offsets, target.value)
        elif target.form == "shift" and target.value is not None:
            asked = {one: committed[one].offset + target.value for one in planned.offsets if one in committed}
        late = set(planned.fell_back)
        return [
            PlannedOffset(
                one,
                committed[one].offset if one in committed else None,
                offset,
                context.t("group.fell_back")
                if one in late
                else context.t("group.clamped")
                if asked.get(one, offset) != offset
                else "",
            )
            for one, offset in sorted(planned.offsets.items())
        ]

    return await context.cluster.call(work)


async def plan_values(
    context: PageContext, group: str, values: Mapping[TopicPartition, int]
) -> list[PlannedOffset]:
    """A value for each partition. What lies outside of a log becomes its nearer end."""

    def work(admin: Cluster) -> list[PlannedOffset]:
        admin.groups.check_inactive(group)
        committed = admin.groups.committed(group)
        spans = admin.offsets.spans(*sorted({one.topic for one in values}))
        planned = []
        for one, value in sorted(values.items()):
            if one not in spans:
                raise UserError(context.t("group.no_partition", partition=one))
            then = min(max(value, spans[one].start_offset), spans[one].end_offset)
            note = context.t("group.clamped") if then != value else ""
            now = committed[one].offset if one in committed else None
            planned.append(PlannedOffset(one, now, then, note))
        return planned

    return await context.cluster.call(work)


async def reset(context: PageContext, group: str, planned: Iterable[PlannedOffset]) -> None:
    """Commits exactly what the plan says. UserError when the group has members now."""
    offsets = {one.partition: one.then for one in planned}
    if not offsets:
        raise UserError(context.t("group.nothing_planned"))

    def work(admin: Cluster) -> None:
        admin.groups.check_inactive(group)
        admin.groups.commit(group, offsets)

    shown = ", ".join(f"{one}={offset}" for one, offset in list(offsets.items())[:20])
    more = f" and {len(offsets) - 20} more" if len(offsets) > 20 else ""
    await context.act(
        Action.EDIT_GROUPS, group, f"set offsets {shown}{more}", lambda: context.cluster.call(work)
    )
    context.cluster.snapshot.refresh_soon()


async def delete_offsets(context: PageContext, group: str, partitions: Iterable[TopicPartition]) -> None:
    wanted = list(partitions)
    topics = ", ".join(sorted({one.topic for one in wanted}))
    await context.act(
        Action.EDIT_GROUPS,
        group,
        f"forget the offsets of {len(wanted)} partitions of {topics}",
        lambda: context.cluster.call(lambda admin: admin.groups.delete_offsets(group, wanted)),
    )
    context.cluster.snapshot.refresh_soon()


async def delete(context: PageContext, names: Iterable[str]) -> list[str]:
    """Each on its own; those that are gone. UserError tells of the rest."""
    gone, failed = [], []
    for name in names:
        try:
            await context.act(
                Action.EDIT_GROUPS,
                name,
                "delete the group",
                lambda name=name: context.cluster.call(lambda admin: admin.groups.delete(name)),  # type: ignore[misc]
            )
            gone.append(name)
        except (UserError, Refused) as error:
            failed.append(str(error))
    context.cluster.snapshot.refresh_soon()
    if failed:
        raise UserError("; ".join(failed))
    return gone
