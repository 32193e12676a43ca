"""Which plans real-time mode takes, how many slots they need, and what is left of Spark's refusals."""

from pathlib import Path
from typing import Any

import pytest

from penstock.spark.tiers.plans import Operator, obstacle, output_mode, read_plan, slots_needed
from penstock.spark.tiers.real_time import for_java, refusal

SOURCE = {"class": "o.a.s.StreamingRelationV2", "num-children": 0, "sourceName": "kafka"}
TABLE = {"class": "o.a.s.LogicalRDD", "num-children": 0, "isStreaming": False}


def node(name: str, children: int = 1, **fields: Any) -> dict[str, Any]:
    return {"class": f"o.a.s.{name}", "num-children": children, **fields}


def plan(*nodes: dict[str, Any]) -> Operator:
    return read_plan(list(nodes))


def test_expressions_of_spark_stand_in_the_way_of_nothing() -> None:
    assert obstacle(plan(node("Project"), node("Aggregate"), SOURCE)) is None


def test_the_word_python_in_a_text_is_no_python_code() -> None:
    literal = [[{"class": "o.a.s.Literal", "num-children": 0, "value": "x.python.PythonUDF"}]]
    assert obstacle(plan(node("Project", projectList=literal), SOURCE)) is None


@pytest.mark.parametrize("name", ["PythonUDF", "PythonUDAF", "PythonUDTF"])
def test_a_python_function_deep_in_an_expression_is_found(name: str) -> None:
    expression = [[node("Alias"), node("Upper", child=[node(name, 0)])]]
    assert "Python code" in str(obstacle(plan(node("Project", projectList=expression), SOURCE)))


@pytest.mark.parametrize(
    "name", ["MapInPandas", "MapInArrow", "FlatMapGroupsInPandasWithState", "TransformWithStateInPySpark"]
)
def test_an_operator_that_runs_python_is_found(name: str) -> None:
    assert "Python code" in str(obstacle(plan(node(name), SOURCE)))


def test_a_stream_joins_a_table_but_not_a_stream() -> None:
    assert obstacle(plan(node("Join", 2), SOURCE, node("Sort"), TABLE)) is None
    assert "a join of two streams" in str(obstacle(plan(node("Join", 2), SOURCE, node("Project"), SOURCE)))


def test_a_stream_of_another_kind_is_named() -> None:
    other = {**SOURCE, "sourceName": "rate"}
    assert 'format "rate"' in str(obstacle(plan(node("Union", 2), SOURCE, other)))


def test_a_query_that_aggregates_tells_what_changes_and_others_append() -> None:
    assert output_mode(plan(node("Aggregate"), SOURCE)) == "update"
    assert output_mode(plan(node("Project"), SOURCE)) == "append"
    assert output_mode(plan(node("Join", 2), SOURCE, node("Aggregate"), TABLE)) == "append"


def test_session_windows_come_when_they_are_closed() -> None:
    grouping = [[{"class": "o.a.s.AttributeReference", "num-children": 0, "name": "session_window"}]]
    sessions = plan(node("Aggregate", groupingExpressions=grouping), SOURCE)
    assert output_mode(sessions) == "append"
    assert "session window" in str(obstacle(sessions))


def test_an_aggregate_over_a_common_table_expression_is_of_the_stream() -> None:
    reference = {"class": "o.a.s.CTERelationRef", "num-children": 0, "isStreaming": True}
    with_names = plan(node("WithCTE", 2), node("Aggregate"), reference, node("CTERelationDef"), SOURCE)
    assert output_mode(with_names) == "update"


def test_each_shuffle_of_the_stream_needs_slots_of_its_own() -> None:
    one = plan(node("Aggregate"), node("RepartitionByExpression", optNumPartitions=5), SOURCE)
    assert slots_needed(one, source_partitions=3, shuffle_partitions=2) == 3 + 5 + 2
    table = plan(node("Join", 2), SOURCE, node("Aggregate"), TABLE)
    assert slots_needed(table, source_partitions=3, shuffle_partitions=2) == 3


def test_a_refusal_is_told_in_sparks_words_without_its_ornaments() -> None:
    message = (
        "[STREAMING_REAL_TIME_MODE.OUTPUT_MODE_NOT_SUPPORTED] Streaming real-time mode has the following limitation: "
        "The output mode Append is not supported. SQLSTATE: 0A000\n=== Streaming Query ===\nIdentifier: x"
    )
    assert refusal(message) == "The output mode Append is not supported."
    assert refusal("minpartitions is not compatible with real time mode\n=== Streaming Query ===") == (
        "minpartitions is not compatible with real time mode"
    )


def test_another_failure_is_no_refusal() -> None:
    message = (
        "UnknownTopicOrPartitionException: This server does not host\n=== Streaming Query ===\nreal-time mode"
    )
    assert refusal(message) is None


def test_the_java_client_is_told_of_pem_files(tmp_path: Path) -> None:
    pem, other = tmp_path / "ca.pem", tmp_path / "ca.p12"
    pem.write_text("a comment\n-----BEGIN CERTIFICATE-----\n")
    other.write_bytes(b"\x30\x82\x00")
    assert for_java({"kafka.ssl.truststore.location": str(pem)})["kafka.ssl.truststore.type"] == "PEM"
    assert for_java({"kafka.ssl.keystore.key": "text"})["kafka.ssl.keystore.type"] == "PEM"
    assert "kafka.ssl.truststore.type" not in for_java({"kafka.ssl.truststore.location": str(other)})
    told = {"kafka.ssl.truststore.location": str(pem), "kafka.ssl.truststore.type": "JKS"}
    assert for_java(told) == told
