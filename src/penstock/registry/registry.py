"""What the routes share: the instance, the parser, who may do what; and how a write finds its leader."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from penstock.registry.access import Access
from penstock.registry.decisions.decision import Decision
from penstock.registry.instance import Instance, NotLeader
from penstock.registry.options import RegistryOptions
from penstock.registry.parsed import ParsedSchemas
from penstock.registry.refusals import FORWARDING_FAILED, NO_LEADER, Refusal, unknown_leader
from penstock.registry.scope import config_in_scope
from penstock.registry.state import State
from penstock.web.call import Answer, Call
from penstock.web.forwarding import FORWARDED, Forwarded, Forwarding, LeaderAway

LEADER_POLL_S: Final = 0.25
OFFSET: Final = "X-Penstock-Offset"


class Registry:
    def __init__(self, options: RegistryOptions, access: Access) -> None:
        self.options = options
        self.access = access
        self.cluster_id = ""
        self.instance: Instance
        self.parsed: ParsedSchemas
        self.forwarding: Forwarding
        self._subject_locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @property
    def state(self) -> State:
        return self.instance.state

    def config(self, subject: str | None) -> dict[str, Any]:
        """In scope."""
        return config_in_scope(self.state, subject, self.options.level)

    async def write(self, call: Call, decide: Callable[[State], Decision], body: bytes = b"") -> Answer:
        """The answer of what was decided on the state, here or at the leader."""

        async def attempt() -> Answer:
            return Answer.json(await self.instance.commit(decide))

        return await self.at_leader(call, body, attempt)

    async def at_leader(self, call: Call, body: bytes, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
        """A leader that is just being found is waited for; one that goes away meanwhile is followed by the next."""
        deadline_s = time.monotonic() + self.options["kafkastore.timeout.ms"] / 1000
        is_forwarded = call.header(FORWARDED).lower() == "true"
        failure = unknown_leader()
        while True:
            instance = self.instance
            if instance.leads:
                try:
                    answer = await attempt()
                except NotLeader:
                    failure = unknown_leader()
                else:
                    answer.headers = {**(answer.headers or {}), OFFSET: str(instance.state.next_offset)}
                    return answer
            elif instance.leader is not None and not is_forwarded:
                try:
                    found = await self._passed_on(call, body)
                except LeaderAway as error:
                    failure = Refusal(
                        FORWARDING_FAILED, f"Error while forwarding the request to the leader: {error}"
                    )
                    if error.was_sent and call.method == "DELETE":
                        raise failure from None  # it may have been done; a second one would be told that it is gone
                else:
                    if found is not None:
                        return found
                    failure = unknown_leader()
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or is_forwarded:
                raise failure
            await instance.leader_change(min(LEADER_POLL_S, left_s))

    async def _passed_on(self, call: Call, body: bytes) -> Answer | None:
        """None: the other instance does not lead."""
        leader = self.instance.leader
        assert leader is not None

        async def is_replaced() -> None:
            while self.instance.leader is None or leader.is_same(self.instance.leader):
                await self.instance.leader_change(self.options["leader.read.timeout.ms"] / 1000)

        found = await self.forwarding.ask(leader, call, body, is_replaced=is_replaced)
        if found.status == NO_LEADER // 100 and _code(found.body) == NO_LEADER:
            return None
        await self.instance.reach(_offset(found), self.options["kafkastore.timeout.ms"] / 1000)
        return Answer(found.body, status=found.status, content_type=found.headers.get("content-type") or None)

    def subject_lock(self, subject: str) -> _SubjectLock:
        return _SubjectLock(self._subject_locks, subject)


class _SubjectLock:
    """Registrations of one subject wait for one another: each is compared with the one before."""

    def __init__(self, locks: dict[str, tuple[asyncio.Lock, int]], subject: str) -> None:
        self._locks = locks
        self._subject = subject

    async def __aenter__(self) -> None:
        lock, users = self._locks.get(self._subject) or (asyncio.Lock(), 0)
        self._locks[self._subject] = (lock, users + 1)
        try:
            await lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *error: object) -> None:
        self._locks[self._subject][0].release()
        self._leave()

    def _leave(self) -> None:
        lock, users = self._locks[self._subject]
        if users == 1:
            del self._locks[self._subject]
        else:
            self._locks[self._subject] = (lock, users - 1)


def _offset(found: Forwarded) -> int:
    text = found.headers.get(OFFSET.lower(), "")
    return int(text) if text.isdigit() else 0


def _code(body: bytes) -> int:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return 0
    return found.get("error_code", 0) if isinstance(found, dict) else 0
