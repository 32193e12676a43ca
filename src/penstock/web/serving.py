"""The one place where an HTTP service is started: sockets, TLS, the loop, the service's lifecycle, signals, the end.

The order: sockets are bound (a port that is taken is told at once), the lifecycle is entered, then connections are accepted and
the ready line is printed. At SIGTERM or SIGINT: no new connections, the requests that are being served get
`shutdown.graceful.ms`, then the lifecycle is left. A second signal does not wait for them.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from penstock.client.errors import BadOption, UserError, reason
from penstock.model.endpoints import Address
from penstock.security.tls_context import server_context
from penstock.web.frame import Frame
from penstock.web.metrics import WebMetrics
from penstock.web.options import Listen, WebOptions
from penstock.web.protocol import with_bounds
from penstock.web.service import Running, WebService

log = logging.getLogger("penstock.web")

BACKLOG: Final = 1024
MAX_MESSAGE_BYTES: Final = 1 << 20
"""Of what a client sends through a websocket."""


def serve(service: WebService, options: WebOptions, *, tell: Callable[[str], None]) -> int:
    """Until a signal; the exit code. `tell` gets the ready line. UserError for what the user can mend."""
    import uvloop

    if not options.listeners:
        raise BadOption("listeners: must name at least one")
    context = _tls(options) if any(one.scheme == "https" for one in options.listeners) else None
    if context is not None and service.has_http2:
        context.set_alpn_protocols(["h2", "http/1.1"])
    bound = [_bound(one) for one in options.listeners]
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_served(service, options, bound, context, tell))
    finally:
        for one, _ in bound:
            one.close()
    return 0


async def _served(
    service: WebService,
    options: WebOptions,
    bound: list[tuple[socket.socket, Listen]],
    context: ssl.SSLContext | None,
    tell: Callable[[str], None],
) -> None:
    metrics = WebMetrics(service.name)
    frame = Frame(service, options, metrics)
    running = Running(tuple(listen for _, listen in bound), metrics)
    servers = [
        _server(service, frame, options, context if listen.scheme == "https" else None) for _, listen in bound
    ]
    stop = asyncio.Event()
    signals = 0

    def stopped() -> None:
        nonlocal signals
        signals += 1
        stop.set()
        for server in servers:
            server.should_exit = True
            server.force_exit = signals > 1

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped)
    entering = asyncio.ensure_future(_lived(service, running, frame, servers, bound, tell))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((entering, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not entering.done() and not any(server.started for server in servers):
        entering.cancel()  # it was told to stop while it started
    try:
        await entering
    except asyncio.CancelledError:
        pass
    finally:
        frame.access_log.flush()


async def _lived(
    service: WebService,
    running: Running,
    frame: Frame,
    servers: list[uvicorn.Server],
    bound: list[tuple[socket.socket, Listen]],
    tell: Callable[[str], None],
) -> None:
    async with service.lifecycle(running):
        for server, (one, _) in zip(servers, bound, strict=True):
            server.lifespan = server.config.lifespan_class(server.config)
            await server.startup(sockets=[one])
            await server.on_tick(0)
        tell(f"penstock {service.name}: listening on {', '.join(map(str, running.listeners))}")
        await asyncio.gather(*(server.main_loop() for server in servers))
        await asyncio.gather(
            *(server.shutdown(sockets=[one]) for server, (one, _) in zip(servers, bound, strict=True))
        )


def _server(
    service: WebService, frame: Frame, options: WebOptions, context: ssl.SSLContext | None
) -> uvicorn.Server:
    timeout_s = options["idle.timeout.ms"] / 1000
    protocol: Any = with_bounds(
        max_connections=options["server.connection.limit"],
        max_header_bytes=options["max.request.header.size"],
        header_timeout_s=timeout_s,
        has_http2=service.has_http2,
    )
    sockets: Any = "none"
    if service.sockets or service.other_paths is not None:
        from penstock.web.sockets import SocketProtocol

        sockets = SocketProtocol
    config = uvicorn.Config(
        frame,
        http=protocol,
        ws=sockets,
        ws_max_size=MAX_MESSAGE_BYTES,
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=max(1, int(timeout_s)),
        timeout_graceful_shutdown=max(1, options["shutdown.graceful.ms"] // 1000),
    )
    config.load()
    config.ssl = context
    return uvicorn.Server(config)


def _tls(options: WebOptions) -> ssl.SSLContext:
    """As a broker's listener has it; only the option about clients has another name."""
    given = {name: value for name, value in options.given.items() if name.startswith("ssl.")}
    wanted = options["ssl.client.authentication"]
    if options["ssl.client.auth"].lower() == "true":
        wanted = "REQUIRED"
    given["ssl.client.auth"] = wanted.lower()
    try:
        return server_context(given)
    except ValueError as error:
        raise BadOption(str(error)) from None


def _bound(listen: Listen) -> tuple[socket.socket, Listen]:
    host, port = listen.address
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        raise UserError(f"cannot listen on {listen}: {reason(error)}") from None
    return found, Listen(listen.scheme, Address(host, found.getsockname()[1]))
