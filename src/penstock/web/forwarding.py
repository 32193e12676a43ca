"""A write that another instance must make: the request goes to the leader as it came, and its answer comes back.

Blocking HTTP in a few threads; X-Forward says that it has been passed on once, so that it does not go round in circles.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from penstock.client.group_identity import Identity
from penstock.client.security import security_of
from penstock.web.call import Call

FORWARDED: Final = "X-Forward"
THREADS: Final = 32
MAX_ANSWER_BYTES: Final = 64 << 20
_PASSED_ON: Final = ("accept", "content-type", "authorization")


class LeaderAway(Exception):
    """The leader could not be asked. `was_sent`: it may have got the request, and done it."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


class Forwarded(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class Forwarding:
    def __init__(
        self,
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
        user_info: str,
        ssl_properties: Mapping[str, str],
        passed_on: Iterable[str] = (),
    ) -> None:
        """`passed_on`: headers of the service's own, in small letters."""
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._login = f"Basic {base64.b64encode(user_info.encode()).decode()}" if user_info else ""
        self._ssl_properties = dict(ssl_properties)
        self._passed_on = (*_PASSED_ON, *passed_on)
        self._context: ssl.SSLContext | None = None
        self._pool = ThreadPoolExecutor(THREADS, "penstock-forwarding")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def ask(
        self, leader: Identity, call: Call, body: bytes, *, is_replaced: Callable[[], Awaitable[None]]
    ) -> Forwarded:
        """LeaderAway, also when `is_replaced` returns first: a leader that hangs holds up nobody for long."""
        headers = {name: text for name in self._passed_on if (text := call.header(name))}
        headers |= {FORWARDED: "true", "X-Request-Id": call.request_id}
        if self._login:
            headers["Authorization"] = self._login
        connection = self._connection(leader)
        asked = asyncio.get_running_loop().run_in_executor(
            self._pool, self._asked, connection, leader, call.method, call.target, headers, body
        )
        replaced = asyncio.ensure_future(is_replaced())
        try:
            await asyncio.wait((asked, replaced), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                _interrupt(connection)
            return await asked
        finally:
            replaced.cancel()
            if not asked.done():
                _interrupt(connection)
                asked.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    def _asked(
        self,
        connection: http.client.HTTPConnection,
        leader: Identity,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> Forwarded:
        was_sent = False
        try:
            connection.connect()
            connection.sock.settimeout(self._read_timeout_s)
            was_sent = True
            connection.request(method, target, body=body or None, headers=dict(headers))
            answer = connection.getresponse()
            data = answer.read(MAX_ANSWER_BYTES)
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Forwarded(answer.status, found, data)
        except (OSError, http.client.HTTPException) as error:
            words = (
                "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
            )
            raise LeaderAway(f"{leader.url}: {words}", was_sent=was_sent) from None
        finally:
            connection.close()

    def _connection(self, leader: Identity) -> http.client.HTTPConnection:
        if leader.scheme != "https":
            return http.client.HTTPConnection(leader.host, leader.port, timeout=self._connect_timeout_s)
        if self._context is None:
            stores = {name: text for name, text in self._ssl_properties.items() if name.startswith("ssl.")}
            self._context = security_of({"security.protocol": "SSL", **stores}).tls_context
        return http.client.HTTPSConnection(
            leader.host, leader.port, timeout=self._connect_timeout_s, context=self._context
        )


def _interrupt(connection: http.client.HTTPConnection) -> None:
    """The thread that waits for an answer gets an error."""
    try:
        if connection.sock is not None:
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
    except OSError:
        pass
