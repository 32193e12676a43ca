"""A Connect worker as a service in the frame of all HTTP services."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.group_identity import Identity
from penstock.client.reach import parse_addresses
from penstock.connect.errors import ConnectError, InvalidConfig
from penstock.connect.running.options import WorkerOptions
from penstock.connect.running.refusals import Refusal
from penstock.connect.running.worker import Worker
from penstock.connect.server.asking import Asking
from penstock.connect.server.numbers import WorkerNumbers
from penstock.connect.server.routes import routes_of
from penstock.web.content_types import JSON, OCTETS, ContentTypes
from penstock.web.errors import HttpError
from penstock.web.forwarding import Forwarding
from penstock.web.service import Running, WebService

log = logging.getLogger("penstock.connect")

LOOPBACK: Final = "127.0.0.1"
FORM: Final = "application/x-www-form-urlencoded"
CONTENT: Final = ContentTypes(accepted=(JSON, OCTETS, FORM), offered=(JSON,))
CONNECT_S: Final = 5.0
READ_S: Final = 60.0

Start = Callable[[Worker], None]


def connect_service(
    options: WorkerOptions, *, connectors: Sequence[tuple[str, Mapping[str, str]]] = ()
) -> WebService:
    """`connectors`: those of a standalone worker's files, by name. BadOption for what cannot be used."""
    asking = Asking()
    logging.getLogger("penstock.connect.client").setLevel(logging.WARNING)

    @asynccontextmanager
    async def lifecycle(running: Running) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def on_leader() -> None:
            try:
                loop.call_soon_threadsafe(asking.leader_changed)
            except RuntimeError:  # the loop has ended
                pass

        worker = Worker(options, identity(options, running), on_leader=on_leader)
        asking.worker = worker
        asking.forwarding = Forwarding(
            connect_timeout_s=CONNECT_S,
            read_timeout_s=READ_S,
            user_info=options["penstock.inter.worker.user.info"],
            ssl_properties=options.web.given,
        )
        running.metrics.registry.register(WorkerNumbers(worker))
        try:
            await asyncio.to_thread(worker.open)
            worker.begin()
            for name, config in connectors:
                await asyncio.to_thread(_add, worker, name, config)
            yield
        finally:
            await asyncio.to_thread(worker.close)
            asking.forwarding.close()
            asking.close()

    return WebService(
        name="connect",
        title="Penstock Connect",
        routes=routes_of(asking),
        content=CONTENT,
        lifecycle=lifecycle,
        health=lambda: asking.worker.problem,
        refusal=_refused,
    )


def _add(worker: Worker, name: str, config: Mapping[str, str]) -> None:
    """UserError: a standalone worker whose connectors cannot be used does not start."""
    import time

    deadline_s = time.monotonic() + CONNECT_S
    while not worker.leading.leads and time.monotonic() < deadline_s:
        time.sleep(0.01)
    try:
        worker.herder.put(name, config)
    except Refusal as error:
        raise UserError(f"the connector {name} cannot be used: {error}") from None


def _refused(error: Exception) -> HttpError | None:
    if isinstance(error, Refusal):
        return HttpError(error.status, str(error))
    if isinstance(error, InvalidConfig):
        return HttpError(400, str(error))
    if isinstance(error, ConnectError | Refused | Unreachable | UserError):
        return HttpError(500, str(error))
    return None


def identity(options: WorkerOptions, running: Running) -> Identity:
    """Where others find this worker: by `rest.advertised.…`, or by the address that it listens on, or by the machine's name."""
    wanted = options["rest.advertised.listener"].lower()
    listeners = [one for one in running.listeners if one.scheme == wanted] or list(running.listeners)
    scheme, address = listeners[0]
    host = options["rest.advertised.host.name"] or options.web["host.name"] or address.host
    if host in ("0.0.0.0", "::", ""):
        host = _own_host(options.worker.bootstrap)
    return Identity(scheme, host, options["rest.advertised.port"] or address.port)


def _own_host(bootstrap: str) -> str:
    """Workers of a cluster on loopback are all on this machine."""
    hosts = [address.host for address in parse_addresses(bootstrap)]
    if all(host in ("localhost", "::1") or host.startswith("127.") for host in hosts):
        return LOOPBACK
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        log.warning("The name of this machine, %s, has no address: say rest.advertised.host.name", name)
    return name
