"""One REST proxy for all tests that only need some proxy."""

from collections.abc import Iterator

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.rest.proxies import RestProxy

PROPERTIES = {
    "id": "one",
    "consumer.heartbeat.interval.ms": "200",
}  # a rebalance is known at the next heartbeat


@pytest.fixture(scope="session")
def proxy(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestProxy]:
    running = RestProxy(tmp_path_factory.mktemp("rest"), broker.bootstrap, PROPERTIES)
    yield running
    assert running.close() == 0
    assert "Traceback" not in running.log, running.log


@pytest.fixture(scope="session")
def cluster_path(proxy: RestProxy) -> str:
    """Of v3: /v3/clusters/ID."""
    (found,) = proxy.get("/v3/clusters").json()["data"]
    return f"/v3/clusters/{found['cluster_id']}"
