"""A broker of their own for tests that send nonsense: it may change what it likes there."""

import itertools
import time
from collections.abc import Iterator

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.conftest import BROKER_OPTIONS
from tests.hostile.raw_client import RawClient

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def hostile_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    """Has a topic `known` with two partitions; must have logged no bug of its own in the end."""
    directory = tmp_path_factory.mktemp("hostile")
    options = {**BROKER_OPTIONS, "offsets.topic.num.partitions": "2"}
    with PenstockBroker(directory, options=options) as running:
        with RawClient(running.port) as client:
            topic = CreatableTopic(name="known", num_partitions=2, replication_factor=1)
            answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7)
            assert answer.topics[0].error_code == 0
        yield running
        assert running.process.is_running
        assert "Traceback" not in running.log_path.read_text(), "the broker logged a bug of its own"
    assert running.process.exit_code == 0


@pytest.fixture
def client(hostile_broker: PenstockBroker) -> Iterator[RawClient]:
    """During which the broker must log no bug of its own."""
    before = len(hostile_broker.log_path.read_text())
    with RawClient(hostile_broker.port) as connected:
        yield connected
    assert "Traceback" not in hostile_broker.log_path.read_text()[before:]


@pytest.fixture
def name() -> str:
    """Of a group or a transaction that no other test uses."""
    return f"own-{next(_numbers)}-{time.time_ns()}"
