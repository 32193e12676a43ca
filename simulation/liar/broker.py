"""A broker that lies: a proxy before a real one that understands what passes through it.

It shows a cluster of several nodes, all of which lead to the one broker, and answers as such a cluster may at a bad moment: late,
not at all, with an error that passes, with less than there is, or with what was true before. What it never does is to say what no
correct cluster could: records are never changed, and what it refuses after the work can always be asked for again.

Requests of one connection are answered one after the other, as Kafka does it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from simulation.liar import lies as kinds
from simulation.liar.calls import Call, sized
from simulation.liar.lies import TRUTH, Lie, Lies, Plan
from simulation.liar.partitions import (
    FORMS,
    Leading,
    cut_records,
    hide_what_is_unsure,
    hold_records_back,
)
from simulation.liar.pretending import pretend, with_one_replica, without_leaders
from simulation.liar.refusals import AFTER, coordination, may_refuse, refusal
from simulation.liar.stage import HOST, Leadership, Post, Stage

NODES: Final = 3
TRACED_LINES: Final = 2000
SILENCE_S: Final = 3.0
MAX_FRAME_BYTES: Final = 64 << 20
CLOSE_TIMEOUT_S: Final = 10.0
_VACANT_S: Final = 0.15
_UNSURE_S: Final = 0.3
_FORGOTTEN_S: Final = 0.5
_OUTDATED_S: Final = 0.4
_DOWN_S: Final = 0.3


class _Cut(Exception):
    """The connection ends here."""


class LyingBroker:
    """Tells the truth until `begin`, and again when the plan's time is over or `tell_truth` is called."""

    def __init__(self, broker_port: int, *, nodes: int = NODES) -> None:
        self._broker_port = broker_port
        self._lies: Lies | None = None
        self._truth_at_s = 0.0
        self._began_s = time.monotonic()
        self._trace: deque[str] = deque(maxlen=TRACED_LINES)
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: dict[asyncio.StreamWriter, int] = {}  # → node
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="liar", daemon=True)
        self._thread.start()
        self._servers = [self._run(self._listen(number)) for number in range(1, nodes + 1)]
        self.stage: Final = Stage([server.sockets[0].getsockname()[1] for server in self._servers])

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.stage.ports.values())

    @property
    def is_lying(self) -> bool:
        return self._lies is not None and time.monotonic() < self._truth_at_s

    @property
    def told(self) -> Counter[str]:
        """How many lies of each kind."""
        return Counter() if self._lies is None else self._lies.told

    @property
    def trace(self) -> list[str]:
        return list(self._trace)

    def begin(self, plan: Plan) -> None:
        self._lies = Lies(plan)
        self._began_s = time.monotonic()
        self._truth_at_s = self._began_s + plan.lying_s

    def tell_truth(self) -> None:
        self._truth_at_s = 0.0
        self._loop.call_soon_threadsafe(self.stage.settle)

    def close(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_TIMEOUT_S)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CLOSE_TIMEOUT_S)

    # On the loop's thread.

    async def _listen(self, node_id: int) -> asyncio.Server:
        return await asyncio.start_server(
            lambda reader, writer: self._serve(node_id, reader, writer), HOST, 0, limit=MAX_FRAME_BYTES
        )

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in tuple(self._writers):
            writer.close()

    async def _serve(
        self, node_id: int, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        task: Any = asyncio.current_task()
        self._tasks.add(task)
        self._writers[to_client] = node_id
        to_broker: asyncio.StreamWriter | None = None
        try:
            if self.stage.is_down(node_id):
                return
            from_broker, to_broker = await asyncio.open_connection(
                HOST, self._broker_port, limit=MAX_FRAME_BYTES
            )
            behind = _Behind(from_broker, to_broker)
            while True:
                call = Call(await _frame(from_client))
                answer = await self._answer(node_id, call, behind)
                if answer:
                    to_client.write(answer)
                    await to_client.drain()
        except (_Cut, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # either side has gone, or we cut it
        finally:
            self._tasks.discard(task)
            self._writers.pop(to_client, None)
            to_client.close()
            if to_broker is not None:
                to_broker.close()

    async def _answer(self, node_id: int, call: Call, behind: _Behind) -> bytes:
        lie = self._lie(call)
        if self.stage.is_down(node_id):
            raise _Cut
        if delay_s := lie.delay_s:
            self._note(kinds.DELAY, node_id, call, f"{delay_s * 1000:.0f} ms")
            await asyncio.sleep(delay_s)
        if call.request is None:
            return sized(await behind.ask(call.frame))
        self._change_stage(node_id, call, lie)
        await self._fail_before(node_id, call, lie)
        if call.api_key in FORMS:
            return await self._lead(node_id, call, lie, behind)
        return await self._coordinate(node_id, call, lie, behind)

    def _lie(self, call: Call) -> Lie:
        if self._lies is None:
            return TRUTH
        if not self.is_lying:
            if self._truth_at_s:
                self._truth_at_s = 0.0
                self.stage.settle()
                self._line("the truth from here on")
            return TRUTH
        return self._lies.about(call.api_key, call.request)

    def _change_stage(self, node_id: int, call: Call, lie: Lie) -> None:
        chance = lie.chance
        if kinds.DOWN in lie:
            self._note(kinds.DOWN, node_id, call)
            self.stage.take_down(node_id, chance.uniform(0.05, _DOWN_S))
            for writer in [each for each, node in self._writers.items() if node == node_id]:
                writer.close()
            raise _Cut
        if kinds.MOVE in lie and (posts := _posts(call, self.stage)):
            post = chance.choice(posts)
            unsure_s = chance.uniform(0.0, _UNSURE_S) if chance.random() < 0.5 else 0.0
            steps = chance.randint(1, len(self.stage.ports))  # as many as there are: the same node again
            self.stage.move(post, steps=steps, vacant_s=chance.uniform(0.0, _VACANT_S), unsure_s=unsure_s)
            self._note(kinds.MOVE, node_id, call, f"{post} to {self.stage.holder(post).node_id}")
        if kinds.FREEZE in lie:
            self.stage.freeze(node_id, chance.uniform(0.05, _OUTDATED_S))
            self._note(kinds.FREEZE, node_id, call)
        if kinds.FORGET in lie and (topics := _topics(call, self.stage)):
            everybody = frozenset(self.stage.ports)
            nodes = everybody if chance.random() < 0.5 else frozenset({node_id})
            topic = chance.choice(topics)
            if self.stage.forget(topic, nodes, chance.uniform(0.05, _FORGOTTEN_S)):
                self._note(kinds.FORGET, node_id, call, f"{topic} by {sorted(nodes)}")

    async def _fail_before(self, node_id: int, call: Call, lie: Lie) -> None:
        if kinds.CUT_BEFORE in lie:
            self._note(kinds.CUT_BEFORE, node_id, call)
            raise _Cut
        if kinds.SILENCE in lie:
            self._note(kinds.SILENCE, node_id, call)
            await asyncio.sleep(SILENCE_S)
            raise _Cut
        if kinds.LATE in lie:
            self._note(kinds.LATE, node_id, call)
            task = asyncio.ensure_future(self._do_later(call, lie.chance.uniform(0.02, 0.4)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            raise _Cut

    async def _do_later(self, call: Call, delay_s: float) -> None:
        """What was on its way when the connection was cut: it arrives, perhaps after the client has asked again."""
        await asyncio.sleep(delay_s)
        try:
            from_broker, to_broker = await asyncio.open_connection(HOST, self._broker_port)
        except OSError:
            return
        try:
            await _Behind(from_broker, to_broker).ask(call.frame)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            to_broker.close()

    async def _lead(self, node_id: int, call: Call, lie: Lie, behind: _Behind) -> bytes:
        """Produce, Fetch, ListOffsets, OffsetForLeaderEpoch."""
        leading = Leading(call.request, call.version)
        leading.refuse_by_stage(self.stage, node_id)
        if leading.refused:
            self._line(f"node {node_id} {call.name}: {_told(leading)}")
        if kinds.REFUSE in lie:
            self._refuse_some(node_id, call, leading, lie, kinds.REFUSE)
        if leading.is_empty and leading.asked:
            return call.answered(leading.answer(None)) if call.wants_answer else b""
        frame = call.frame_of(leading.without_refused())
        if not call.wants_answer:
            await behind.tell(frame)
            return b""
        answer = call.read_answer(await behind.ask(frame))
        if kinds.CUT_AFTER in lie:
            self._note(kinds.CUT_AFTER, node_id, call)
            raise _Cut
        if call.api_key == ApiKey.FETCH:
            self._show_less(node_id, call, answer, leading, lie)
        if kinds.REFUSE_AFTER in lie:
            self._refuse_some(node_id, call, leading, lie, kinds.REFUSE_AFTER)
        return call.answered(leading.answer(answer))

    def _refuse_some(self, node_id: int, call: Call, leading: Leading, lie: Lie, kind: str) -> None:
        codes = AFTER[call.api_key] if kind == kinds.REFUSE_AFTER else may_refuse(call.request)
        served = [place for place in leading.asked if place not in leading.refused]
        if not served:
            return
        code = lie.chance.choice(codes)
        for place in lie.chance.sample(served, lie.chance.randint(1, len(served))):
            leading.refuse(place, code)
        self._note(kind, node_id, call, ErrorCode(code).name)

    def _show_less(self, node_id: int, call: Call, answer: Any, leading: Leading, lie: Lie) -> None:
        if hide_what_is_unsure(answer, leading.asked, self.stage):
            self._line(f"node {node_id} does not know its high watermark")
        if kinds.EMPTY in lie and hold_records_back(answer):
            self._note(kinds.EMPTY, node_id, call)
        if kinds.SHORTEN in lie and cut_records(answer, lie.chance):
            self._note(kinds.SHORTEN, node_id, call)

    async def _coordinate(self, node_id: int, call: Call, lie: Lie, behind: _Behind) -> bytes:
        """Everything else: as a whole it is done or not."""
        request = call.request
        assert request is not None
        post = coordination(request)
        if post is not None and not self.stage.serves(node_id, post):
            self._line(f"node {node_id} {call.name}: not the coordinator of {post.key}")
            return call.answered(refusal(request, ErrorCode.NOT_COORDINATOR, call.version))
        is_metadata = call.api_key == ApiKey.METADATA
        if kinds.REFUSE in lie and not is_metadata:
            return self._refused(node_id, call, lie, kinds.REFUSE)
        is_changed = with_one_replica(request)
        frame = await behind.ask(call.frame_of(request) if is_changed else call.frame)
        if kinds.CUT_AFTER in lie:
            self._note(kinds.CUT_AFTER, node_id, call)
            raise _Cut
        if kinds.REFUSE_AFTER in lie:
            return self._refused(node_id, call, lie, kinds.REFUSE_AFTER)
        if call.api_key not in (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER):
            return sized(frame)
        answer = call.read_answer(frame)
        pretend(self.stage, node_id, request, answer)
        if kinds.REFUSE in lie and is_metadata:
            without_leaders(answer)
            self._note(kinds.REFUSE, node_id, call)
        return call.answered(answer)

    def _refused(self, node_id: int, call: Call, lie: Lie, kind: str) -> bytes:
        codes = AFTER[call.api_key] if kind == kinds.REFUSE_AFTER else may_refuse(call.request)
        code = lie.chance.choice(codes)
        self._note(kind, node_id, call, ErrorCode(code).name)
        return call.answered(refusal(call.request, code, call.version))

    def _note(self, kind: str, node_id: int, call: Call, more: str = "") -> None:
        assert self._lies is not None
        self._lies.note(kind)
        self._line(f"node {node_id} {call.name}: {kind} {more}")

    def _line(self, text: str) -> None:
        self._trace.append(f"{time.monotonic() - self._began_s:7.3f} {text.rstrip()}")


class _Behind:
    """The real broker, as one connection knows it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def tell(self, frame: bytes) -> None:
        self._writer.write(sized(frame))
        await self._writer.drain()

    async def ask(self, frame: bytes) -> bytes:
        await self.tell(frame)
        return await _frame(self._reader)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
    if not 0 <= size <= MAX_FRAME_BYTES:
        raise _Cut
    return await reader.readexactly(size)


def _posts(call: Call, stage: Stage) -> list[Post]:
    if call.api_key in FORMS:
        asked = Leading(call.request, call.version).asked
        return [Leadership(stage.name(topic), partition) for topic, partition in asked]
    post = coordination(call.request)
    return [] if post is None else [post]


def _topics(call: Call, stage: Stage) -> list[str]:
    if call.api_key in FORMS:
        return sorted({stage.name(topic) for topic, _ in Leading(call.request, call.version).asked})
    assert call.request is not None
    return [topic.name for topic in call.request.topics or () if topic.name]


def _told(leading: Leading) -> str:
    return ", ".join(
        f"{partition} {ErrorCode(code).name}" for (_, partition), code in leading.refused.items()
    )
