"""Configs of client metrics subscriptions (KIP-714): which clients push which metrics, and how often.

Names, types, defaults and checks are Kafka 4.3.1's; what a value of `match` means is in `penstock/telemetry`.
"""

from penstock.config.option import CLUSTER_WIDE, INT, LIST, Option

METRICS, INTERVAL_MS, MATCH = "metrics", "interval.ms", "match"
DEFAULT_INTERVAL_MS = 300_000

CLIENT_METRICS_OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        Option(INTERVAL_MS, INT, DEFAULT_INTERVAL_MS, None, CLUSTER_WIDE,
               "How often the clients push, from 100 to 3600000."),
        Option(MATCH, LIST, [], None, CLUSTER_WIDE,
               "Which clients, as selector=pattern pairs that must all match; empty for all."),
        Option(METRICS, LIST, [], None, CLUSTER_WIDE,
               "The prefixes of the names of metrics; `*` for all, empty for none."),
    )
}  # fmt: skip
