import threading
import time

from penstock.runtime.loop_lag import BOUNDS_SECONDS, PERIOD_SECONDS, Lags, LoopLag, waits_for_cores
from simulation.seeds.loop import Schedule


def after_a_stall_of_a_second(*, waited_s: float) -> Lags:
    """As a loop that is blocked: time goes on, nothing of it runs. So long its thread waited for a core."""
    schedule = Schedule(seed=1)
    loop = schedule.new_loop("broker")
    other = schedule.new_loop("other")
    waits = [0.0]
    lag = LoopLag(loop, lambda: waits[0])
    lag.start()

    def resume() -> None:
        waits[0] += waited_s
        loop.resume()

    async def stall() -> None:
        done = other.create_future()
        other.call_later(10 * PERIOD_SECONDS, loop.pause)
        other.call_later(10 * PERIOD_SECONDS + 1.0, resume)
        other.call_later(20 * PERIOD_SECONDS + 1.0, done.set_result, None)
        await done

    schedule.run(stall(), other)
    lag.stop()
    return lag.so_far()


def test_a_stall_counts_for_every_moment_that_it_covers() -> None:
    lag = after_a_stall_of_a_second(waited_s=0.0).whole
    counted = dict(zip([*BOUNDS_SECONDS, None], lag.counts, strict=True))
    assert counted[0.001] >= 15  # before and after it
    assert counted[1.0] in (9, 10, 11)  # the first half of the stall: those who came then waited longest
    assert sum(lag.counts) >= 35
    assert 0.9 < lag.longest_seconds <= 1.0


def test_what_the_thread_waited_for_a_core_is_not_its_own_lag() -> None:
    for waited_s, own_s in ((0.0, 1.0), (0.8, 0.2), (1.0, 0.0), (5.0, 0.0)):
        whole, own = after_a_stall_of_a_second(waited_s=waited_s)
        assert 0.9 < whole.longest_seconds <= 1.0
        assert own_s - 0.1 < own.longest_seconds <= own_s + 0.001
        assert sum(own.counts) == sum(whole.counts)


def test_a_thread_that_wants_a_core_which_others_have_waits() -> None:
    waited = waits_for_cores()
    before_s = waited()
    assert before_s >= 0.0
    others = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(20)]
    for each in others:
        each.start()
    for each in others:
        each.join()
    assert waited() >= before_s
