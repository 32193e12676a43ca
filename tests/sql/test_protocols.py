"""The server over HTTP/2 and websockets, and the servers of a service as they know one another."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import CloseConnection, Request, TextMessage

from penstock.stack.certificates import Authority
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import wait_until
from tests.sql.servers import EARLIEST, V1, SqlServerProcess, bugs

DEADLINE_S = 60.0
DELIMITED = "application/vnd.ksqlapi.delimited.v1"


@pytest.fixture
def numbers(server: SqlServerProcess, topic_name: str, name: str) -> str:
    """A stream with two rows."""
    server.ksql(
        f"CREATE STREAM {name} (K STRING KEY, N INT) WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='JSON', PARTITIONS=1);"
        f"INSERT INTO {name} VALUES ('a', 1); INSERT INTO {name} VALUES ('b', 2);"
    )
    return name


@pytest.fixture
def client(server: SqlServerProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(http1=False, http2=True, base_url=server.url, timeout=DEADLINE_S) as made:
        yield made


def test_queries_and_inserts_go_over_http2_as_javas_client_sends_them(
    client: httpx2.Client, server: SqlServerProcess, numbers: str
) -> None:
    body = {"sql": f"SELECT * FROM {numbers} EMIT CHANGES;", "properties": EARLIEST}
    with client.stream("POST", "/query-stream", json=body, headers={"Accept": DELIMITED}) as answer:
        assert (answer.http_version, answer.status_code) == ("HTTP/2", 200)
        lines = answer.iter_lines()
        head = json.loads(next(lines))
        assert head["columnNames"] == ["K", "N"]
        assert [json.loads(next(lines)) for _ in range(2)] == [["a", 1], ["b", 2]]
        # Other streams of the connection go on while this one waits for rows.
        rows = f'{{"target": "{numbers}"}}\n{{"K": "c", "N": 3}}\n'
        told = client.post("/inserts-stream", content=rows, headers={"Content-Type": DELIMITED})
        assert json.loads(told.text) == {"status": "ok", "seq": 0}
        assert json.loads(next(lines)) == ["c", 3]
        assert client.post("/close-query", json={"queryId": head["queryId"]}).status_code == 200
        assert list(lines) == []
    found = client.post("/ksql", json={"ksql": "SHOW STREAMS;"}, headers={"Accept": V1}).json()
    assert numbers in [each["name"] for each in found[0]["streams"]]

    def pushes() -> list[str]:
        (shown,) = server.ksql("SHOW QUERIES;")
        return [each["id"] for each in shown["queries"] if numbers in each["queryString"]]

    with client.stream("POST", "/query-stream", json=body) as answer:
        next(answer.iter_lines())
        assert len(pushes()) == 1
        client.close()
    wait_until(lambda: not pushes(), "the end of the query whose client has left")


def test_clients_of_tls_agree_on_http2(broker: PenstockBroker, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    key_store = authority.issue("server", hosts=["127.0.0.1"]).pem()
    given = {"listeners": "https://127.0.0.1:0", "ssl.keystore.location": str(key_store)}
    server = SqlServerProcess(tmp_path, broker.bootstrap, given)
    server.context = ssl.create_default_context(cafile=authority.path)
    context = ssl.create_default_context(cafile=authority.path)  # the client says in it that it knows HTTP/2
    with httpx2.Client(http2=True, verify=context, base_url=server.url, timeout=DEADLINE_S) as client:
        answer = client.get("/info")
        assert (answer.http_version, answer.status_code) == ("HTTP/2", 200)
    assert server.ask("GET", "/info").status == 200
    assert server.close() == 0


class Query:
    """A websocket to /ws/query."""

    def __init__(self, server: SqlServerProcess, request: Any, **more: str) -> None:
        text = request if isinstance(request, str) else json.dumps(request)
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S)
        self.protocol = WSConnection(ConnectionType.CLIENT)
        target = f"/ws/query?{urlencode({'request': text, **more})}"
        self.socket.sendall(self.protocol.send(Request(host="x", target=target)))
        self.texts: list[Any] = []
        self.code: int | None = None

    def read(self, count: int | None = None) -> list[Any]:
        """So many messages; all up to the end without a number."""
        while self.code is None and (count is None or len(self.texts) < count):
            data = self.socket.recv(65536)
            assert data, self.texts
            self.protocol.receive_data(data)
            for event in self.protocol.events():
                if isinstance(event, TextMessage):
                    self.texts.append(json.loads(event.data))
                elif isinstance(event, CloseConnection):
                    self.code = event.code
        return self.texts

    def close(self) -> None:
        self.socket.close()


def test_a_query_runs_through_a_websocket(server: SqlServerProcess, numbers: str, topic_name: str) -> None:
    query = Query(
        server, {"ksql": f"SELECT * FROM {numbers} EMIT CHANGES LIMIT 2;", "streamsProperties": EARLIEST}
    )
    columns, *rows, end = query.read()
    assert [(each["name"], each["schema"]["type"]) for each in columns] == [("K", "STRING"), ("N", "INTEGER")]
    assert rows == [{"row": {"columns": ["a", 1]}}, {"row": {"columns": ["b", 2]}}]
    assert (end, query.code) == ({"error": "done"}, 1000)
    query.close()
    pulled = Query(server, {"ksql": f"SELECT N FROM {numbers} WHERE K = 'b';"}, version="1")
    assert pulled.read()[1:] == [{"row": {"columns": [2]}}, {"error": "done"}]
    pulled.close()
    printed = Query(server, {"ksql": f"PRINT '{topic_name}' FROM BEGINNING LIMIT 2;"})
    assert [text.startswith("rowtime") for text in printed.read()[2:4]] == [True, True]
    printed.close()


def test_a_query_whose_websocket_is_closed_ends(server: SqlServerProcess, numbers: str) -> None:
    query = Query(server, {"ksql": f"SELECT * FROM {numbers} EMIT CHANGES;", "streamsProperties": EARLIEST})
    query.read(3)

    def pushes() -> list[str]:
        (shown,) = server.ksql("SHOW QUERIES;")
        return [
            each["id"]
            for each in shown["queries"]
            if numbers in each["queryString"] and each["queryType"] == "PUSH"
        ]

    assert len(pushes()) == 1
    query.close()
    wait_until(lambda: not pushes(), "the end of the query")


@pytest.mark.parametrize(
    ("request_", "more", "told"),
    [
        ("", {}, "missing request parameter"),
        ("{", {}, "Error parsing request"),
        ({"ksql": ""}, {}, "must be populated"),
        ({"ksql": "SELECT * FROM NOT_THERE EMIT CHANGES;"}, {}, "NOT_THERE does not exist"),
        ({"ksql": "SHOW STREAMS;"}, {}, "not supported"),
        ({"ksql": "PRINT 'no-such-topic';"}, {}, "no-such-topic"),
        ({"ksql": "SELECT 1;"}, {"version": "7"}, "invalid api version"),
    ],
)
def test_what_cannot_be_run_through_a_websocket_is_told(
    server: SqlServerProcess, request_: Any, more: dict[str, str], told: str
) -> None:
    query = Query(server, request_, **more)
    (end,) = query.read()
    assert told in end["error"]
    assert query.code == 1003
    query.close()


def test_each_server_tells_of_all(broker: PenstockBroker, tmp_path: Path, topic_name: str) -> None:
    one = SqlServerProcess(tmp_path / "one", broker.bootstrap)
    two = SqlServerProcess(tmp_path / "two", broker.bootstrap, {"ksql.service.id": one.service_id})
    names = {f"127.0.0.1:{one.port}", f"127.0.0.1:{two.port}"}

    def status(server: SqlServerProcess) -> dict[str, Any]:
        found: dict[str, Any] = server.ask("GET", "/clusterStatus").json()["clusterStatus"]
        return found

    wait_until(lambda: set(status(one)) == set(status(two)) == names, "both servers")
    wait_until(lambda: all("Spark is ready" in each.log for each in (one, two)), "Spark at both of them")
    one.ksql(
        f"CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM S GROUP BY K; INSERT INTO S VALUES ('a', 1);"
    )
    one.wait_for_rows("SELECT * FROM T;", [["a", 1]])

    def queries() -> list[dict[str, Any]]:
        return [
            each["activeStandbyPerQuery"] for each in status(two).values() if each["activeStandbyPerQuery"]
        ]

    def has_committed() -> bool:
        return [[each["activePartitions"] for each in found.values()] for found in queries()] == [
            [[{"topic": topic_name, "partition": 0}]]
        ]

    wait_until(has_committed, "the query at one of them")
    (found,) = queries()
    (query,) = found.values()
    assert query["activeStores"] != []
    lags = [each["hostStoreLags"]["stateStoreLags"] for each in status(one).values()]
    (lag,) = [each for each in lags if each]
    (of_topic,) = lag.values()
    assert of_topic["lagByPartition"]["0"]["endOffsetPosition"] == 1
    for path in ("/heartbeat", "/lag"):
        assert two.ask("POST", path, {"hostInfo": {"host": "x", "port": 1}}).json() == {"isOk": True}
    assert one.close() == 0
    wait_until(lambda: set(status(two)) == {f"127.0.0.1:{two.port}"}, "the end of one")
    assert two.close() == 0
    assert bugs(one.log) == bugs(two.log) == []
