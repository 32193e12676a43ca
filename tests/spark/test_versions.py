"""What one Spark has and another has not. Runs with the newest and with the oldest that is supported."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock.arrow
import penstock.spark
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.spark.conftest import QUERY_TIMEOUT_S, produce

FIRST_WITH_STATE = (4, 3)


def loud(records: DataFrame) -> DataFrame:
    return records.selectExpr("upper(cast(value as string)) as value")


def counted(records: DataFrame) -> DataFrame:
    return records.groupBy("key").count().selectExpr("key", "cast(count as string) as value")


@pytest.mark.parametrize(("transform", "expected"), [(loud, b"PUMP"), (counted, b"1")])
def test_real_time_mode_is_there_and_says_which_spark_has_it_for_what_keeps_state(
    transform: object,
    expected: bytes,
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    orders, out = make_topic(), make_topic()
    produce(broker.bootstrap, orders, [{"key": "k", "value": "pump"}])
    stream = penstock.spark.stream(
        spark,
        source=orders,
        target=out,
        transform=transform,  # type: ignore[arg-type]
        bootstrap=broker.bootstrap,
        checkpoint=str(tmp_path),
        source_options={"startingOffsets": "earliest"},
    )
    try:
        if transform is loud or tuple(map(int, spark.version.split(".")[:2])) >= FIRST_WITH_STATE:
            assert (stream.tier, stream.reason) == ("real-time", None)
        else:
            why = f"it keeps state, and the real-time mode of Spark {spark.version} does not; Spark 4.3 does"
            assert (stream.tier, stream.reason) == ("micro-batch", why)
        deadline_s = time.monotonic() + QUERY_TIMEOUT_S
        found = penstock.arrow.read(out, bootstrap=broker.bootstrap)
        while not found.num_rows and time.monotonic() < deadline_s:
            stream.await_termination(1)  # its failure is the test's
            found = penstock.arrow.read(out, bootstrap=broker.bootstrap)
        assert found["value"].to_pylist() == [expected]
    finally:
        stream.stop()
