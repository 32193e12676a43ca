"""Clients push their metrics (KIP-714), and the broker's metrics page shows them."""

import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from penstock.model.errors import ErrorCode
from penstock.records.compression import ZSTD, compress
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from penstock.wire.messages.push_telemetry import PushTelemetryRequest
from tests.cli.conftest import run_command
from tests.clients.admin import create_topic
from tests.clients.driver import wait_until
from tests.hostile.raw_client import RawClient
from tests.unit.telemetry.protobuf import double, gauge, number, report, total

E = ErrorCode
INTERVAL_MS = 200
LONG_INTERVAL_MS = 300_000
"""So that nothing depends on how fast a test is."""
GOOD = report(
    gauge("org.apache.kafka.test.level", double(4, 0.5)), total("org.apache.kafka.test.sent", double(4, 3))
)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    """A broker with a metrics page, and a subscription of all metrics for clients whose names begin with `telling`."""
    options = {"penstock.metrics.listener": "127.0.0.1:0", "telemetry.max.bytes": "100000"}
    with PenstockBroker(tmp_path_factory.mktemp("watched"), options=options) as running:
        create_topic(running.bootstrap, "orders")
        subscribe(running, "all", "--metrics", "*", "--match", "client_id=telling.*")
        subscribe(
            running,
            "some",
            "--metrics",
            "a.,b.",
            "--match",
            "client_id=patient.*",
            interval_ms=LONG_INTERVAL_MS,
        )
        yield running
        assert "Traceback" not in running.log_path.read_text()


def subscribe(broker: PenstockBroker, name: str, *words: str, interval_ms: int = INTERVAL_MS) -> None:
    address = ("--bootstrap-server", broker.bootstrap)
    done = run_command(
        "kafka-client-metrics", *address, "--alter", "--name", name, "--interval", str(interval_ms), *words
    )
    assert done.code == 0, done


def page(broker: PenstockBroker) -> list[str]:
    url = broker.process.wait_for_line(r"^penstock: metrics on (\S+)")[1]
    with urllib.request.urlopen(url, timeout=10) as response:
        return [line for line in response.read().decode().splitlines() if not line.startswith("#")]


def series_of(broker: PenstockBroker, client_id: str) -> dict[str, float]:
    found = {}
    for line in page(broker):
        name, _, value = line.rpartition(" ")
        if f'client_id="{client_id}"' in name:
            found[name.partition("{")[0]] = float(value)
    return found


def test_librdkafkas_metrics_are_on_the_page(watched: PenstockBroker) -> None:
    settings = {"bootstrap.servers": watched.bootstrap, "enable.metrics.push": True}
    producer = Producer({**settings, "client.id": "telling-producer"})
    silent = Producer({**settings, "client.id": "silent"})
    consumer = Consumer(
        {**settings, "client.id": "telling-consumer", "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])

    def is_told() -> bool:
        for each in (producer, silent):
            each.produce("orders", b"x")
            each.poll(0.02)
        consumer.poll(0.02)
        of_producer, of_consumer = (
            series_of(watched, f"telling-{kind}") for kind in ("producer", "consumer")
        )
        return (
            of_producer.get("kafka_client_producer_connection_creation_total", 0) >= 1
            and "kafka_client_consumer_connection_creation_total" in of_consumer
        )

    wait_until(is_told, "the metrics of both clients")
    assert series_of(watched, "silent") == {}
    for each in (producer, silent):
        each.flush(10)
    consumer.close()


class RawTelling:
    """A client that has a subscription."""

    def __init__(self, broker: PenstockBroker, client_id: str) -> None:
        self.client = RawClient(broker.port, client_id=client_id)
        self.instance_id = bytes(16)

    def ask(self) -> E:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=self.instance_id)
        response = self.client.ask(request, 0)
        if response.error_code == E.NONE:
            self.instance_id = response.client_instance_id
            self.subscription_id = response.subscription_id
            self.metrics = list(response.requested_metrics)
        return E(response.error_code)

    def push(self, metrics: bytes = GOOD, *, codec: int = 0, terminating: bool = False, shift: int = 0) -> E:
        request = PushTelemetryRequest(
            client_instance_id=self.instance_id, subscription_id=self.subscription_id + shift,
            terminating=terminating, compression_type=codec, metrics=metrics,
        )  # fmt: skip
        return E(self.client.ask(request, 0).error_code)


@pytest.fixture
def telling(watched: PenstockBroker, topic_name: str) -> Iterator[RawTelling]:
    made = RawTelling(watched, f"patient-{topic_name}")
    with made.client:
        assert made.ask() == E.NONE
        yield made


def test_a_push_is_shown_and_the_next_is_throttled(
    watched: PenstockBroker, telling: RawTelling, topic_name: str
) -> None:
    assert telling.metrics == ["a.", "b."]
    assert telling.push(compress(ZSTD, GOOD), codec=ZSTD) == E.NONE
    assert telling.push() == E.THROTTLING_QUOTA_EXCEEDED
    shown = series_of(watched, f"patient-{topic_name}")
    assert shown == {"kafka_client_test_level": 0.5, "kafka_client_test_sent_total": 3}
    assert telling.ask() == E.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ({"shift": 1}, E.UNKNOWN_SUBSCRIPTION_ID),
        ({"codec": 9}, E.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"x" * 100_001}, E.TELEMETRY_TOO_LARGE),
        ({"metrics": b"\x0a\x7fno protobuf"}, E.INVALID_RECORD),
        ({"codec": ZSTD}, E.INVALID_RECORD),  # it is not compressed
        ({"codec": ZSTD, "metrics": compress(ZSTD, number(99, 0) * 5_000_000)}, E.INVALID_RECORD),  # a bomb
    ],
)
def test_what_cannot_be_taken_is_refused(telling: RawTelling, what: dict[str, int], code: E) -> None:
    assert telling.push(**what) == code  # type: ignore[arg-type]


def test_a_client_that_terminates_pushes_a_last_time(telling: RawTelling) -> None:
    assert telling.push() == E.NONE
    assert telling.push(terminating=True) == E.NONE
    assert telling.push(terminating=True) == E.INVALID_REQUEST


def test_a_new_subscription_reaches_a_client_with_its_next_push(
    watched: PenstockBroker, telling: RawTelling, topic_name: str
) -> None:
    subscribe(watched, "more", "--metrics", "c.", "--match", f"client_id=patient-{topic_name}")
    assert telling.push() == E.UNKNOWN_SUBSCRIPTION_ID
    assert telling.ask() == E.NONE
    assert telling.push() == E.NONE
