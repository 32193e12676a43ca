"""The names of tables."""

from penstock.spark.topic_tables import table_names


def test_what_spark_does_not_permit_in_a_name_becomes_an_underscore() -> None:
    assert table_names({"orders", "lab.workers-eu", "Big"}) == {
        "big": "Big",
        "lab_workers_eu": "lab.workers-eu",
        "orders": "orders",
    }


def test_the_topic_that_needs_no_change_has_the_name() -> None:
    assert table_names({"a.b", "a-b", "a_b"}) == {"a_b": "a_b", "a_b_2": "a-b", "a_b_3": "a.b"}
