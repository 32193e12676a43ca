"""Statements of SQL, and the end of queries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.context import PageContext
from penstock.console.upstream.asking import asked
from penstock.console.upstream.servers import servers
from penstock.console.upstream.sql import Source
from penstock.console.upstream.sql_run import SqlRun, without_values

ALL = "*"
"""A text may be about any source: roles that allow SQL for some names only do not allow a text."""


async def run(context: PageContext, text: str, properties: Mapping[str, str]) -> SqlRun:
    """Begins. Queries show fields as they are, so a visitor from whom some are masked may not."""
    url, authority = context.cluster.sql_url, context.cluster.ca_file
    if not url:
        raise UserError("no SQL server is known here; start the console with --sql-url")

    async def start() -> SqlRun:
        if has_masked_fields(context):
            raise UserError("a query would show fields that are masked from you, so you may not run SQL here")
        return await asked(partial(SqlRun, url, text, properties, authority=authority))

    return await context.act(Action.RUN_SQL, ALL, without_values(text), start)


def has_masked_fields(context: PageContext) -> bool:
    names = {role.name for role in context.visitor.roles}
    return any(names.isdisjoint(rule.except_roles) for rule in context.console.settings.masking)


async def terminate(context: PageContext, query_id: str) -> str:
    """What the server says of it."""
    work = partial(servers(context.cluster).sql.terminate, query_id)
    return await context.act(Action.RUN_SQL, query_id, f"terminate the query {query_id}", lambda: asked(work))


async def drop(context: PageContext, source: Source, *, with_topic: bool) -> str:
    work = partial(servers(context.cluster).sql.drop, source, with_topic=with_topic)
    what = f"drop the {source.kind.lower()}{' and delete its topic' if with_topic else ''}"

    async def ask() -> str:
        if with_topic:
            context.require(Action.DELETE_TOPICS, source.topic)
        return await asked(work)

    return await context.act(Action.RUN_SQL, source.name, what, ask)
