"""The same program through Spark Connect, where Penstock is installed beside the server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.spark_cluster import SparkConnectServer
from tests.conftest import MakeTopic
from tests.spark.shop import ORDERS, TEST_TIMEOUT_S, Shop


@pytest.mark.timeout(TEST_TIMEOUT_S)
def test_a_program_reads_and_streams_through_a_connect_server(
    broker: PenstockBroker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    with SparkConnectServer(sys.executable) as server:
        printed, place = Shop(broker, make_topic, tmp_path).run(server.url)
    found, written = json.loads(printed)
    assert len(found) == ORDERS
    assert written == [f"ORDER {n}" for n in range(ORDERS)]
    assert place.prefix == Path(sys.prefix)
