"""What clients pushed, as series for Prometheus.

`org.apache.kafka.producer.connection.count` of a client becomes

    kafka_client_producer_connection_count{client_id="billing",client_instance_id="…"}

with the point's attributes as more labels. Names and values are clients' words: they are made into what Prometheus takes.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.broker.metrics.client_metrics import ClientMetricsFacts
from penstock.telemetry.otlp import Kind

PREFIX: Final = "kafka_client_"
KAFKAS_PREFIX: Final = "org.apache.kafka."
TOTAL: Final = "_total"
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]")


class Family(NamedTuple):
    name: str
    """Without the suffix that samples of counters have."""
    pushed_name: str
    is_counter: bool
    rows: dict[tuple[tuple[str, str], ...], float]
    """By labels: a page on which a series comes twice is refused whole."""


def counts(facts: ClientMetricsFacts) -> list[tuple[str, str, str, float]]:
    """Name, kind, documentation and value."""
    return [
        ("kafka_server_client_metrics_instance_count", "gauge", "Clients that asked for a subscription.", facts.instances),
        ("kafka_server_client_metrics_throttle_count", "counter", "Requests before the interval was over.", facts.throttled),
        (
            "kafka_server_client_metrics_unknown_subscription_request_count", "counter",
            "Pushes under an old subscription.", facts.unknown_subscriptions,
        ),
        ("penstock_client_metrics_reports", "counter", "Reports taken from clients.", facts.received),
        ("penstock_client_metrics_refused_reports", "counter", "Reports that could not be read.", facts.refused),
        (
            "penstock_client_metrics_dropped_series", "counter",
            "Series that did not fit into the bounds; one that ends with its report counts once.", facts.dropped_series,
        ),
    ]  # fmt: skip


def families(facts: ClientMetricsFacts) -> Iterable[Family]:
    found: dict[str, Family] = {}  # by the name that the samples have
    for report in facts.reports:
        own = {"client_id": report.client_id, "client_instance_id": report.client_instance_id}
        for series in report.series:
            is_counter = series.kind is Kind.COUNTER
            name = metric_name(series.name)
            key = f"{name.removesuffix(TOTAL)}{TOTAL}" if is_counter else name
            if key in found and found[key].is_counter != is_counter:
                # Clients differ: it is shown beside the other, as two kinds may not share a name.
                name = f"{name}_{series.kind.value}"
                key = f"{name}{TOTAL}" if is_counter else name
            if key not in found:
                found[key] = Family(
                    key.removesuffix(TOTAL) if is_counter else key, series.name, is_counter, {}
                )
            labels = {label_name(key): value for key, value in series.attributes}
            found[key].rows[tuple(sorted({**labels, **own}.items()))] = series.value
    return found.values()


def metric_name(name: str) -> str:
    return PREFIX + _NOT_IN_NAMES.sub("_", name.removeprefix(KAFKAS_PREFIX)).strip("_")


def label_name(key: str) -> str:
    plain = _NOT_IN_NAMES.sub("_", key).lstrip("_")  # names that begin with two are Prometheus' own
    return plain if plain[:1].isalpha() else f"attribute_{plain}"
