"""What becomes of answers that are still being worked on when the broker stops."""

import asyncio

import pytest

from penstock.broker.requests.answers import Answers


async def nothing() -> None:
    pass


@pytest.mark.timeout(20)
def test_draining_ends_although_an_answer_has_just_been_given() -> None:
    async def stop() -> None:
        answers = Answers()
        task = asyncio.get_running_loop().create_task(nothing())
        await task
        answers._tasks.add(task)  # done, but what takes it off the books has not had its turn
        asyncio.get_running_loop().call_soon(answers._tasks.discard, task)
        await answers.drain()
        assert not answers._tasks

    asyncio.run(stop())


def test_draining_waits_for_an_answer_that_takes_its_time() -> None:
    async def stop() -> bool:
        answers = Answers()
        is_given = False

        async def give() -> None:
            nonlocal is_given
            await asyncio.sleep(0.01)
            is_given = True

        answers.begin(give())
        await answers.drain()
        return is_given

    assert asyncio.run(stop())
