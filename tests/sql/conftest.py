"""One SQL server, with one Spark, for all tests that only need some server."""

from collections.abc import Iterator

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.sql.servers import SqlServerProcess, bugs


@pytest.fixture(scope="session")
def server(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServerProcess]:
    running = SqlServerProcess(tmp_path_factory.mktemp("sql"), broker.bootstrap)
    yield running
    assert running.close() == 0
    assert bugs(running.log) == []


@pytest.fixture
def name(topic_name: str) -> str:
    """Of a source: no test meets another's."""
    return topic_name.replace("-", "_").upper()
