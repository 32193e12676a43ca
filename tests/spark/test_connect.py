"""The same program through Spark Connect, where Penstock is installed beside the server.

The server has the settings that the page recommends. Without them each of its Python processes imports everything anew, which
is most of the time of this test.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.internals.interpreter import worker_python
from penstock.spark.internals.settings import DAEMON, QUICK_SETTINGS
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.spark_cluster import SparkConnectServer
from tests.conftest import MakeTopic
from tests.small_registry import small_registry
from tests.spark.shop import ORDERS, TEST_TIMEOUT_S, Shop

# Columns with schemas of a registry; nothing of it needs the JVM.
FUNCTIONS = """
import sys
import penstock.spark
from penstock.spark import from_registry, to_registry

spark = penstock.spark.session("functions", master=sys.argv[1])
made = spark.sql("select named_struct('id', 7L, 'item', 'tea') as value")
(row,) = made.select(to_registry("value", "s", url=sys.argv[2]).alias("bytes")).collect()
again = spark.createDataFrame([row]).select(from_registry("bytes", "s", url=sys.argv[2]).alias("value"))
print(*again.select("value.*").collect()[0])
spark.stop()
"""


@pytest.mark.timeout(TEST_TIMEOUT_S)
def test_a_program_reads_and_streams_through_a_connect_server(
    broker: PenstockBroker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    with SparkConnectServer(worker_python(), settings={**QUICK_SETTINGS, **DAEMON}) as server:
        printed, place = Shop(broker, make_topic, tmp_path).run(server.url)
        with small_registry() as registry:
            command = [sys.executable, "-c", FUNCTIONS, server.url, registry.url]
            functions = subprocess.run(
                command, capture_output=True, text=True, timeout=TEST_TIMEOUT_S, check=False
            )
    found, written = json.loads(printed)
    assert len(found) == ORDERS
    assert written == [f"ORDER {n}" for n in range(ORDERS)]
    assert place.prefix == Path(sys.prefix)
    assert functions.stdout.split() == ["7", "tea"], functions.stderr
