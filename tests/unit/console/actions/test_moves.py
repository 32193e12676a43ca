"""Moves that a console carries out: one at a time in a cluster, refused to who may not, and never forgotten."""

from __future__ import annotations

import asyncio
import threading

import pytest

from penstock.admin.moves.watching import Progress, Show
from penstock.client.errors import UserError
from penstock.console.access.roles import ADMIN, VIEWER
from penstock.console.actions.cluster import MIN_THROTTLE, Moves, Run
from penstock.console.context import Forbidden, PageContext
from penstock.model.ids import TopicPartition
from tests.unit.console.access.test_acting import context_of

ORDERS = TopicPartition("orders", 0)


async def over(run: Run | None) -> Run:
    assert run is not None
    async with asyncio.timeout(10):
        while not run.is_over:
            await asyncio.sleep(0.01)
    return run


def begin(moves: Moves, context: PageContext, work: object, *, what: str = "move it") -> None:
    moves._begin(context, what, work, throttle=None)  # type: ignore[arg-type]


def test_a_move_goes_on_without_the_page_and_tells_how_far_it_is() -> None:
    async def scenario() -> None:
        context, told, _ = context_of(ADMIN)
        moves, may_end = Moves(), threading.Event()

        def work(_: object, show: Show) -> int:
            show(Progress(3, 12, 2, 1000))
            may_end.wait(10)
            return 12

        begin(moves, context, work)
        run = moves.of("local")
        assert run is not None
        async with asyncio.timeout(10):
            while run.progress is None:
                await asyncio.sleep(0.01)
        assert (run.share, run.is_over) == (0.25, False)
        with pytest.raises(UserError, match="move it"):
            begin(moves, context, work, what="another")
        may_end.set()
        await over(run)
        assert (run.moved, run.share, run.error) == (12, 1.0, "")
        assert [entry["outcome"] for entry in told.entries] == ["done"]

    asyncio.run(scenario())


def test_why_a_move_failed_is_kept() -> None:
    async def scenario() -> None:
        context, told, _ = context_of(ADMIN)
        moves = Moves()

        def work(_: object, show: Show) -> int:
            raise UserError("broker 7 is not there")

        begin(moves, context, work)
        run = await over(moves.of("local"))
        assert run.error == "broker 7 is not there"
        assert [entry["outcome"] for entry in told.entries] == ["failed"]
        begin(moves, context, lambda _, show: 1)
        assert (await over(moves.of("local"))).moved == 1

    asyncio.run(scenario())


def test_a_move_that_is_cancelled_begins_nothing_more() -> None:
    async def scenario() -> None:
        context, _, _ = context_of(ADMIN)
        moves, may_go_on = Moves(), threading.Event()

        def work(_: object, show: Show) -> int:
            may_go_on.wait(10)
            show(Progress(1, 2, 1, 0))
            return 2

        begin(moves, context, work)
        run = moves.of("local")
        assert run is not None
        run.is_cancelled = True
        may_go_on.set()
        assert "cancelled" in (await over(run)).error

    asyncio.run(scenario())


def test_who_may_not_move_anything_begins_nothing() -> None:
    async def scenario() -> None:
        context, _, _ = context_of(VIEWER)
        moves = Moves()
        with pytest.raises(Forbidden):
            await moves.drain(context, 1, throttle=None)
        with pytest.raises(Forbidden):
            await moves.move(context, ORDERS, [1, 2], throttle=None)
        assert moves.of("local") is None

    asyncio.run(scenario())


def test_what_would_never_end_or_cannot_be_meant_is_refused() -> None:
    async def scenario() -> None:
        context, _, _ = context_of(ADMIN)
        moves = Moves()
        with pytest.raises(UserError, match=str(MIN_THROTTLE)):
            await moves.replace(context, 1, substitute=2, throttle=5)
        for brokers in ([], [1, 1]):
            with pytest.raises(UserError, match="each broker once"):
                await moves.move(context, ORDERS, brokers, throttle=None)
        assert moves.of("local") is None

    asyncio.run(scenario())
