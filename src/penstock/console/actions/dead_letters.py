"""Replaying dead letters: with progress, and a way to stop it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.actions.sql import has_masked_fields
from penstock.console.context import PageContext

if TYPE_CHECKING:
    from penstock.admin.dead_letters.replaying import Summary

MAX_REPLAYS: Final = 3
"""Of all pages at a time: each has a thread and a transactional producer."""

_slots = asyncio.Semaphore(MAX_REPLAYS)


class ReplayStopped(UserError):
    """Somebody stopped it; what was replayed until then stays replayed."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    cause: str | None = None
    to: str | None = None
    limit: int | None = None
    keeps_timestamps: bool = False


@dataclass
class Progress:
    """Written by the thread that replays, read by the page."""

    seen: int = 0
    total: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        self._stopped.set()

    def tell(self, seen: int, total: int) -> None:
        self.seen, self.total = seen, total
        if self._stopped.is_set():
            raise ReplayStopped(f"stopped after {seen} of {total} dead letters")


async def preview(context: PageContext, topic: str, choice: Choice, progress: Progress) -> Summary:
    """What `replay` would do. It changes nothing, but whoever may not do it is told so now."""
    _check(context, topic, [choice.to] if choice.to else [])
    if choice.to and has_masked_fields(context):
        # Where the letters came from is known only when they have been read, and what is masked there would be shown elsewhere.
        raise UserError("fields are masked from you, so you may replay records only to where they came from")
    summary = await _in_thread(context, topic, choice, progress, dry_run=True)
    _check(context, topic, list(summary.replayed))
    return summary


async def replay(context: PageContext, topic: str, choice: Choice, progress: Progress) -> Summary:
    """Looks first where the letters would go: the visitor must be allowed to produce to each of those topics."""
    await preview(context, topic, choice, Progress(_stopped=progress._stopped))
    where = f" to {choice.to}" if choice.to else ""
    which = f" with the cause {choice.cause}" if choice.cause else ""

    async def work() -> Summary:
        return await _in_thread(context, topic, choice, progress, dry_run=False)

    return await context.act(Action.PRODUCE, topic, f"replay dead letters{where}{which}", work)


def _check(context: PageContext, topic: str, targets: list[str]) -> None:
    from penstock.console.access.masking import Masking

    masking = Masking(context.console.settings.masking)
    for each in (topic, *targets):
        context.require(Action.PRODUCE, each)
        if masking.for_topic(each, context.visitor.roles) is not None:
            raise UserError(f"fields of {each} are masked from you, so you may not replay its records")


async def _in_thread(
    context: PageContext, topic: str, choice: Choice, progress: Progress, *, dry_run: bool
) -> Summary:
    if _slots.locked():
        raise UserError(f"{MAX_REPLAYS} replays are under way in this console; try again soon")

    def work() -> Summary:
        return context.cluster.admin.dead_letters.replay(
            topic, to=choice.to, cause=choice.cause, limit=choice.limit, keep_timestamps=choice.keeps_timestamps,
            dry_run=dry_run, show=progress.tell,
        )  # fmt: skip

    async with _slots:
        return await asyncio.get_running_loop().run_in_executor(_threads(), work)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_REPLAYS, thread_name_prefix="console-replay")
