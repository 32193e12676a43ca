"""What a task of an exactly-once write is, and what its marker says. Pure: the driver knows these without a client."""

from __future__ import annotations

from typing import NamedTuple

MARKER_PARTITIONS = 16
GROUP_PREFIX = "penstock-spark-"


class Write(NamedTuple):
    """One writing of a batch. Within a run Spark writes a batch once: what another run has written may be a replay, another
    write of the same run is not.
    """

    run_id: str
    write_id: str

    def __str__(self) -> str:
        return f"{self.run_id}/{self.write_id}"


class Task(NamedTuple):
    """Which part of which batch of which query."""

    query: str
    batch_id: int
    partition: int
    is_of_a_stream: bool = True  # which goes on under the same name another day; else its name is for once
    write: Write = Write("", "")

    @property
    def transactional_id(self) -> str:
        return f"{self.query}-{self.partition}"

    @property
    def marker_group(self) -> str:
        """A topic's name may end in "-1", and has no "/": no block of a query is taken for another query."""
        block = self.partition // MARKER_PARTITIONS
        return f"{GROUP_PREFIX}{self.query}" + (f"/{block}" if block else "")

    @property
    def marker_partition(self) -> int:
        return self.partition % MARKER_PARTITIONS


class Marker(NamedTuple):
    next_batch_id: int
    rows: int | None  # of the batch before that; None: not known any more
    write: Write | None = None  # that wrote it; None: not known any more

    @property
    def metadata(self) -> str:
        return f"{self.rows} {self.write}"
