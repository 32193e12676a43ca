"""The form of a workload, and the server's CPU time during a piece of one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.servers import KAFKA, NULL, PENSTOCK, Server

STORING_SERVERS = (KAFKA, PENSTOCK)
ALL_SERVERS = (KAFKA, PENSTOCK, NULL)


class Workload(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def rows(self) -> Sequence[Row]: ...
    @property
    def server_names(self) -> Sequence[str]: ...

    def rounds(self, scale: Scale) -> int:
        """How many rounds a run of that scale has; 0 leaves the workload out."""
        ...

    def run(self, context: Context) -> Sample: ...


class CpuTime:
    seconds: float = 0.0


@contextmanager
def cpu_time(server: Server) -> Iterator[CpuTime]:
    """The CPU time that the server used during the block; known when the block has ended."""
    spent = CpuTime()
    before = server.usage().cpu_seconds
    yield spent
    spent.seconds = server.usage().cpu_seconds - before
