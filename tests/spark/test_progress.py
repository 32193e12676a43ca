"""What the listener makes of Spark's progress events."""

from penstock.spark.watching.progress import Progress, read_progress

EVENT = {
    "id": "9190a8ad-9953-4691-ac10-83b1d537f124",
    "name": "copy",
    "batchId": 41,
    "batchDuration": 84,
    "numInputRows": 1000,
    "processedRowsPerSecond": 12300.4,
    "eventTime": {"watermark": "2026-01-02T14:03:59.000Z"},
    "sources": [
        {"endOffset": {"t": {"0": 10, "1": 5}}, "latestOffset": {"t": {"0": 30, "1": 5, "2": 7}}},
        {"endOffset": 17, "latestOffset": 20},
        {"endOffset": None, "latestOffset": None},
    ],
}


def test_lag_is_summed_over_the_sources_that_are_topics() -> None:
    assert read_progress(EVENT).lag == 27


def test_a_query_without_topics_has_no_lag() -> None:
    assert read_progress({**EVENT, "sources": [{"endOffset": 1, "latestOffset": 2}]}).lag is None


def test_a_line_says_it_all() -> None:
    line = "copy: batch 41 · 12,300 rows/s · 84 ms · lag 27 · watermark 14:03:59"
    assert read_progress(EVENT).line() == line


def test_a_query_without_a_name_has_its_id() -> None:
    progress = read_progress({"id": EVENT["id"], "batchId": 0})
    assert progress == Progress("9190a8ad", 0, 0, 0.0, 0, None, None)
