"""Lookups on the event loop wait for what was committed before they came, and share the question."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.client.errors import UserError
from penstock.sql.engine.catching_up import CatchingUp, Closed
from penstock.sql.engine.pulling import answer_at_once
from penstock.sql.engine.results import Header
from penstock.sql.engine.sessions import Session
from penstock.streams.kernel.records import Row
from penstock.streams.plan.schema import Schema

DEADLINE_S = 20.0


class Questions:
    """Each is answered when the test lets it be."""

    def __init__(self) -> None:
        self.asked = 0
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.failure: Exception | None = None

    def __call__(self) -> None:
        self.asked += 1
        self.begun.release()
        assert self.may_end.acquire(timeout=DEADLINE_S)
        if self.failure is not None:
            raise self.failure


async def begun(questions: Questions) -> None:
    assert await asyncio.to_thread(questions.begun.acquire, True, DEADLINE_S)


def test_who_comes_during_a_question_waits_for_the_next_one() -> None:
    questions = Questions()
    catching_up = CatchingUp("test", questions)

    async def run() -> None:
        first = catching_up.caught_up()
        await begun(questions)
        late = [catching_up.caught_up() for _ in range(5)]
        late[0].cancel()  # its client has left
        questions.may_end.release()
        async with asyncio.timeout(DEADLINE_S):
            await first
            await begun(questions)
            assert not any(each.done() for each in late[1:])
            questions.may_end.release()
            await asyncio.gather(*late[1:])
        assert questions.asked == 2

    asyncio.run(run())
    catching_up.close()


def test_a_question_that_fails_is_told_to_all_who_waited() -> None:
    questions = Questions()
    catching_up = CatchingUp("test", questions)

    async def run() -> None:
        waiters = [catching_up.caught_up() for _ in range(3)]
        questions.failure = UserError("no broker answers")
        questions.may_end.release(3)
        async with asyncio.timeout(DEADLINE_S):
            found = await asyncio.gather(*waiters, return_exceptions=True)
        assert [str(each) for each in found] == ["no broker answers"] * 3
        catching_up.close()
        with pytest.raises(Closed):
            await catching_up.caught_up()

    asyncio.run(run())


def test_a_lookup_is_answered_on_the_loop_where_its_view_is_there() -> None:
    row = Row(("a",), (1,), 0, None, None, (), 0, 0)
    waited: list[str] = []

    def caught_up() -> Any:
        waited.append(threading.current_thread().name)
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    view: Any = SimpleNamespace(
        catching_up=SimpleNamespace(caught_up=caught_up), windows=lambda key: [row] if key == ("a",) else []
    )
    lookup = SimpleNamespace(
        source=SimpleNamespace(name="T"), limit=None, project=lambda row: row.value,
        header=lambda query_id: Header(query_id, Schema((), ())),
    )  # fmt: skip
    engine: Any = SimpleNamespace(
        quick_lookups=SimpleNamespace(find=lambda *_: (lookup, ("a",))), views=SimpleNamespace(ready=lambda _: view),
        options={"ksql.query.push.buffer.rows": 10}, transient_id=lambda name: name, state=None,
        callers=SimpleNamespace(passes_on=False),
    )  # fmt: skip

    results = asyncio.run(answer_at_once(engine, "", Session()))
    assert results is not None
    assert results.whole() == [((1,), False)]
    assert waited == [threading.current_thread().name]
    engine.views.ready = lambda _: None
    assert asyncio.run(answer_at_once(engine, "", Session())) is None
