"""Dispatch: what becomes of answers that are still being worked on when the broker stops."""

import asyncio
from typing import Any, cast

import pytest

from penstock.broker.dispatch import Dispatch


async def nothing() -> None:
    pass


@pytest.mark.timeout(20)
def test_draining_ends_although_an_answer_has_just_been_given() -> None:
    async def stop() -> None:
        dispatch = Dispatch(cast(Any, None))
        task = asyncio.get_running_loop().create_task(nothing())
        await task
        dispatch._tasks.add(task)  # done, but what takes it off the books has not had its turn
        asyncio.get_running_loop().call_soon(dispatch._tasks.discard, task)
        await dispatch.drain()
        assert not dispatch._tasks

    asyncio.run(stop())
