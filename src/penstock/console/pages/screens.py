"""The list of screens: what a screen is, and which modules have some, in the order of the menu."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fastapi import APIRouter

    from penstock.console.context import Console, PageContext

MODULES: Final = (
    "overview", "topics", "topic", "messages", "groups", "group", "schemas", "connect", "sql", "pipelines", "dead_letters",
    "security", "audit", "cluster", "plan",
)  # fmt: skip


@dataclass(frozen=True)
class Screen:
    """`build` fills the page between the header and the foot; it runs in the page's own slot, and may await. It should draw first
    and look things up later: a page that is not there after `layout.BUILD_TIMEOUT_S` becomes an error."""

    name: str
    path: str
    """`/{cluster}/topics/{topic}`. A name that may contain a slash is `{group:path}`, at the end."""
    title_key: str
    icon: str
    build: Callable[[PageContext], Awaitable[None]]
    in_menu: bool = True
    needs: str | None = None
    """"registry", "connect" or "sql": in the menu only where the cluster has it."""


@cache
def screens() -> tuple[Screen, ...]:
    return tuple(screen for module in _modules() for screen in module.SCREENS)


def routes(console: Console) -> list[APIRouter]:
    """Those of the modules that have some: `def routes(console) -> APIRouter`, for downloads. A route makes its context with
    `asking.context_of(console, request)` and calls `context.require` before it gives anything away."""
    return [module.routes(console) for module in _modules() if hasattr(module, "routes")]


def _modules() -> list[Any]:
    return [import_module(f"penstock.console.pages.{name}") for name in MODULES]
