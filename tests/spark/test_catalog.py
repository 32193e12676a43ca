"""Topics in Spark SQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock.spark
from penstock.spark.failures import BadOption
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic, delete_topic
from tests.spark.conftest import finish, produce


@pytest.fixture
def own_broker(tmp_path: Path) -> PenstockBroker:
    """All topics of a broker are tables: one without those of other tests."""
    return PenstockBroker(tmp_path)


def test_topics_are_tables_that_come_and_go(spark: SparkSession, own_broker: PenstockBroker) -> None:
    with own_broker as broker:
        for topic in ("orders", "lab.workers-eu", "gone", "__hidden"):
            create_topic(broker.bootstrap, topic)
        produce(
            broker.bootstrap,
            "orders",
            [{"value": '{"id": 1, "amount": 2.5}'}, {"value": '{"id": 2, "amount": 4}'}],
        )
        tables = penstock.spark.catalog(spark, broker.bootstrap, values={"orders": "id long, amount double"})
        assert tables == {"gone": "gone", "lab_workers_eu": "lab.workers-eu", "orders": "orders"}
        assert spark.sql("select sum(value.amount) from penstock.orders").collect()[0][0] == 6.5
        limited = 'select count(*) from penstock.orders with (endingOffsets = \'{"orders": {"0": 1}}\')'
        assert spark.sql(limited).collect()[0][0] == 1
        assert spark.table("penstock.lab_workers_eu").schema["value"].dataType.typeName() == "binary"

        stream = spark.readStream.option("startingOffsets", "earliest").table("penstock.orders")
        query = stream.selectExpr("value.id").writeStream.format("memory").queryName("ids")
        finish(query.trigger(availableNow=True).start())
        assert {row.id for row in spark.table("ids").collect()} == {1, 2}

        delete_topic(broker.bootstrap, "gone")
        create_topic(broker.bootstrap, "new")
        produce(broker.bootstrap, "new", [{"value": "x"}])
        assert set(penstock.spark.catalog(spark, broker.bootstrap)) == {"lab_workers_eu", "new", "orders"}
        assert not spark.catalog.tableExists("penstock.gone")
        assert spark.sql("select cast(value as string) from penstock.new").collect()[0][0] == "x"


def test_values_for_a_topic_that_is_not_there_are_refused(
    spark: SparkSession, broker: PenstockBroker
) -> None:
    with pytest.raises(BadOption, match="option 'values' names the topic 'nowhere'"):
        penstock.spark.catalog(spark, broker.bootstrap, values={"nowhere": "id long"})
