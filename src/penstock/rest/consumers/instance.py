"""A consumer instance: a member of a group, its thread, and the requests that wait for it."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from penstock.client.clients import Connection
from penstock.rest import errors
from penstock.rest.consumers.member import Member

T = TypeVar("T")
log = logging.getLogger("penstock.rest")

TICK_S: Final = 0.5
MAX_WAITING: Final = 32
"""Requests that wait for one instance; one more is refused."""


class InstanceConfig(NamedTuple):
    format: str
    settings: dict[str, str]
    """For librdkafka, by Kafka's names."""
    timeout_ms: int
    min_bytes: int


class _Work(NamedTuple):
    run: Callable[[Member], object]
    answer: asyncio.Future[object]


class Instance:
    """`call` is for the loop's thread; all the rest happens in the instance's own."""

    def __init__(
        self,
        group: str,
        name: str,
        config: InstanceConfig,
        connection: Callable[[], Connection],
        owner: bytes | str,
    ) -> None:
        self.group, self.name, self.config, self.owner = group, name, config, owner
        self.used_s = time.monotonic()
        self.in_use = 0
        self.is_ending = False
        self._connect = connection
        self._loop = asyncio.get_running_loop()
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self.started: asyncio.Future[None] = self._loop.create_future()
        self.ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="rest-consumer", daemon=True)

    async def start(self) -> None:
        """Unreachable and UserError where there can be no client."""
        self._thread.start()
        await asyncio.shield(self.started)

    async def call(self, run: Callable[[Member], T]) -> T:
        """In the thread, after what others have asked for."""
        if self.is_ending:
            raise errors.instance_not_found()
        if self.in_use >= MAX_WAITING:
            raise errors.illegal_state("Too many requests wait for this consumer instance.")
        answer: asyncio.Future[object] = self._loop.create_future()
        self.in_use += 1
        try:
            self._work.put(_Work(run, answer))
            return await answer  # type: ignore[return-value]
        finally:
            self.in_use -= 1
            self.used_s = time.monotonic()

    def is_over(self) -> bool:
        return self.is_ending

    def end(self) -> None:
        """A read that waits ends at once; then the member leaves the group."""
        self.is_ending = True
        self._work.put(None)

    def _run(self) -> None:
        try:
            member = Member(self._connect(), {"client.id": self.name, **self.config.settings})
        except Exception as error:
            self._tell(self.started, error)
            self._loop.call_soon_threadsafe(self.ended.set)
            return
        self._tell(self.started, None)
        try:
            self._serve(member)
        finally:
            try:
                member.close()
            except Exception:
                log.exception("A consumer instance of group %s was not closed", self.group)
            self._call_soon(self.ended.set)

    def _serve(self, member: Member) -> None:
        while True:
            try:
                work = self._work.get(timeout=TICK_S)
            except queue.Empty:
                try:
                    member.tick()
                except Exception:
                    log.exception("A consumer instance of group %s", self.group)
                continue
            if work is None:
                break
            if work.answer.cancelled():
                continue
            try:
                found = work.run(member)
            except Exception as error:
                self._tell(work.answer, error)
            else:
                self._tell(work.answer, None, found)
        while True:  # what came too late
            try:
                work = self._work.get_nowait()
            except queue.Empty:
                return
            if work is not None:
                self._tell(work.answer, errors.instance_not_found())

    def _tell(self, answer: asyncio.Future[T], error: Exception | None, found: object = None) -> None:
        def tell() -> None:
            if not answer.done():
                if error is not None:
                    answer.set_exception(error)
                else:
                    answer.set_result(found)  # type: ignore[arg-type]

        self._call_soon(tell)

    def _call_soon(self, call: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more
