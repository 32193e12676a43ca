"""The three client libraries, and topics made for a test."""

import gc
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.clients.aiokafka_driver import AiokafkaDriver
from tests.clients.confluent_driver import ConfluentDriver
from tests.clients.driver import Driver
from tests.clients.kafka_python_driver import KafkaPythonDriver

MakeTopic = Callable[..., str]


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


@pytest.fixture
def make_topic(broker: PenstockBroker, topic_name: str) -> MakeTopic:
    """Makes topics on the shared broker: `make_topic(partitions=3, configs={…})` gives the name."""
    numbers = itertools.count()

    def make(*, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        name = f"{topic_name}-{next(numbers)}"
        create_topic(broker.bootstrap, name, partitions=partitions, configs=configs)
        return name

    return make
