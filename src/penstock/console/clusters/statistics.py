"""What is in a topic: how many keys, how large, how many nulls. By a scan of its records, with bounded memory.

Distinct keys are counted exactly up to `KEPT_HASHES`, and beyond estimated from the smallest hashes (k minimum values), to about
1.5 %. Sizes are put into buckets a ninth apart, so that percentiles are right to about 5 %. No key and no value is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from penstock.client.options import DEFAULT_BOOTSTRAP
from penstock.client.properties import SECURITY_NAMES

if TYPE_CHECKING:
    import pyarrow as pa

KEPT_HASHES: Final = 8192
BUCKETS_PER_DOUBLING: Final = 8
_BUCKETS: Final = 64 * BUCKETS_PER_DOUBLING
_ALL_HASHES: Final = float(1 << 64)
COLUMNS: Final = ("partition", "timestamp", "key", "value")


class DistinctKeys:
    """How many different keys there were.

    >>> keys = DistinctKeys(); keys.add([b"a", b"b", b"a"]); keys.count
    2
    """

    def __init__(self) -> None:
        self._smallest = np.empty(0, dtype=np.uint64)
        self.is_exact = True

    def add(self, keys: list[bytes]) -> None:
        hashes = np.fromiter(
            (hash(key) & 0xFFFFFFFFFFFFFFFF for key in keys), dtype=np.uint64, count=len(keys)
        )
        if not self.is_exact:
            hashes = hashes[hashes < self._smallest[-1]]
        merged = np.union1d(self._smallest, hashes)
        if len(merged) > KEPT_HASHES:
            self.is_exact = False
            merged = merged[:KEPT_HASHES]
        self._smallest = merged

    @property
    def count(self) -> int:
        if self.is_exact:
            return len(self._smallest)
        return round((KEPT_HASHES - 1) / (float(self._smallest[-1]) / _ALL_HASHES))


class Sizes:
    """Of keys or of values, in bytes; nulls do not count."""

    def __init__(self) -> None:
        self._buckets = np.zeros(_BUCKETS, dtype=np.int64)
        self.count = 0
        self.total = 0
        self.smallest: int | None = None
        self.largest: int | None = None

    def add(self, sizes: Any) -> None:
        """A numpy array."""
        if not len(sizes):
            return
        self.count += len(sizes)
        self.total += int(sizes.sum())
        smallest, largest = int(sizes.min()), int(sizes.max())
        self.smallest = smallest if self.smallest is None else min(self.smallest, smallest)
        self.largest = largest if self.largest is None else max(self.largest, largest)
        places = np.floor(np.log2(sizes + 1.0) * BUCKETS_PER_DOUBLING).astype(np.int64)
        self._buckets += np.bincount(places, minlength=_BUCKETS)[:_BUCKETS]

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def quantile(self, share: float) -> float | None:
        """About: the middle of the bucket, within what was seen."""
        if not self.count or self.smallest is None or self.largest is None:
            return None
        place = int(np.searchsorted(np.cumsum(self._buckets), share * self.count))
        middle = float(2.0 ** ((place + 0.5) / BUCKETS_PER_DOUBLING)) - 1.0
        return min(max(middle, float(self.smallest)), float(self.largest))


@dataclass
class Statistics:
    """Grows while the scan goes on; the scan's thread alone changes it."""

    topic: str
    expected: int = 0
    """Offsets that the scan covers: records are at most so many."""
    records: int = 0
    null_keys: int = 0
    null_values: int = 0
    keys: Sizes = field(default_factory=Sizes)
    values: Sizes = field(default_factory=Sizes)
    distinct: DistinctKeys = field(default_factory=DistinctKeys)
    by_partition: dict[int, int] = field(default_factory=dict)
    first_ms: int | None = None
    last_ms: int | None = None
    is_over: bool = False
    is_cancelled: bool = False
    error: str = ""

    @property
    def share(self) -> float:
        """Done, of 1."""
        if self.is_over and not self.is_cancelled and not self.error:
            return 1.0
        return min(1.0, self.records / self.expected) if self.expected else 0.0

    def add(self, batch: pa.RecordBatch) -> None:
        import pyarrow.compute as pc

        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        self.records += batch.num_rows
        self.null_keys += columns["key"].null_count
        self.null_values += columns["value"].null_count
        for name, sizes in (("key", self.keys), ("value", self.values)):
            lengths = pc.binary_length(columns[name].drop_null())
            sizes.add(lengths.to_numpy(zero_copy_only=False))
        self.distinct.add(pc.unique(columns["key"].drop_null()).to_pylist())
        for entry in pc.value_counts(columns["partition"]).to_pylist():
            number = int(entry["values"])
            self.by_partition[number] = self.by_partition.get(number, 0) + int(entry["counts"])
        times = pc.min_max(columns["timestamp"].cast("timestamp[ms]", safe=False).cast("int64")).as_py()
        if times["min"] is not None:
            self.first_ms = times["min"] if self.first_ms is None else min(self.first_ms, times["min"])
            self.last_ms = times["max"] if self.last_ms is None else max(self.last_ms, times["max"])


def scan(
    topic: str,
    *,
    bootstrap: str = DEFAULT_BOOTSTRAP,
    properties: Mapping[str, str] | None = None,
    statistics: Statistics,
    stop: threading.Event,
    batches: Callable[..., tuple[int, Iterator[pa.RecordBatch]]] | None = None,
) -> None:
    """Blocks until all records that were there at the beginning are seen, or `stop` is set."""
    opened = batches or _batches
    try:
        statistics.expected, found = opened(topic, bootstrap=bootstrap, properties=properties or {})
        for batch in found:
            if stop.is_set():
                statistics.is_cancelled = True
                break
            statistics.add(batch)
    except Exception as error:
        statistics.error = str(error) or type(error).__name__
        raise
    finally:
        statistics.is_over = True


def _batches(
    topic: str, *, bootstrap: str, properties: Mapping[str, str]
) -> tuple[int, Iterator[pa.RecordBatch]]:
    from penstock.arrow import TopicScan

    options = {name: value for name, value in properties.items() if name in SECURITY_NAMES}
    found = TopicScan(topic, bootstrap=bootstrap, columns=COLUMNS, options=options)
    return found.offsets_count, found.batches()
