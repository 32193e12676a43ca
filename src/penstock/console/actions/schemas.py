"""Changes to a schema registry."""

from __future__ import annotations

from functools import partial

from penstock.console.access.actions import Action
from penstock.console.context import PageContext
from penstock.console.upstream.asking import asked
from penstock.console.upstream.registry import Candidate
from penstock.console.upstream.servers import servers

ALL = "*"


async def register(context: PageContext, subject: str, candidate: Candidate) -> int:
    """The schema's id."""
    work = partial(servers(context.cluster).registry.register, subject, candidate)
    return await context.act(
        Action.EDIT_SCHEMAS, subject, f"register a schema ({candidate.kind})", lambda: asked(work)
    )


async def set_level(context: PageContext, subject: str | None, level: str) -> None:
    """None: of all subjects that have none of their own."""
    work = partial(servers(context.cluster).registry.set_level, subject, level)
    await context.act(
        Action.EDIT_SCHEMAS, subject or ALL, f"set the compatibility to {level}", lambda: asked(work)
    )


async def remove_level(context: PageContext, subject: str) -> None:
    work = partial(servers(context.cluster).registry.remove_level, subject)
    await context.act(
        Action.EDIT_SCHEMAS, subject, "take away the subject's own compatibility", lambda: asked(work)
    )


async def set_mode(context: PageContext, subject: str, mode: str) -> None:
    work = partial(servers(context.cluster).registry.set_mode, subject, mode)
    await context.act(Action.EDIT_SCHEMAS, subject, f"set the mode to {mode}", lambda: asked(work))


async def delete_subject(context: PageContext, subject: str, *, permanent: bool) -> None:
    work = partial(servers(context.cluster).registry.delete_subject, subject, permanent=permanent)
    how = "for good" if permanent else "softly"
    await context.act(Action.EDIT_SCHEMAS, subject, f"delete the subject {how}", lambda: asked(work))


async def delete_version(context: PageContext, subject: str, version: int, *, permanent: bool) -> None:
    work = partial(servers(context.cluster).registry.delete_version, subject, version, permanent=permanent)
    how = "for good" if permanent else "softly"
    await context.act(Action.EDIT_SCHEMAS, subject, f"delete version {version} {how}", lambda: asked(work))
