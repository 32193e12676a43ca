"""Other proxies, for requests about consumer instances that live there.

A load balancer sends a request anywhere. A proxy that does not have the instance passes the request on: to the peer that the
instance's name names, or else to each in turn, until one has it. What was passed on once is not passed on again. Only addresses
of the configuration are asked, and the caller's login goes with the request, so they must be proxies of one's own.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from penstock.client.errors import BadOption
from penstock.web.call import Answer, Call
from penstock.web.options import Listen, parse_listener

OPTION: Final = "penstock.rest.peers"
PASSED_ON: Final = "X-Penstock-Passed-On"
TIMEOUT_S: Final = 90.0
THREADS: Final = 64
MAX_ANSWER_BYTES: Final = 256 << 20
_HEADERS: Final = ("accept", "authorization", "content-type", "x-request-id", "host")
_KEPT: Final = ("WWW-Authenticate",)
_NOT_FOUND: Final = b'"error_code":40403'


class _Passed(NamedTuple):
    method: str
    target: str
    body: bytes
    headers: dict[str, str]


class Peers:
    """`given`: `ID=http://HOST:PORT` for each. BadOption."""

    def __init__(self, given: list[str], own_id: str) -> None:
        self._by_id: dict[str, Listen] = {}
        for word in given:
            name, _, address = word.partition("=")
            try:
                where = parse_listener(address)
            except BadOption:
                raise BadOption(f"{OPTION}: '{word}' is not ID=http://HOST:PORT") from None
            if name != own_id:
                self._by_id[name] = where
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="rest-peer") if self._by_id else None

    def may_have(self, call: Call) -> bool:
        return self._threads is not None and not call.header(PASSED_ON)

    async def ask(self, call: Call, instance: str) -> Answer | None:
        """The answer of the proxy that has the instance; None where none has it, or can be reached."""
        assert self._threads is not None
        headers = {name: value for name in _HEADERS if (value := call.header(name))}
        passed = _Passed(call.method, call.target, await call.body(), {**headers, PASSED_ON: "1"})
        loop = asyncio.get_running_loop()
        for where in self._in_order(instance):
            found = await loop.run_in_executor(self._threads, _asked, where, passed)
            if found is not None:
                return found
        return None

    def _in_order(self, instance: str) -> list[Listen]:
        """The one that is named first."""
        names = sorted(self._by_id, key=lambda name: not instance.startswith(f"rest-consumer-{name}-"))
        return [self._by_id[name] for name in names]

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _asked(where: Listen, passed: _Passed) -> Answer | None:
    """None where it has no such instance, or does not answer."""
    host, port = where.address
    connection: http.client.HTTPConnection
    if where.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request(passed.method, passed.target, body=passed.body or None, headers=passed.headers)
        answer = connection.getresponse()
        body = answer.read(MAX_ANSWER_BYTES)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    if answer.status == http.client.NOT_FOUND and _NOT_FOUND in body:
        return None
    return Answer(
        body,
        status=answer.status,
        content_type=answer.getheader("content-type"),
        headers={name: value for name in _KEPT if (value := answer.getheader(name)) is not None},
    )
