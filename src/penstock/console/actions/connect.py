"""Changes to connectors. The audit log is told names of settings, never their values: they may be passwords."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions.sql import has_masked_fields
from penstock.console.context import PageContext
from penstock.console.upstream.asking import asked
from penstock.console.upstream.connect import RUNNING, ConnectServer
from penstock.console.upstream.servers import servers

T = TypeVar("T")

MAX_NAMES_TOLD = 40


async def create(
    context: PageContext, number: int, name: str, config: Mapping[str, str], *, state: str = RUNNING
) -> None:
    kind = config.get("connector.class", "")
    await _do(
        context, number, name, f"create the connector, of {kind}",
        lambda server: server.create(name, config, state=state), may_copy=True,
    )  # fmt: skip


async def configure(
    context: PageContext, number: int, name: str, config: Mapping[str, str], *, changed: Sequence[str]
) -> None:
    """`changed`: the names of the settings that are other than before."""
    told = ", ".join(changed[:MAX_NAMES_TOLD]) or "nothing"
    await _do(
        context,
        number,
        name,
        f"change its configuration: {told}",
        lambda server: server.configure(name, config),
        may_copy=True,
    )


async def delete(context: PageContext, number: int, name: str) -> None:
    await _do(context, number, name, "delete the connector", lambda server: server.delete(name))


async def restart(context: PageContext, number: int, name: str, *, only_failed: bool) -> None:
    what = "start what has failed again" if only_failed else "start the connector and its tasks again"
    await _do(context, number, name, what, lambda server: server.restart(name, only_failed=only_failed))


async def restart_task(context: PageContext, number: int, name: str, task: int) -> None:
    await _do(
        context, number, name, f"start task {task} again", lambda server: server.restart_task(name, task)
    )


async def pause(context: PageContext, number: int, name: str) -> None:
    await _do(context, number, name, "pause the connector", lambda server: server.pause(name))


async def resume(context: PageContext, number: int, name: str) -> None:
    await _do(context, number, name, "let the connector go on", lambda server: server.resume(name))


async def stop(context: PageContext, number: int, name: str) -> None:
    await _do(context, number, name, "stop the connector", lambda server: server.stop(name))


async def alter_offsets(
    context: PageContext, number: int, name: str, changes: Sequence[Mapping[str, Any]]
) -> str:
    """What the worker says of it."""
    what = f"change {len(changes)} offsets"
    return await _do(context, number, name, what, lambda server: server.alter_offsets(name, changes))


async def reset_offsets(context: PageContext, number: int, name: str) -> str:
    return await _do(context, number, name, "reset its offsets", lambda server: server.reset_offsets(name))


async def _do(
    context: PageContext,
    number: int,
    name: str,
    what: str,
    ask: Callable[[ConnectServer], T],
    *,
    may_copy: bool = False,
) -> T:
    """`number`: which of the Connect clusters of the settings. `may_copy`: what a configuration says may be to take records
    elsewhere, as they are."""

    async def work() -> T:
        if may_copy and has_masked_fields(context):
            raise UserError(
                "a connector may copy fields that are masked from you, so you may not configure one"
            )
        return await asked(partial(ask, servers(context.cluster).connect(number)))

    return await context.act(Action.EDIT_CONNECTORS, name, what, work)
