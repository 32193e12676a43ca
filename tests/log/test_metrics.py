"""Metrics of a running broker, over HTTP as Prometheus asks for them."""

import re
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.testing.penstock_broker import READY_LINE, PenstockBroker
from penstock.testing.processes import free_port, start_process
from tests.conftest import StartBroker
from tests.log.test_compaction import COMPACTED, create, produce, wait_for


@pytest.fixture
def metrics_port() -> int:
    return free_port()


@pytest.fixture
def broker(start_broker: StartBroker, metrics_port: int) -> PenstockBroker:
    return start_broker(
        options={
            "log.cleaner.backoff.ms": "50",
            "offsets.topic.num.partitions": "1",
            "penstock.metrics.listener": f"127.0.0.1:{metrics_port}",
        }
    )


def scrape(port: int) -> dict[str, dict[str, float]]:
    """name → "topic-partition", or "" → value"""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = sample.labels
            key = "-".join(labels[name] for name in ("topic", "partition") if name in labels)
            found.setdefault(sample.name, {})[key] = sample.value
    return found


def test_a_scrape_sees_topics_come_grow_and_be_compacted(broker: PenstockBroker, metrics_port: int) -> None:
    before = scrape(metrics_port)
    assert before["kafka_controller_kafkacontroller_activecontrollercount"][""] == 1
    assert before["kafka_server_replicamanager_partitioncount"][""] == 0
    create(broker, "prices", *COMPACTED, "segment.bytes=1048576", "segment.ms=200")
    produce(broker, "prices", *(f"k{number % 3},{number}" for number in range(30)))
    after = scrape(metrics_port)
    assert after["kafka_server_replicamanager_partitioncount"][""] == 1
    assert after["kafka_log_log_logendoffset"]["prices-0"] == 30
    assert after["kafka_log_log_size"]["prices-0"] > 0

    def is_compacted() -> bool:
        produce(
            broker, "prices", "k0,last"
        )  # as in Kafka a record that comes after segment.ms closes a segment
        return "prices-0" in scrape(metrics_port).get("penstock_log_cleaner_last_run_records_removed", {})

    wait_for(is_compacted, "a cleaning in the metrics")
    cleaned = scrape(metrics_port)
    assert cleaned["penstock_log_cleaner_runs_total"]["prices-0"] >= 1
    age_seconds = time.time() - cleaned["penstock_log_cleaner_last_run_timestamp_seconds"]["prices-0"]
    assert 0 <= age_seconds < 90
    assert cleaned["kafka_log_logcleaner_max_clean_time_secs"][""] > 0
    assert cleaned["kafka_log_logcleaner_deadthreadcount"][""] == 0
    assert cleaned["kafka_log_logcleanermanager_time_since_last_run_ms"][""] >= 0


def test_bad_requests_are_answered_and_the_broker_goes_on(broker: PenstockBroker, metrics_port: int) -> None:
    url = f"http://127.0.0.1:{metrics_port}"
    for request, code in (
        (urllib.request.Request(f"{url}/"), 404),
        (urllib.request.Request(f"{url}/metrics", data=b"x"), 405),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=10)
        refused.value.close()
        assert refused.value.code == code
    assert scrape(metrics_port)["kafka_server_kafkaserver_brokerstate"][""] == 3


def test_the_port_of_the_command_line_is_said_and_served(tmp_path: Path) -> None:
    words = [
        "broker",
        "--port",
        "0",
        "--host",
        "127.0.0.1",
        "--metrics-port",
        "0",
        "--data",
        str(tmp_path / "data"),
    ]
    process = start_process(
        [sys.executable, "-m", "penstock", *words], name="Penstock", log_path=tmp_path / "penstock.log"
    )
    try:
        process.wait_for_line(READY_LINE, timeout_s=15.0)
        process.wait_for_line(r"^penstock: metrics on http://127.0.0.1:\d+/metrics$", timeout_s=15.0)
        found = re.search(r"metrics on http://127.0.0.1:(\d+)/", (tmp_path / "penstock.log").read_text())
        assert found is not None
        assert "process_resident_memory_bytes" in scrape(int(found.group(1)))
    finally:
        process.stop()


@pytest.mark.parametrize(
    ("listener", "said"),
    [
        ("9404", "host:port"),
        ("nowhere.invalid:9404", "cannot listen on nowhere.invalid:9404"),
        (":99999", "host:port"),
    ],
)
def test_a_listener_that_cannot_be_had_ends_the_start_with_a_line(
    tmp_path: Path, listener: str, said: str
) -> None:
    words = [
        "broker",
        "--port",
        "0",
        "--data",
        str(tmp_path / "data"),
        "--set",
        f"penstock.metrics.listener={listener}",
    ]
    process = start_process(
        [sys.executable, "-m", "penstock", *words], name="Penstock", log_path=tmp_path / "penstock.log"
    )
    try:
        process.wait_for_line(r"^penstock: ", timeout_s=15.0)
        assert said in (tmp_path / "penstock.log").read_text()
        assert "Traceback" not in (tmp_path / "penstock.log").read_text()
    finally:
        process.stop()
