"""The screen of pipelines. Queries of the SQL server are in test_sql_page.py, which has one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from prometheus_client import CollectorRegistry

from penstock.spark.watching.progress import ProgressListener
from penstock.testing.penstock_broker import PenstockBroker
from tests.console.conftest import StartConsole
from tests.console.console_process import PHONE, ConsoleProcess, Pages

EVENT = {
    "id": "5f0b", "name": "counts <b>", "batchId": 3, "numInputRows": 10, "processedRowsPerSecond": 512.0, "batchDuration": 84,
    "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    "stateOperators": [{"numRowsTotal": 1234, "memoryUsedBytes": 4096}],
    "sources": [{"endOffset": {"topic": {"0": 5}}, "latestOffset": {"topic": {"0": 9}}}],
}  # fmt: skip


@pytest.fixture(scope="module")
def driver() -> Iterator[ProgressListener]:
    """The page of a Spark driver. Queries need no Spark to be told of."""
    listener = ProgressListener(0, registry=CollectorRegistry(), show_line=False)
    event: Any = SimpleNamespace(progress=SimpleNamespace(json=json.dumps(EVENT)))
    listener.onQueryProgress(event)
    ended: Any = SimpleNamespace(
        runId="r", id="77aa", exception="java.lang.ArithmeticException: / by zero\n\tat x"
    )
    for metric in (listener._rows, listener._rate, listener._lag, listener._duration, listener._batch):
        metric.labels("77aa", "77aa")
    for metric in (listener._watermark, listener._state_rows, listener._state_bytes):
        metric.labels("77aa", "77aa")
    listener.onQueryTerminated(ended)
    yield listener
    listener.close()


@pytest.fixture(scope="module")
def console(start_console: StartConsole, broker: PenstockBroker, driver: ProgressListener) -> ConsoleProcess:
    url = f"http://127.0.0.1:{driver.port}"
    return start_console("--spark-url", url, "--spark-url", "http://127.0.0.1:1", bootstrap=broker.bootstrap)


def test_queries_of_spark_tell_how_they_are(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/pipelines")
    row = page.get_by_test_id("pipelines").get_by_role("row", name="counts <b>")
    for text in ("RUNNING", "512", "4.0 KiB · 1,234 rows", "2026"):
        expect(row).to_contain_text(text)
    failed = page.get_by_test_id("pipelines").get_by_role("row", name="77aa")
    expect(failed).to_contain_text("/ by zero")
    failed.get_by_test_id("open").click()
    expect(page.get_by_test_id("pipeline")).to_contain_text("java.lang.ArithmeticException")


def test_a_driver_that_is_away_is_told_and_hides_nothing(console: ConsoleProcess, page: Page) -> None:
    page.goto(f"{console.url}/local/pipelines")
    expect(page.get_by_test_id("banner-warning")).to_contain_text(
        "the metrics of Spark at http://127.0.0.1:1"
    )
    expect(page.get_by_test_id("pipelines")).to_contain_text("counts <b>")


def test_the_screen_fits_a_phone(console: ConsoleProcess, pages: Pages) -> None:
    phone = pages.open(f"{console.url}/local/pipelines", viewport=PHONE)
    expect(phone.get_by_test_id("pipelines")).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
