"""What Spark's drivers tell of their streaming queries: the page of `penstock.spark.show_progress`."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Final, NamedTuple

from penstock.client.errors import Unreachable
from penstock.credentials.http import NoRedirects, reason_of

PREFIX: Final = "penstock_spark_"
TIMEOUT_S: Final = 3.0
MAX_BYTES: Final = 8 << 20
FAILED: Final = "failed_timestamp_seconds"


class SparkQuery(NamedTuple):
    name: str
    id: str
    rows_per_second: float | None = None
    lag: int | None = None
    batch_s: float | None = None
    batch: int | None = None
    watermark_s: float | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    failed_s: float | None = None
    """When it failed; it does not run any more."""
    error: str = ""


def spark_queries(url: str, *, authority: str | None = None) -> list[SparkQuery]:
    """Blocks for a few seconds at most. Unreachable where there is no such page."""
    address = url if url.rstrip("/").endswith("/metrics") else url.rstrip("/") + "/metrics"
    context = ssl.create_default_context(cafile=authority) if authority else None
    opener = urllib.request.build_opener(NoRedirects, urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(address, timeout=TIMEOUT_S) as answer:
            text = answer.read(MAX_BYTES).decode("utf-8", "replace")
    except (urllib.error.HTTPError, OSError, http.client.HTTPException, ValueError) as error:
        why = reason_of(error) if isinstance(error, OSError) else str(error)
        raise Unreachable(f"the metrics of Spark at {url.rpartition('@')[2]} cannot be read: {why}") from None
    return read_queries(text)


def read_queries(text: str) -> list[SparkQuery]:
    """Of a page in Prometheus' form; what is not of a query is left out."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    failures: list[SparkQuery] = []
    for name, labels, value in _samples(text):
        query, query_id = labels.get("query", ""), labels.get("id", "")
        if name == FAILED:
            failures.append(SparkQuery(query, query_id, failed_s=value, error=labels.get("error", "")))
        else:
            found.setdefault((query, query_id), {})[name] = value
    running = [_query(*key, values) for key, values in found.items()]
    return sorted(running) + sorted(failures, key=lambda each: -(each.failed_s or 0.0))


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    from prometheus_client.parser import text_string_to_metric_families

    try:
        for family in text_string_to_metric_families(text):
            if family.name.startswith(PREFIX):
                for sample in family.samples:
                    yield sample.name.removeprefix(PREFIX), sample.labels, sample.value
    except ValueError as error:
        raise Unreachable(f"this is not a page of metrics: {error}") from None


def _query(name: str, query_id: str, values: dict[str, float]) -> SparkQuery:
    def whole(key: str) -> int | None:
        return int(values[key]) if key in values else None

    return SparkQuery(
        name, query_id, values.get("rows_per_second"), whole("lag"), values.get("batch_duration_seconds"),
        whole("batch_id"), values.get("watermark_timestamp_seconds"), whole("state_rows"), whole("state_bytes"),
    )  # fmt: skip
