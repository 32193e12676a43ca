import asyncio
import threading

from penstock.runtime.pools import BULK, Pools


def test_work_waits_only_behind_work_of_its_own_kind() -> None:
    async def fill_one() -> None:
        pools = Pools(asyncio.get_running_loop())
        go_on = threading.Event()
        slow = [pools.bulk.run(go_on.wait) for _ in range(BULK + 3)]
        assert await pools.syncs.run(int, "7") == 7
        assert await pools.reads.run(lambda: threading.current_thread().name[:14]) == "penstock-reads"
        assert not any(each.done() for each in slow)
        go_on.set()
        assert all(await asyncio.gather(*slow))
        pools.close()

    asyncio.run(asyncio.wait_for(fill_one(), 30))


def test_a_thread_spreads_work_over_another_pool() -> None:
    async def spread() -> None:
        pools = Pools(asyncio.get_running_loop())
        seen: list[int] = []
        await pools.bulk.run(pools.syncs.run_each, seen.append, range(20))
        assert sorted(seen) == list(range(20))
        pools.close()

    asyncio.run(asyncio.wait_for(spread(), 30))
