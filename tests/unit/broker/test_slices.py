import asyncio

from penstock.broker.requests.slices import GIVE_WAY_EVERY, in_slices


def test_many_answers_come_in_order_and_others_have_their_turn_in_between() -> None:
    async def double(number: int) -> int:
        return 2 * number

    async def run() -> tuple[list[int], int]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        answers = await in_slices(double, range(10 * GIVE_WAY_EVERY))
        task.cancel()
        return answers, turns

    answers, turns = asyncio.run(run())
    assert answers == [2 * number for number in range(10 * GIVE_WAY_EVERY)]
    assert turns >= 10
