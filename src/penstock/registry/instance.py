"""One instance: its state, which the topic feeds, whether it leads, and the writes that it makes as the leader.

Everything here belongs to the event loop's thread; the threads of the topic and the group hand over what they learn. One write
is decided and read back before the next is decided, so that each decision sees all earlier ones. What takes long has been done
before a write comes here.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from penstock.client.clients import Connection
from penstock.client.errors import Refused, Unreachable, UserError
from penstock.client.group_identity import Identity
from penstock.client.group_leadership import GroupOptions, Leadership
from penstock.client.options import ClientOptions
from penstock.registry import records, terms
from penstock.registry.decisions.decision import Decision
from penstock.registry.log.following import Following
from penstock.registry.log.writing import ReadBack, WriteFailed, Writer
from penstock.registry.records import Read, Record
from penstock.registry.refusals import STORE_ERROR, TIMEOUT, Refusal, too_large
from penstock.registry.state import State
from penstock.registry.terms import Term

T = TypeVar("T")

log = logging.getLogger("penstock.registry")

STOP_TIMEOUT_S: Final = 5.0
HANDOVER_S: Final = 0.5


class InstanceOptions(NamedTuple):
    topic: str
    group: GroupOptions
    timeout_ms: int


class NotLeader(Exception):
    """Another instance has become the leader: it shall be asked."""


class Instance:
    def __init__(
        self, connection: Connection, client: ClientOptions, me: Identity, options: InstanceOptions
    ) -> None:
        self.me = me
        self.state = State()
        self.leader: Identity | None = None
        self.leads = False
        self.loaded = asyncio.Event()
        self._connection = connection
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._fresh: State | None = None
        """Being read, in the thread, before it takes the place of `state`."""
        self._leader_changed = asyncio.Event()
        self._write_lock = asyncio.Lock()
        self._writer: Writer | None = None
        self._has_term = False
        self._read_back = ReadBack()
        self._offset_waits: list[tuple[int, asyncio.Future[None]]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closed = False
        self._following = Following(
            client, options.topic, begin=self._begin, apply=self._apply, caught_up=self._caught_up
        )
        self._leadership = Leadership(connection, me, options.group, self._told_leader)

    def start(self) -> None:
        self._following.start()

    def take_part(self) -> None:
        """From now on it may lead."""
        self._leadership.start()

    async def stop(self) -> None:
        self._is_closed = True
        self._drop_term("the registry stops")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(
            asyncio.to_thread(self._leadership.stop, STOP_TIMEOUT_S),
            asyncio.to_thread(self._following.stop, STOP_TIMEOUT_S),
        )

    @property
    def problem(self) -> str | None:
        return self._following.problem

    # What the thread of the topic calls.

    def _begin(self) -> None:
        self._fresh = State()

    def _apply(self, chunk: Sequence[Read], next_offset: int) -> None:
        if self._fresh is not None:
            for record in chunk:
                self._fresh.replay(record)
            self._fresh.next_offset = next_offset
        else:
            self._on_loop(lambda: self._applied(chunk, next_offset))

    def _caught_up(self) -> None:
        self._on_loop(self._swapped)

    def _on_loop(self, call: Callable[[], None]) -> None:
        """Waits until it is done, so that a thread is never far ahead of the loop."""
        done: concurrent.futures.Future[None] = concurrent.futures.Future()

        def run() -> None:
            try:
                call()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        try:
            self._loop.call_soon_threadsafe(run)
        except RuntimeError:  # the loop has ended
            return
        while not self._is_closed:
            try:
                done.result(HANDOVER_S)
            except concurrent.futures.TimeoutError:
                continue
            break

    # On the loop.

    def _swapped(self) -> None:
        assert self._fresh is not None
        self._drop_term("the topic was read again")
        self.state, self._fresh = self._fresh, None
        log.info(
            "Read %s up to offset %d: %d subjects",
            self._options.topic,
            self.state.next_offset,
            len(self.state.subjects),
        )
        if self.state.passed_over:
            log.warning("%d records were not understood, and are left alone", self.state.passed_over)
        self.loaded.set()
        self._wake_offset_waits()

    def _applied(self, chunk: Sequence[Read], next_offset: int) -> None:
        state = self.state
        for record in chunk:
            counts = state.replay(record)
            if record.term is not None and self._writer is not None:
                parsed = terms.parse(record.term)
                if parsed is not None and parsed[0] == self._writer.term:
                    self._read_back.seen(parsed[1], counts)
        state.next_offset = next_offset
        if self._has_term and self._writer is not None and state.term != self._writer.term:
            self._drop_term("another instance leads")
        if state.overwritten and self._has_term:
            self._spawn(self._repair())
        self._wake_offset_waits()

    def _wake_offset_waits(self) -> None:
        if self._offset_waits:
            reached = self.state.next_offset
            for offset, future in self._offset_waits:
                if offset <= reached and not future.done():
                    future.set_result(None)
            self._offset_waits = [one for one in self._offset_waits if not one[1].done()]

    async def reach(self, offset: int, timeout_s: float) -> None:
        """Until everything before the offset has been read, or the time is over."""
        if self.state.next_offset >= offset:
            return
        future: asyncio.Future[None] = self._loop.create_future()
        self._offset_waits.append((offset, future))
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            pass

    def _told_leader(self, leader: Identity | None, is_me: bool) -> None:
        try:
            self._loop.call_soon_threadsafe(self._led_by, leader, is_me)
        except RuntimeError:
            pass

    def _led_by(self, leader: Identity | None, is_me: bool) -> None:
        self.leader, self.leads = leader, is_me and not self._is_closed
        if not self.leads:
            self._drop_term("another instance leads")
        else:
            self._spawn(self._begin_term())
        changed, self._leader_changed = self._leader_changed, asyncio.Event()
        changed.set()

    async def leader_change(self, timeout_s: float) -> None:
        """Until another leader is told, or the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._leader_changed.wait()
        except TimeoutError:
            pass

    def _spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits for the task gets it

    # Writing.

    async def commit(self, decide: Callable[[State], Decision]) -> Any:
        """The answer of a decision, when its records have been read back. NotLeader; Refusal."""
        return await asyncio.shield(
            self._spawn(self._commit(decide))
        )  # a client that goes away interrupts no write

    async def _commit(self, decide: Callable[[State], Decision]) -> Any:
        async with self._write_lock:
            await self._own_term()
            decision = decide(self.state)
            if decision.records:
                await self._write(decision.records)
            return decision.answer

    async def _begin_term(self) -> None:
        try:
            async with self._write_lock:
                await self._own_term()
        except (NotLeader, Refusal) as error:
            log.warning("Leading has not begun: %s", str(error) or "another instance leads")

    async def _own_term(self) -> None:
        if self._has_term:
            return
        if not self.leads or not self.loaded.is_set():
            raise NotLeader
        term = Term(self.state.term.number + 1, os.urandom(6).hex())
        try:
            self._writer = await asyncio.to_thread(
                Writer,
                self._connection,
                self._options.topic,
                term,
                timeout_ms=self._options.timeout_ms,
                failed=partial(self._write_failed, self._read_back),
            )
        except (Unreachable, Refused, UserError) as error:
            raise Refusal(STORE_ERROR, f"Error while beginning to write to the topic: {error}") from None
        await self._write((records.noop(self.state.max_ids),))
        self._has_term = True
        log.info("Leading, term %d", term.number)
        await self._write_what_counts()

    async def _repair(self) -> None:
        try:
            async with self._write_lock:
                if self._has_term:
                    await self._write_what_counts()
        except (NotLeader, Refusal) as error:
            log.warning("Late records are not undone yet: %s", str(error) or "another instance leads")

    async def _write_what_counts(self) -> None:
        late = list(self.state.overwritten)
        if late:
            log.warning("%d late records of a former leader are undone", len(late))
            await self._write([Record(key, self.state.value_that_counts(key)) for key in late])

    async def _write(self, written: Sequence[Record]) -> None:
        """Until all have been read back. What fails ends the term: a record on its way counts no more when the next begins."""
        writer = self._writer
        if writer is None:
            raise NotLeader
        waits = []
        try:
            for record in written:
                number = writer.next_number()
                waits.append(self._read_back.expect(number))
                writer.send(number, record)
            async with asyncio.timeout(self._options.timeout_ms / 1000):
                counted = await asyncio.gather(*waits)
        except WriteFailed as error:
            self._drop_term(str(error))
            if error.is_too_large:
                raise too_large() from None
            raise Refusal(STORE_ERROR, f"Error while writing to the topic: {error}") from None
        except TimeoutError:
            self._drop_term("a record has not been read back in time")
            raise Refusal(TIMEOUT, "Write to the topic timed out.") from None
        except BaseException:
            self._drop_term("a write was given up")
            raise
        finally:
            for wait in waits:
                if not wait.cancel() and not wait.cancelled():
                    wait.exception()
        if not all(counted):
            self._drop_term("another instance leads")
            raise NotLeader

    def _write_failed(self, waits: ReadBack, number: int, failure: WriteFailed) -> None:
        try:
            self._loop.call_soon_threadsafe(waits.fail, number, failure)
        except RuntimeError:
            pass

    def _drop_term(self, why: str) -> None:
        if self._writer is not None:
            log.info("Term %d ends: %s", self._writer.term.number, why)
            self._writer.close()
        self._writer, self._has_term = None, False
        self._read_back.fail_all(NotLeader())
        self._read_back = ReadBack()
