"""Changes to the cluster itself: leaders, where replicas lie, configs of brokers.

A move of replicas takes its time and goes on without the browser that began it: `Moves` has the one that this console carries out
in each cluster, and all pages see how far it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from penstock.admin import Cluster, ConfigResource
from penstock.admin.moves.watching import Progress, Show
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.console.access.actions import Action
from penstock.console.context import PageContext
from penstock.console.upstream.connect import without_secrets
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition

MIN_THROTTLE: Final = 1000
"""Bytes per second: less, and a move never ends."""


async def elect_preferred_leaders(context: PageContext) -> int:
    """How many partitions got their preferred leader back. UserError tells why where some did not."""

    def work(admin: Cluster) -> dict[TopicPartition, Refused | None]:
        return admin.brokers.elect_leaders()

    found = await context.act(
        Action.EDIT_CLUSTER, "cluster", "elect preferred leaders", lambda: context.cluster.call(work)
    )
    context.cluster.snapshot.refresh_soon()
    failed = {
        partition: error
        for partition, error in found.items()
        if error is not None and error.code != ErrorCode.ELECTION_NOT_NEEDED
    }
    if failed:
        partition, error = next(iter(failed.items()))
        raise UserError(context.t("cluster.not_elected", count=len(failed), partition=partition, error=error))
    return sum(error is None for error in found.values())


async def set_broker_config(context: PageContext, broker: int | None, key: str, value: str | None) -> None:
    """Of one broker, or (None) of all; without a value the default holds again."""
    resource = ConfigResource.all_brokers() if broker is None else ConfigResource.broker(broker)
    what = f"reset {key}" if value is None else f"set {key}={without_secrets(key, value)}"

    def work(admin: Cluster) -> None:
        if value is None:
            admin.configs.alter(resource, delete=[key])
        else:
            admin.configs.alter(resource, set={key: value})

    await context.act(Action.EDIT_CLUSTER, str(resource), what, lambda: context.cluster.call(work))


@dataclass
class Run:
    """A move that this console carries out, or did last."""

    what: str
    began_s: float = field(default_factory=time.time)
    progress: Progress | None = None
    is_over: bool = False
    is_cancelled: bool = False
    moved: int = 0
    error: str = ""

    @property
    def share(self) -> float:
        if self.is_over and not self.error:
            return 1.0
        return (
            0.0
            if self.progress is None or not self.progress.total
            else self.progress.done / self.progress.total
        )


class Moves:
    """By cluster: at most one that is under way."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def of(self, cluster: str) -> Run | None:
        return self._runs.get(cluster)

    async def drain(self, context: PageContext, broker: int, *, throttle: int | None) -> None:
        self._begin(
            context,
            f"move all replicas away from broker {broker}",
            lambda admin, show: admin.moves.drain(broker, throttle=throttle, show=show),
            throttle=throttle,
        )

    async def replace(
        self, context: PageContext, broker: int, *, substitute: int, throttle: int | None
    ) -> None:
        self._begin(
            context,
            f"move all replicas of broker {broker} to broker {substitute}",
            lambda admin, show: admin.moves.replace(
                broker, substitute=substitute, throttle=throttle, show=show
            ),
            throttle=throttle,
        )

    async def set_replication_factor(
        self, context: PageContext, topic: str, factor: int, *, throttle: int | None
    ) -> None:
        self._begin(
            context,
            f"give {topic} {factor} replicas",
            lambda admin, show: admin.topics.set_replication_factor(
                topic, factor, throttle=throttle, show=show
            ),
            throttle=throttle,
            action=Action.EDIT_TOPICS,
            resource=topic,
        )

    async def move(
        self, context: PageContext, partition: TopicPartition, brokers: list[int], *, throttle: int | None
    ) -> None:
        if not brokers or len(set(brokers)) != len(brokers):
            raise UserError(context.t("cluster.bad_replicas"))
        self._begin(
            context,
            f"move {partition} to brokers {', '.join(map(str, brokers))}",
            lambda admin, show: admin.moves.carry_out(
                lambda states, racks: {
                    state.partition: brokers
                    for state in states
                    if state.partition == partition and state.replicas != brokers
                },
                throttle=throttle,
                show=show,
            ),
            throttle=throttle,
            action=Action.EDIT_TOPICS,
            resource=partition.topic,
        )

    def _begin(
        self,
        context: PageContext,
        what: str,
        work: Callable[[Cluster, Show], int],
        *,
        throttle: int | None,
        action: Action = Action.EDIT_CLUSTER,
        resource: str = "cluster",
    ) -> None:
        context.require(action, resource)
        if throttle is not None and throttle < MIN_THROTTLE:
            raise UserError(context.t("cluster.bad_throttle", least=MIN_THROTTLE))
        known = self._runs.get(context.cluster.name)
        if known is not None and not known.is_over:
            raise UserError(context.t("cluster.is_moving", what=known.what))
        run = self._runs[context.cluster.name] = Run(what)
        said = what if throttle is None else f"{what} with at most {throttle} bytes per second"
        task = asyncio.get_running_loop().create_task(
            self._carry_out(context, run, said, work, action=action, resource=resource)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(
        self,
        context: PageContext,
        run: Run,
        what: str,
        work: Callable[[Cluster, Show], int],
        *,
        action: Action,
        resource: str,
    ) -> None:
        def show(progress: Progress) -> None:
            run.progress = progress
            if run.is_cancelled:
                raise UserError(context.t("cluster.was_cancelled"))

        try:
            # In a thread of its own: it may last for hours, and pages need the cluster's few threads.
            run.moved = await context.act(
                action, resource, what, lambda: asyncio.to_thread(work, context.cluster.admin, show)
            )
        except (UserError, Refused, Unreachable) as error:
            run.error = str(error)
        except Exception as error:
            run.error = type(error).__name__
            raise
        finally:
            run.is_over = True
            context.cluster.snapshot.refresh_soon()


MOVES: Final = Moves()
"""Of this process."""


async def cancel_moves(context: PageContext) -> int:
    """Ends what is being reassigned, whoever began it: the partitions stay where they were. How many. What this console carries
    out itself begins no more."""
    context.require(Action.EDIT_CLUSTER, "cluster")
    run = MOVES.of(context.cluster.name)
    if run is not None:
        run.is_cancelled = True

    def work(admin: Cluster) -> int:
        ongoing = admin.moves.ongoing()
        refused = admin.moves.cancel(ongoing)
        if refused:
            partition, error = next(iter(refused.items()))
            raise UserError(f"{partition}: {error}")
        return len(ongoing)

    found = await context.act(
        Action.EDIT_CLUSTER, "cluster", "cancel all reassignments", lambda: context.cluster.call(work)
    )
    context.cluster.snapshot.refresh_soon()
    return found
