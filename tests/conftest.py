"""What the tests share: broker processes, started as a user starts them, and topics of their own."""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic

# Compiled modules are kept, as in a user's installation: a broker starts three times as fast with them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The same examples each time: a run says something about the change, not about its luck. `--hypothesis-profile explore` tries
# others each time. No timed assertions: an example may be the first to load compiled code, or meet a busy machine.
LUCK_OR_LOAD = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
    HealthCheck.filter_too_much,
]
settings.register_profile("penstock", deadline=None, derandomize=True, suppress_health_check=LUCK_OR_LOAD)
settings.register_profile("explore", deadline=None, suppress_health_check=LUCK_OR_LOAD)
settings.load_profile("penstock")

# Tests write records of long ago: retention, which begins 30 s after a start, would take them away under their eyes.
BROKER_OPTIONS = {"group.initial.rebalance.delay.ms": "0", "log.initial.task.delay.ms": "86400000"}

_numbers = itertools.count(1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Workers have lanes, with `--dist loadfile`; see lanes.py."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.lanes import LaneScheduling

    return LaneScheduling(config, log)


StartBroker = Callable[..., PenstockBroker]
MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    """One broker for all tests that only need some broker; give your topics names of their own (`topic_name`)."""
    with PenstockBroker(tmp_path_factory.mktemp("broker"), options=BROKER_OPTIONS) as running:
        yield running
        assert "Traceback" not in running.log_path.read_text(), "the broker logged a bug of its own"


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts brokers of the test's own: `start_broker(name="a", options={…})`; they are stopped at its end."""
    started: list[PenstockBroker] = []

    def start(
        name: str = "broker", *, options: Mapping[str, str] | None = None, port: int | None = None
    ) -> PenstockBroker:
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        merged = {**BROKER_OPTIONS, **(options or {})}
        started.append(PenstockBroker(directory, options=merged, port=port))
        return started[-1]

    yield start
    for running in started:
        was_running = running.process.is_running
        assert running.stop() != -SIGKILL or not was_running, "the broker did not stop when it was asked to"
        assert "Traceback" not in running.log_path.read_text(), "the broker logged a bug of its own"


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return f"topic-{next(_numbers)}-{os.getpid()}"


@pytest.fixture
def make_topic(broker: PenstockBroker, topic_name: str) -> MakeTopic:
    """Makes topics on the shared broker: `make_topic(partitions=3, configs={…})` gives the name."""
    numbers = itertools.count()

    def make(*, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        name = f"{topic_name}-{next(numbers)}"
        create_topic(broker.bootstrap, name, partitions=partitions, configs=configs)
        return name

    return make
