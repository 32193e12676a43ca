"""Several queries of one source may start at once: nothing is added to what they share any more."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.registering import VARIABLES


def test_the_environment_of_the_source_has_what_a_query_would_put_there(spark: SparkSession) -> None:
    session: Any = spark._jsparkSession
    source = session.sessionState().dataSourceManager().lookupDataSource("penstock")
    shared = source.dataSourceCls().envVars()
    assert all(shared.containsKey(name) for name in VARIABLES)
    assert not set(VARIABLES) & spark.sparkContext.environment.keys(), "other functions keep theirs"
