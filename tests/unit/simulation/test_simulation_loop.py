"""Virtual time and order."""

import asyncio

import pytest

from simulation.seeds import loop as loops
from simulation.seeds.loop import Schedule, Stuck


def run(main, seed=1):
    schedule = Schedule(seed)
    try:
        return schedule.run(main(schedule), schedule.new_loop("main"))
    finally:
        schedule.close()


def test_waiting_takes_virtual_time_only():
    async def main(schedule):
        began = schedule.now
        await asyncio.sleep(300)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 10)
        async with asyncio.timeout(100):
            await asyncio.gather(*(asyncio.sleep(seconds) for seconds in (1, 2, 3)))
        return schedule.now - began

    assert run(main) == pytest.approx(313)


def test_a_loop_keeps_the_order_of_its_callbacks():
    async def main(schedule):
        order = []
        for number in range(20):
            asyncio.get_running_loop().call_soon(order.append, number)
        await asyncio.sleep(1)
        return order

    assert run(main) == list(range(20))


def test_the_seed_decides_which_loop_is_next():
    def order_of(seed):
        async def main(schedule):
            order = []
            for name in "abcd":
                schedule.new_loop(name).call_soon(order.append, name)
            await asyncio.sleep(1)
            return "".join(order)

        return run(main, seed)

    orders = {order_of(seed) for seed in range(20)}
    assert len(orders) > 5
    assert {"".join(sorted(order)) for order in orders} == {"abcd"}


def test_what_a_thread_would_do_is_done_a_little_later():
    async def main(schedule):
        began = schedule.now
        result = await asyncio.get_running_loop().run_in_executor(None, lambda: "done")
        with pytest.raises(ValueError, match="refused"):
            await asyncio.get_running_loop().run_in_executor(None, _refuse)
        return result, 0 < schedule.now - began <= 2 * loops.THREAD_SECONDS

    assert run(main) == ("done", True)


def _refuse():
    raise ValueError("refused")


def test_a_paused_process_does_nothing_while_time_passes():
    async def main(schedule):
        other = schedule.new_loop("other")
        seen = []
        other.call_later(1, lambda: seen.append(schedule.now))
        other.pause()
        began = schedule.now
        await asyncio.sleep(5)
        assert not seen
        other.resume()
        await asyncio.sleep(0.001)
        return seen[0] - began

    assert run(main) == pytest.approx(5, abs=0.01)


def test_a_killed_process_never_runs_again():
    async def main(schedule):
        other = schedule.new_loop("other")
        seen = []

        async def program():
            try:
                await asyncio.sleep(1)
            finally:
                other.call_soon(seen.append, "cleaned up")
            seen.append("went on")

        other.create_task(program())
        await asyncio.sleep(0.5)
        other.kill()
        await asyncio.sleep(5)
        return seen

    assert run(main) == []


def test_a_program_that_waits_for_nothing_is_stuck():
    async def main(schedule):
        await asyncio.Event().wait()

    with pytest.raises(Stuck, match="everybody waits"):
        run(main)


def test_a_program_that_never_lets_time_pass_is_stuck(monkeypatch):
    monkeypatch.setattr(loops, "MAX_TURNS_AT_ONE_MOMENT", 1000)

    async def main(schedule):
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="1000 turns"):
        run(main)


def test_an_exception_that_nobody_caught_is_noted():
    async def main(schedule):
        asyncio.get_running_loop().call_soon(_refuse)
        await asyncio.sleep(1)
        return list(schedule.mistakes)

    (mistake,) = run(main)
    assert "refused" in mistake
