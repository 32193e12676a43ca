"""Threads for what waits, so that the event loop does not: named pools, each with its own bound.

    await pools.syncs.run(flush.run)

Work waits only behind work of its own kind: a slow deletion holds up no flush, a name server that does not answer holds up
no reader. What waits in front of a pool is bounded by who asks: a connection waits for one read at a time, a partition for two
flushes (the one that runs, and the next), an address for one look-up.
"""

from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
Item = TypeVar("Item")
Result = TypeVar("Result")

READS: Final = 8
"""Pages that a client waits for. A disk takes several reads at once about as fast as one; so does it with syncs."""
SYNCS: Final = 8
"""Flushes, truncations, checkpoints: what makes something last."""
BULK: Final = 4
"""Copies, deletions, pages of metrics: nobody waits for them but their own task."""
CODECS: Final = 2
"""Large batches of producers that are unfolded, folded or summed up; these let the loop run meanwhile. Large requests that are
read, and their answers written; these give way to the loop each half millisecond."""
NAMES: Final = 2
"""Look-ups of host names, which may take many seconds."""


class Pool:
    def __init__(self, loop: AbstractEventLoop, name: str, threads: int) -> None:
        self._loop = loop
        self._threads = ThreadPoolExecutor(
            threads, thread_name_prefix=f"penstock-{name}"
        )  # started as needed

    def run(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> "Future[Result]":
        """Begins in its turn, whether or not somebody awaits the result."""
        return self._loop.run_in_executor(self._threads, work, *arguments)

    def run_each(self, work: Callable[[Item], object], items: Iterable[Item]) -> None:
        """Of a thread of another pool, which waits until all of it is done."""
        for _ in self._threads.map(work, items):
            pass

    def close(self) -> None:
        """What has begun goes on to its end, what has not is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Pools:
    def __init__(self, loop: AbstractEventLoop) -> None:
        self.reads = Pool(loop, "reads", READS)
        self.syncs = Pool(loop, "syncs", SYNCS)
        self.bulk = Pool(loop, "bulk", BULK)
        self.codecs = Pool(loop, "codecs", CODECS)
        self.names = Pool(loop, "names", NAMES)

    def close(self) -> None:
        for pool in (self.reads, self.syncs, self.bulk, self.codecs, self.names):
            pool.close()
