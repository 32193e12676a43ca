"""How routes ask the herder: in threads of their own where it may take time, and at the leader where only it can do it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import orjson

from penstock.connect.running.herder import Herder
from penstock.connect.running.refusals import NotLeader, Refusal
from penstock.connect.running.worker import Worker
from penstock.web.call import Answer, Call
from penstock.web.errors import HttpError
from penstock.web.forwarding import FORWARDED, Forwarding, LeaderAway

T = TypeVar("T")
THREADS: Final = 64
LEADER_S: Final = 20.0
POLL_S: Final = 0.1
NO_LEADER: Final = 50301
"""Told only between workers: the one that was asked does not lead."""
_LOST: Final = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
)


class Asking:
    def __init__(self) -> None:
        self.worker: Worker
        self.forwarding: Forwarding
        self._pool = ThreadPoolExecutor(THREADS, "penstock-connect-rest")
        self._leader_changed = asyncio.Event()

    @property
    def herder(self) -> Herder:
        return self.worker.herder

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def leader_changed(self) -> None:
        changed, self._leader_changed = self._leader_changed, asyncio.Event()
        changed.set()

    def now(self, ask: Callable[[Herder], T]) -> T:
        """What is in memory: told even while all threads wait for a cluster that does not answer."""
        return ask(self.herder)

    async def here(self, ask: Callable[[Herder], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, ask, self.herder)

    async def at_leader(self, call: Call, ask: Callable[[Herder], Answer], body: bytes = b"") -> Answer:
        """A leader that is just being found is waited for."""
        deadline_s = time.monotonic() + LEADER_S
        is_forwarded = call.header(FORWARDED).lower() == "true"
        while True:
            leading = self.worker.leading
            try:
                if leading.leads:
                    return await self.here(ask)
            except NotLeader:
                pass
            leader = leading.leader
            if (
                leader is not None
                and not leading.leads
                and not leader.is_same(leading.me)
                and not is_forwarded
            ):
                found = await self._passed_on(call, body)
                if found is not None:
                    return found
            left_s = deadline_s - time.monotonic()
            if is_forwarded and not leading.leads and (leader is None or not leader.is_same(leading.me)):
                raise HttpError(503, _LOST, error_code=NO_LEADER)
            if left_s <= 0:
                raise Refusal(409, _LOST)
            await self._wait(min(POLL_S, left_s))

    async def _wait(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._leader_changed.wait()
        except TimeoutError:
            pass

    async def _passed_on(self, call: Call, body: bytes) -> Answer | None:
        """None: it is to be asked again, of whoever leads then."""
        leading = self.worker.leading
        leader = leading.leader
        assert leader is not None

        async def is_replaced() -> None:
            while leader.is_same(leading.leader):
                await self._wait(1.0)

        try:
            found = await self.forwarding.ask(leader, call, body, is_replaced=is_replaced)
        except LeaderAway as error:
            if error.was_sent and call.method in ("POST", "DELETE"):
                # It may have been done: a second one would be told that it is there already, or gone.
                raise Refusal(500, f"IO Error trying to forward REST request: {error}") from None
            return None
        if found.status == 503 and _code(found.body) == NO_LEADER:
            return None
        return Answer(
            found.body,
            status=found.status,
            content_type=found.headers.get("content-type") or None,
            headers={"Location": found.headers["location"]} if "location" in found.headers else None,
        )


def _code(body: bytes) -> Any:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return found.get("error_code") if isinstance(found, dict) else None
