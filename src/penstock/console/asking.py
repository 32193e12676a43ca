"""From a request of a browser to a `PageContext`: for pages, and for routes that give downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client.errors import UserError
from penstock.console.access.actions import Action
from penstock.console.context import Console, Forbidden, PageContext
from penstock.console.gate import VISITOR
from penstock.console.words import text

if TYPE_CHECKING:
    from starlette.requests import Request

    from penstock.console.context import Visitor


class NoSuchCluster(UserError):
    """The address names a cluster that the settings do not have, or that this visitor may not see."""


def visitor_of(request: Request) -> Visitor:
    visitor: Visitor = request.scope[VISITOR]
    return visitor


def context_of(console: Console, request: Request) -> PageContext:
    """NoSuchCluster; Forbidden where the address names something that the visitor may not see."""
    visitor = visitor_of(request)
    path = {name: str(value) for name, value in request.path_params.items()}
    name = path.get("cluster", "")
    cluster = console.clusters.get(name)
    if cluster is None or not visitor.may_somewhere(Action.VIEW, name):
        raise NoSuchCluster(text(visitor.language, "frame.no_cluster", cluster=name))
    context = PageContext(
        console=console, cluster=cluster, visitor=visitor, path=path, query=dict(request.query_params.items())
    )
    for part, value in path.items():
        if part != "cluster" and not visitor.may(Action.VIEW, value, name):
            raise Forbidden(context.t("common.forbidden", action=context.t("action.view"), resource=value))
    return context
