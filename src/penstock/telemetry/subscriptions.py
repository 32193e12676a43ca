"""Subscriptions: the configs of client metrics, as `kafka-client-metrics` writes them.

    metrics=org.apache.kafka.producer.  interval.ms=30000  match=client_software_name=apache-.*,client_id=billing-.*

A client is subscribed to the union of what all matching subscriptions ask for, at the shortest of their intervals.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from penstock.config.client_metrics_options import (
    CLIENT_METRICS_OPTIONS,
    DEFAULT_INTERVAL_MS,
    INTERVAL_MS,
    MATCH,
    METRICS,
)
from penstock.config.option import ConfigError
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.patterns import full_match

MIN_INTERVAL_MS: Final = 100
MAX_INTERVAL_MS: Final = 3_600_000
ALL_METRICS: Final = "*"


class ClientIdentity(NamedTuple):
    """What a selector may match; the names are Kafka's. None where the client did not say."""

    client_instance_id: str
    client_id: str
    client_software_name: str | None
    client_software_version: str | None
    client_source_address: str
    client_source_port: str


class Subscription(NamedTuple):
    metrics: tuple[str, ...]
    """Prefixes of names; ALL_METRICS for all of them."""
    interval_ms: int
    selectors: tuple[tuple[str, Callable[[str], bool]], ...]

    def matches(self, client: ClientIdentity) -> bool:
        values = [(getattr(client, name), accepts) for name, accepts in self.selectors]
        return all(value is not None and accepts(value) for value, accepts in values)


class Subscribed(NamedTuple):
    """What one client is subscribed to: sorted, so that all brokers say the same."""

    metrics: tuple[str, ...]
    interval_ms: int


def check_subscription(overrides: Mapping[str, str]) -> None:
    """ApiError, in Kafka's words, when a subscription cannot have these configs."""
    for name in overrides:
        if name not in CLIENT_METRICS_OPTIONS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    read_subscription(overrides)


def read_subscription(overrides: Mapping[str, str]) -> Subscription:
    try:
        values = {
            name: option.parse(overrides[name]) if name in overrides else option.default
            for name, option in CLIENT_METRICS_OPTIONS.items()
        }
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None
    interval_ms = values[INTERVAL_MS]
    if not MIN_INTERVAL_MS <= interval_ms <= MAX_INTERVAL_MS:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for {INTERVAL_MS}, interval must be between 100 and 3600000 (1 hour)",
        )
    return Subscription(tuple(values[METRICS]), interval_ms, tuple(map(_selector, values[MATCH])))


def _selector(text: str) -> tuple[str, Callable[[str], bool]]:
    name, *patterns = text.split("=")
    name = name.strip()
    if name in ClientIdentity._fields and len(patterns) == 1 and patterns[0]:
        try:
            return name, full_match(patterns[0].strip())
        except ApiError:
            pass
    raise ApiError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}")


def subscribed(client: ClientIdentity, subscriptions: Iterable[Subscription]) -> Subscribed:
    found = [subscription for subscription in subscriptions if subscription.matches(client)]
    metrics = {prefix for subscription in found for prefix in subscription.metrics}
    if ALL_METRICS in metrics:
        metrics = {ALL_METRICS}
    interval_ms = min((each.interval_ms for each in found), default=DEFAULT_INTERVAL_MS)
    return Subscribed(tuple(sorted(metrics)), min(interval_ms, DEFAULT_INTERVAL_MS))
