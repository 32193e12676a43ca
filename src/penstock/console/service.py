"""The console as a service in the shared frame: clusters, pages, and what runs beside them while it serves."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from penstock.client.clients import Connection
from penstock.client.errors import BadOption
from penstock.console.access.audit import Audit
from penstock.console.access.doors import Access
from penstock.console.access.passwords import StartPassword, passwords_for
from penstock.console.context import ClusterHandle, Console
from penstock.console.gate import Gate, is_loopback
from penstock.console.settings.model import NONE
from penstock.model.endpoints import bracketed
from penstock.web.call import Receive, Scope, Send
from penstock.web.errors import HttpError
from penstock.web.options import Listen
from penstock.web.routes import Routes
from penstock.web.service import App, Running, WebService

if TYPE_CHECKING:
    from penstock.console.settings import ConsoleSettings

log = logging.getLogger("penstock.console")

SWEEP_PAUSE_S: Final = 15.0
THREADS: Final = 32
"""For what blocks outside of a cluster's own threads: logins, charts, downloads, scans, moves. By default two cores
have six, and a few downloads from a broker that hangs would leave none for a login."""


class Service:
    """What lives as long as the process serves."""

    def __init__(self, settings: ConsoleSettings, *, tell: Callable[[str], None]) -> None:
        """`tell` gets the password of the start, where there is one."""
        self._settings = settings
        self._tell = tell
        self._gate: App | None = None

    def check_listeners(self, listeners: Iterable[Listen]) -> None:
        """BadOption where everybody on the network would be an admin."""
        if self._settings.login.method != NONE:
            return
        for listen in listeners:
            if not is_loopback(bracketed(listen.address.host)):
                raise BadOption(
                    f"--no-login: is for addresses of this machine only, such as 127.0.0.1, and not {listen.address.host}; "
                    "give console.yaml a login, or leave --no-login out"
                )

    def described(self) -> WebService:
        return WebService(
            name="console",
            title="Penstock console",
            routes=Routes(),
            lifecycle=self._lived,
            other_paths=self._pages,
        )

    async def _pages(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._gate is None:
            raise HttpError(503, "The console is starting.")
        await self._gate(scope, receive, send)

    @asynccontextmanager
    async def _lived(self, running: Running) -> AsyncIterator[None]:
        from penstock.console.history import History
        from penstock.console.pages import app as pages

        settings = self._settings
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(THREADS, thread_name_prefix="console")
        )
        history = History(settings.history)
        clusters = {
            each.name: ClusterHandle(each, history, look_every_s=settings.snapshot_seconds)
            for each in settings.clusters
        }
        audit = _audit(settings)
        console = Console(
            settings=settings, clusters=clusters, history=history, audit=audit, access=Access(settings)
        )
        cookie = f"penstock_session_{running.listeners[0].address.port}"
        passwords = passwords_for(settings)
        app: Any = pages.make(console, passwords, cookie=cookie)
        if isinstance(passwords, StartPassword):
            self._tell(passwords.told(running.listeners[0]))
        sweeping = None
        try:
            audit.start()
            for cluster in clusters.values():
                cluster.snapshot.start()
            async with app.router.lifespan_context(app):
                self._gate = Gate(
                    app, console.access, cookie=cookie, public_url=settings.public_url,
                    open_prefixes=pages.OPEN_PREFIXES,
                )  # fmt: skip
                sweeping = asyncio.create_task(_swept(console))
                gc.collect()
                gc.freeze()  # what was loaded stays: the collector need not look through it again and again
                yield
        finally:
            self._gate = None
            if sweeping is not None:
                sweeping.cancel()
            await asyncio.to_thread(_closed, console)


def _audit(settings: ConsoleSettings) -> Audit:
    for cluster in settings.clusters:
        if settings.audit.topic and cluster.name == settings.audit.cluster:
            return Audit(settings.audit.topic, Connection(cluster.bootstrap, dict(cluster.properties)))
    return Audit()


def _closed(console: Console) -> None:
    for cluster in console.clusters.values():
        cluster.close()
    console.history.close()
    console.audit.close()


async def _swept(console: Console) -> None:
    """Browsers whose session has ended are sent to the login, also those that only look."""
    from penstock.console.pages.app import leave_ended

    while True:
        await asyncio.sleep(SWEEP_PAUSE_S)
        console.access.sessions.sweep()
        await leave_ended(console)
