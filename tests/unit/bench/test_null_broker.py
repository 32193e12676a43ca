import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bench.null_broker import partition_count_of
from bench.raw import wait_for_first_ack
from penstock.testing.processes import free_port, start_process


@pytest.fixture
def null_broker_port(tmp_path: Path) -> Iterator[int]:
    port = free_port()
    command = [sys.executable, "-m", "bench.null_broker", "--port", str(port)]
    with start_process(command, name="null broker", log_path=tmp_path / "log") as process:
        process.wait_for_line("listening on", timeout_s=10)
        yield port


def test_librdkafka_believes_the_null_broker(null_broker_port: int) -> None:
    producer = Producer(
        {"bootstrap.servers": f"127.0.0.1:{null_broker_port}", "enable.idempotence": True, "log_level": 0}
    )
    for number in range(1000):
        producer.produce("events-6p", str(number))
    assert producer.flush(10) == 0


def test_the_raw_client_gets_its_first_acknowledgement(null_broker_port: int) -> None:
    assert wait_for_first_ack("127.0.0.1", null_broker_port, "first", timeout_s=5) > 0


def test_the_number_of_partitions_is_read_from_the_name() -> None:
    assert [partition_count_of(name) for name in ("java-100B-6p-none-r0-1p", "warm-up-6p", "first")] == [
        6,
        6,
        1,
    ]
