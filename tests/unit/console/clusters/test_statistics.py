"""Statistics of a topic."""

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.console.clusters.statistics import DistinctKeys, Sizes, Statistics, scan


def batch(keys: list[bytes | None], values: list[bytes | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([0] * len(keys), pa.int32()),
            pa.array(range(len(keys)), pa.timestamp("ms", tz="UTC")),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
        ],
        names=["partition", "timestamp", "key", "value"],
    )


def test_nulls_sizes_keys_and_times_are_counted() -> None:
    found = Statistics("orders")
    found.add(batch([b"a", b"b", None, b"a"], [b"1234", None, b"", b"12"]))
    assert (found.records, found.null_keys, found.null_values, found.distinct.count) == (4, 1, 1, 2)
    assert (found.values.smallest, found.values.largest, found.values.total, found.values.mean) == (
        0,
        4,
        6,
        2,
    )
    assert (found.first_ms, found.last_ms, found.by_partition) == (0, 3, {0: 4})


def test_few_keys_are_counted_exactly_and_many_about() -> None:
    keys = DistinctKeys()
    keys.add([b"%d" % (number % 1000) for number in range(5000)])
    assert (keys.count, keys.is_exact) == (1000, True)
    for start in range(0, 200_000, 10_000):
        keys.add([b"%d" % number for number in range(start, start + 10_000)])
    assert not keys.is_exact
    assert keys.count == pytest.approx(200_000, rel=0.06)


def test_percentiles_are_right_to_a_bucket() -> None:
    import numpy as np

    sizes = Sizes()
    sizes.add(np.arange(1, 10_001))
    assert sizes.quantile(0.5) == pytest.approx(5000, rel=0.1)
    assert sizes.quantile(0.99) == pytest.approx(9900, rel=0.1)
    assert sizes.quantile(1.0) <= 10_000  # type: ignore[operator]


def test_an_empty_topic_has_no_sizes() -> None:
    found = Statistics("orders")
    found.add(batch([], []))
    assert (found.values.mean, found.values.quantile(0.5), found.distinct.count) == (None, None, 0)


def test_a_scan_that_is_stopped_says_so() -> None:
    stop = threading.Event()

    def batches(topic: str, **_: object) -> tuple[int, Iterator[pa.RecordBatch]]:
        def each() -> Iterator[pa.RecordBatch]:
            for _ in range(3):
                yield batch([b"a"], [b"b"])
                stop.set()

        return 3, each()

    found = Statistics("orders")
    scan("orders", statistics=found, stop=stop, batches=batches)
    assert (found.records, found.is_over, found.is_cancelled) == (1, True, True)
    assert found.share == pytest.approx(1 / 3)


def test_a_scan_that_fails_keeps_why() -> None:
    def batches(topic: str, **_: object) -> tuple[int, Iterator[pa.RecordBatch]]:
        raise OSError("no broker")

    found = Statistics("orders")
    with pytest.raises(OSError, match="no broker"):
        scan("orders", statistics=found, stop=threading.Event(), batches=batches)
    assert (found.is_over, found.error) == (True, "no broker")
