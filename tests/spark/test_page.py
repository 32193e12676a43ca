"""The page about Spark: its programs run, one after the other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock.spark
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_port
from tests.clients.admin import create_topic
from tests.docs.pages import HOW_TO, blocks
from tests.spark.conftest import ReadTopic, produce, values

PAGE = HOW_TO / "spark.md"


@pytest.mark.usefixtures("spark")
def test_the_programs_of_the_page_run_one_after_the_other(
    broker: PenstockBroker, read_topic: ReadTopic, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The broker is everybody's, and `orders` is a name that others use, too.
    orders, counts = f"orders_{os.getpid()}", f"order-counts-{os.getpid()}"
    create_topic(broker.bootstrap, orders, partitions=2)
    create_topic(broker.bootstrap, f"loud-{orders}")
    create_topic(broker.bootstrap, counts)
    produce(broker.bootstrap, orders, [{"value": "valve", "key": "k"}, {"value": "pipe", "key": "k"}])
    known: dict[str, object] = {}
    for program in blocks(PAGE.read_text(), "py"):
        here = program.replace("localhost:9092", broker.bootstrap).replace("9405", str(free_port()))
        here = here.replace("orders", orders).replace("order-counts", counts)
        exec(here.replace("./checkpoint", f"{tmp_path}/checkpoint"), known)
    assert "valve" in capsys.readouterr().out
    assert values(read_topic(f"loud-{orders}")) == ["PIPE", "VALVE"]
    assert values(read_topic(counts, kafka_isolation_level="read_committed")) == ["2"]
    listener = known["listener"]
    assert isinstance(listener, penstock.spark.ProgressListener)
    session = known["spark"]
    assert isinstance(session, SparkSession)
    session.streams.removeListener(listener)
    listener.close()
