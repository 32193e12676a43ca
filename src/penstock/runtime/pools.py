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
HANDSHAKES: Final = 2
"""Steps of TLS handshakes, which are computation: more threads than cores would only get in each other's way."""
LOGINS: Final = 2
"""Access tokens that are checked, credentials of delegation tokens, certificates that are read again: what may come by the
thousand, or wait for a file."""
KERBEROS: Final = 4
"""Steps of logins by Kerberos, whose library reads and locks files, and may ask name servers: it may wait."""
PEERS: Final = 32
"""Handshakes and logins at other brokers, which wait for those: a broker that hangs has five for as long as it does."""
KEYS: Final = 2
"""Fetches of the keys that sign access tokens, from web servers that may hang: one at a time for each address."""
REGISTRY: Final = 2
"""Questions to the schema registry, which may hang: about one schema at a time."""
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
        """What has begun continues to its end, what has not is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Pools:
    def __init__(self, loop: AbstractEventLoop) -> None:
        self.reads = Pool(loop, "reads", READS)
        self.syncs = Pool(loop, "syncs", SYNCS)
        self.bulk = Pool(loop, "bulk", BULK)
        self.codecs = Pool(loop, "codecs", CODECS)
        self.names = Pool(loop, "names", NAMES)
        self.peers = Pool(loop, "peers", PEERS)
        self.handshakes = Pool(loop, "handshakes", HANDSHAKES)
        self.logins = Pool(loop, "logins", LOGINS)
        self.kerberos = Pool(loop, "kerberos", KERBEROS)
        self.keys = Pool(loop, "keys", KEYS)
        self.registry = Pool(loop, "registry", REGISTRY)
        self._all = (
            self.reads,
            self.syncs,
            self.bulk,
            self.codecs,
            self.names,
            self.peers,
            self.handshakes,
            self.logins,
            self.kerberos,
            self.keys,
            self.registry,
        )

    def close(self) -> None:
        for pool in self._all:
            pool.close()
