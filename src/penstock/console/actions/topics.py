"""Changes to topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from penstock.admin import Cluster, ConfigResource
from penstock.admin.configs import OF_TOPIC
from penstock.client.errors import Refused, UserError
from penstock.console.access.actions import Action
from penstock.console.context import PageContext
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition

MAX_PARTITIONS: Final = 10_000
"""Of one topic made here: a slip of the hand should not cost a cluster."""
ALL_RECORDS: Final = -1
NOT_COPIED: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


async def create(
    context: PageContext,
    name: str,
    *,
    partitions: int | None,
    replication_factor: int | None,
    configs: Mapping[str, str],
) -> None:
    """None: the broker's default. UserError, Refused."""
    if not name:
        raise UserError(context.t("topics.needs_name"))
    if partitions is not None and not 0 < partitions <= MAX_PARTITIONS:
        raise UserError(context.t("topics.bad_partitions", most=MAX_PARTITIONS))
    shown = "".join(f", {key}={value}" for key, value in configs.items())
    count = "default" if partitions is None else partitions
    factor = "default" if replication_factor is None else replication_factor

    def work(admin: Cluster) -> bool:
        return admin.topics.create(
            name, partitions=partitions, replication_factor=replication_factor, configs=dict(configs)
        )

    await context.act(
        Action.EDIT_TOPICS,
        name,
        f"create with partitions={count}, replicas={factor}{shown}",
        lambda: context.cluster.call(work),
    )
    context.cluster.snapshot.refresh_soon()


async def clone(context: PageContext, name: str, source: str) -> None:
    """A topic like another: partitions, replicas and the configs that were set on it. No records."""

    def work(admin: Cluster) -> bool:
        (described,) = admin.topics.describe(source)
        configs: dict[str, str | None] = {
            entry.name: entry.value
            for entry in admin.configs.of_topics(source)[source].values()
            if entry.source == OF_TOPIC and entry.value is not None and entry.name not in NOT_COPIED
        }
        factor = max(one.replication_factor for one in described.partitions)
        return admin.topics.create(
            name, partitions=len(described.partitions), replication_factor=factor, configs=configs
        )

    if not name:
        raise UserError(context.t("topics.needs_name"))
    context.require(Action.VIEW, source)
    await context.act(Action.EDIT_TOPICS, name, f"create like {source}", lambda: context.cluster.call(work))
    context.cluster.snapshot.refresh_soon()


async def add_partitions(context: PageContext, name: str, total: int) -> None:
    if not 0 < total <= MAX_PARTITIONS:
        raise UserError(context.t("topics.bad_partitions", most=MAX_PARTITIONS))
    await context.act(
        Action.EDIT_TOPICS,
        name,
        f"grow to {total} partitions",
        lambda: context.cluster.call(lambda admin: admin.topics.add_partitions(name, total)),
    )
    context.cluster.snapshot.refresh_soon()


async def set_config(context: PageContext, name: str, key: str, value: str | None) -> None:
    """None: its default holds again."""
    what = f"reset {key}" if value is None else f"set {key}={value}"

    def work(admin: Cluster) -> None:
        if value is None:
            admin.configs.alter(ConfigResource.topic(name), delete=[key])
        else:
            admin.configs.alter(ConfigResource.topic(name), set={key: value})

    await context.act(Action.EDIT_TOPICS, name, what, lambda: context.cluster.call(work))


async def empty(context: PageContext, name: str) -> int:
    """Deletes all records that are there now; those that are written meanwhile stay. How many partitions were emptied."""

    def work(admin: Cluster) -> int:
        partitions = admin.topics.partitions(name)
        try:
            return len(admin.topics.delete_records(dict.fromkeys(partitions, ALL_RECORDS)))
        except Refused as error:
            if error.code == ErrorCode.POLICY_VIOLATION:
                raise UserError(context.t("topic.cannot_empty", topic=name)) from None
            raise

    emptied = await context.act(
        Action.DELETE_TOPICS, name, "delete all records", lambda: context.cluster.call(work)
    )
    context.cluster.snapshot.refresh_soon()
    return emptied


async def delete_records(context: PageContext, name: str, before: Mapping[int, int]) -> None:
    """Of some partitions, those before an offset."""
    wanted = {TopicPartition(name, number): offset for number, offset in before.items()}
    shown = ", ".join(f"{number}: {offset}" for number, offset in before.items())
    await context.act(
        Action.DELETE_TOPICS,
        name,
        f"delete records before {shown}",
        lambda: context.cluster.call(lambda admin: admin.topics.delete_records(wanted)),
    )
    context.cluster.snapshot.refresh_soon()


async def delete(context: PageContext, names: Iterable[str]) -> list[str]:
    """Each on its own, so that one which is refused does not keep the others; those that are gone. UserError tells of the
    rest."""
    gone, failed = [], []
    for name in names:
        try:
            await context.act(
                Action.DELETE_TOPICS,
                name,
                "delete the topic",
                lambda name=name: context.cluster.call(lambda admin: admin.topics.delete(name)),  # type: ignore[misc]
            )
            gone.append(name)
        except (UserError, Refused) as error:
            failed.append(f"{name}: {error}")
    context.cluster.snapshot.refresh_soon()
    if failed:
        raise UserError("; ".join(failed))
    return gone
