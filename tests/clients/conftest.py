"""The three client libraries, and topics made for a test."""

import gc
import warnings
from collections.abc import Iterator

import pytest

from tests.clients.aiokafka_driver import AiokafkaDriver
from tests.clients.confluent_driver import ConfluentDriver
from tests.clients.driver import Driver
from tests.clients.kafka_python_driver import KafkaPythonDriver


@pytest.fixture(autouse=True, scope="module")
def sockets_that_kafka_python_forgets() -> Iterator[None]:
    """It leaves the sockets of failed connections to the collector, with a warning that is not ours to fix."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)
        yield
        gc.collect()


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(scope="session")
def drivers() -> Iterator[dict[str, Driver]]:
    aiokafka = AiokafkaDriver()
    yield {"confluent": ConfluentDriver(), "aiokafka": aiokafka, "kafka_python": KafkaPythonDriver()}
    aiokafka.close()


@pytest.fixture(params=["confluent", "aiokafka", "kafka_python"])
def driver(request: pytest.FixtureRequest, drivers: dict[str, Driver]) -> Driver:
    return drivers[request.param]
