"""The sink for Elasticsearch and OpenSearch, into an OpenSearch 2 node."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import socket
import urllib.request
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.connect.connectors.elasticsearch.sink import ElasticsearchSink
from penstock.connect.data import BOOLEAN, FLOAT64, INT32, INT64, STRING, array, map_of, struct
from penstock.connect.data.logical import DATE, TIMESTAMP, decimal
from penstock.connect.errors import ConnectError, InvalidConfig, RetriableError
from penstock.connect.testing import SinkTest
from penstock.testing.processes import free_port
from tests.connect.databases import Server, answers
from tests.connect.jars import class_path_of, java

ORDER = struct("order", id=INT64, note=STRING.optional())
_numbers = itertools.count(1)


def is_free(port: int) -> bool:
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return answers(lambda: found.bind(("127.0.0.1", port)))


class OpenSearch(Server):
    name = "OpenSearch"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        # It takes no port above 9299.
        self.port = next(port for port in range(9220, 9299) if is_free(port))

    def command(self) -> Sequence[str | Path]:
        # It counts its nodes from one, and its ports with them.
        return [
            java(), "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path_of("opensearch"),
            "org.codelibs.opensearch.runner.OpenSearchRunner", "-basePath", self.directory, "-numOfNode", "1", "-clusterName",
            f"tests-{self.port}", "-baseHttpPort", str(self.port - 1),
        ]  # fmt: skip

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def is_ready(self) -> bool:
        return answers(lambda: self.ask("GET", "/_cluster/health?wait_for_status=yellow&timeout=1s"))

    def documents(self, index: str) -> dict[str, Any]:
        self.ask("POST", f"/{index}/_refresh")
        found = self.ask("GET", f"/{index}/_search?size=100")
        return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearch]:
    with OpenSearch(tmp_path_factory.mktemp("opensearch")) as running:
        yield running


def sink(server: OpenSearch, topic: str, **more: str) -> SinkTest:
    config = {
        "connection.url": server.url, "retry.backoff.ms": "1", "read.timeout.ms": "30000",
        **{name.replace("_", "."): value for name, value in more.items()},
    }  # fmt: skip
    return SinkTest(ElasticsearchSink, config, partitions=[(topic, 0)])


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_numbers)}"


def test_keys_are_ids_and_an_old_record_never_overwrites_a_new_one(server: OpenSearch, topic: str) -> None:
    with sink(server, topic, behavior_on_null_values="delete") as test:
        test.record({"n": 1}, key="a")
        test.record({"n": 2}, key="a")
        test.record({"n": 3}, key=7)
        test.deliver()
        assert server.documents(topic) == {"a": {"n": 2}, "7": {"n": 3}}
        test.task.stop()  # what a killed process has open is closed
        test.crash()
        test.deliver()
        assert server.documents(topic) == {"a": {"n": 2}, "7": {"n": 3}}
        test.record(None, key="a")
        test.record(None, key="not there")
        test.deliver()
        assert server.documents(topic) == {"7": {"n": 3}}


def test_without_keys_a_document_s_id_is_where_its_record_is(server: OpenSearch, topic: str) -> None:
    with sink(server, topic, key_ignore="true", batch_size="2", behavior_on_null_values="ignore") as test:
        test.put({"n": 1}, {"n": 2}, None, {"n": 3})
        test.task.stop()  # what a killed process has open is closed
        test.crash()
        test.deliver()
        assert server.documents(topic) == {
            f"{topic}+0+{n}": {"n": value} for n, value in ((0, 1), (1, 2), (3, 3))
        }


def test_an_upsert_changes_fields_and_keeps_the_others(server: OpenSearch, topic: str) -> None:
    with sink(server, topic, write_method="UPSERT") as test:
        test.record({"a": 1, "b": 1}, key="k")
        test.record({"b": 2}, key="k")
        test.deliver()
        assert server.documents(topic) == {"k": {"a": 1, "b": 2}}


def test_an_index_has_the_types_of_the_schema(server: OpenSearch, topic: str) -> None:
    schema = struct(
        "wide", i=INT32, f=FLOAT64, s=STRING, b=BOOLEAN, d=DATE, t=TIMESTAMP, p=decimal(2), a=array(INT64),
        m=map_of(STRING, INT64), r=struct("inner", x=INT64),
    )  # fmt: skip
    inner = schema.field("r")
    assert inner is not None
    value = schema.new(
        i=1, f=1.5, s="x", b=True, d=dt.date(2026, 1, 2), t=dt.datetime(2026, 1, 2, tzinfo=dt.UTC), p=Decimal("1.25"), a=[1, 2],
        m={"k": 1}, r=inner.schema.new(x=1),
    )  # fmt: skip
    with sink(server, topic.upper()) as test:
        test.put(value, key="k", value_schema=schema)
    mapped = server.ask("GET", f"/{topic}/_mapping")[topic]["mappings"]["properties"]
    assert {name: mapped[name].get("type") for name in "ifsbdtpa"} == {
        "i": "integer", "f": "double", "s": "text", "b": "boolean", "d": "date", "t": "date", "p": "double", "a": "long",
    }  # fmt: skip
    assert server.documents(topic)["k"] == {
        "i": 1, "f": 1.5, "s": "x", "b": True, "d": "2026-01-02", "t": 1767312000000, "p": 1.25, "a": [1, 2], "m": {"k": 1},
        "r": {"x": 1},
    }  # fmt: skip


def test_what_the_server_will_not_have_is_reported_and_the_rest_is_there(
    server: OpenSearch, topic: str
) -> None:
    with sink(server, topic, errors_tolerance="all") as test:
        test.put({"n": 1}, key="first")
        test.record({"n": "no number"}, key="second")
        test.record("no document", key="third")
        test.record({"n": 4}, key="fourth")
        test.record({"n": 5})
        test.deliver()
        assert sorted(server.documents(topic)) == ["first", "fourth"]
        assert [report.record.original[2] for report in test.reports] == [2, 4, 1]
        assert "mapper_parsing_exception" in str(test.reports[-1].error)
    with sink(server, topic, behavior_on_malformed_documents="ignore", drop_invalid_message="true") as test:
        test.record({"n": "no number"}, key="second")
        test.record("no document", key="third")
        test.deliver()
        assert not test.reports
    with sink(server, topic) as test, pytest.raises(ConnectError, match="mapper_parsing_exception"):
        test.put({"n": "no number"}, key="second")


def test_a_data_stream_takes_records_with_their_time_once(server: OpenSearch, topic: str) -> None:
    server.ask(
        "PUT",
        f"/_index_template/{topic}",
        {"index_patterns": [f"logs-{topic}-*"], "data_stream": {}, "priority": 200},
    )
    with sink(
        server, topic, data_stream_type="logs", data_stream_dataset=topic, data_stream_timestamp_field="at"
    ) as test:
        test.put({"n": 1}, {"n": 2, "at": "2026-01-02T03:04:05Z"}, key="k")
        test.task.stop()  # what a killed process has open is closed
        test.crash()
        test.deliver()
    name = f"logs-{topic}-{topic}"
    assert sorted((one["n"], one["@timestamp"]) for one in server.documents(name).values()) == [
        (1, 0), (2, "2026-01-02T03:04:05Z"),
    ]  # fmt: skip


def test_a_server_that_is_away_is_asked_again_and_then_the_task_fails(topic: str) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    config = {"connection.url": away, "max.retries": "2", "retry.backoff.ms": "7"}
    with SinkTest(ElasticsearchSink, config, partitions=[(topic, 0)]) as test:
        test.record({"n": 1}, key="k")
        for _ in range(2):
            with pytest.raises(RetriableError, match="cannot be reached"):
                test.deliver()
        with pytest.raises(ConnectError, match=r"the last of max\.retries"):
            test.deliver()
        assert test.retry_delays_s == [0.007, 0.007]


def test_another_server_of_the_list_is_asked_where_one_is_away(server: OpenSearch, topic: str) -> None:
    with sink(server, topic, connection_url=f"http://127.0.0.1:{free_port()},{server.url}") as test:
        with pytest.raises(RetriableError):
            test.put({"n": 1}, key="k")
        test.deliver()
        assert server.documents(topic) == {"k": {"n": 1}}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"connection.url": "localhost:9200"}, "A URL begins with"),
        ({"connection.username": "u"}, "go together"),
        ({"data.stream.type": "logs"}, "go together"),
        ({"behavior.on.null.values": "keep"}, "behavior.on.null.values"),
    ],
)
def test_what_does_not_go_together_is_refused(more: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        SinkTest(ElasticsearchSink, {"connection.url": "http://h", **more})
