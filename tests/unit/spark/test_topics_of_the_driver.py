"""Spark's driver asks brokers by the one pool of connections that all readers have."""

from __future__ import annotations

import pytest

from penstock.client.errors import ReadFailed
from penstock.model.api_keys import ApiKey
from penstock.spark.options import Subscription
from penstock.spark.reading.topics import Topics
from penstock.testing.processes import free_port
from tests.unit.client.hostile_broker import hostile_broker, metadata


def test_sparks_driver_names_its_own_option() -> None:
    port = free_port()
    topics = Topics(
        Subscription(topics=("orders",)), {"bootstrap.servers": f"127.0.0.1:{port}"}, is_read_committed=False
    )
    with pytest.raises(ReadFailed, match=r"connection refused \(option 'kafka.bootstrap.servers'\)$"):
        topics.ends()
    topics.close()


def test_sparks_driver_keeps_its_connection() -> None:
    with hostile_broker({ApiKey.METADATA: lambda _: metadata("127.0.0.1", broker.port)}) as broker:
        properties = {"bootstrap.servers": broker.bootstrap}
        topics = Topics(Subscription(topics=("orders",)), properties, is_read_committed=False)
        for _ in range(3):
            topics.ends()
        topics.close()
    assert broker.asked.count(ApiKey.API_VERSIONS) == 1
