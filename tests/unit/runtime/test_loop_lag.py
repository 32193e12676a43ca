from penstock.runtime.loop_lag import BOUNDS_SECONDS, PERIOD_SECONDS, LoopLag
from penstock.testing.simulation.loop import Schedule


def test_a_stall_counts_for_every_moment_that_it_covers() -> None:
    schedule = Schedule(seed=1)
    loop = schedule.new_loop("broker")
    other = schedule.new_loop("other")
    lag = LoopLag(loop)
    lag.start()

    async def stall() -> None:
        """As a loop that is blocked: time goes on, nothing of it runs."""
        done = other.create_future()
        other.call_later(10 * PERIOD_SECONDS, loop.pause)
        other.call_later(10 * PERIOD_SECONDS + 1.0, loop.resume)
        other.call_later(20 * PERIOD_SECONDS + 1.0, done.set_result, None)
        await done

    schedule.run(stall(), other)
    lag.stop()
    counted = dict(zip([*BOUNDS_SECONDS, None], lag.so_far().counts, strict=True))
    assert counted[0.001] >= 15  # before and after it
    assert counted[1.0] in (9, 10, 11)  # the first half of the stall: those who came then waited longest
    assert sum(lag.so_far().counts) >= 35
    assert 0.9 < lag.so_far().longest_seconds <= 1.0
