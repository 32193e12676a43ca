"""Streams, tables and queries over HTTP, as a user types them; the queries run on Spark."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import threading
from http.client import HTTPConnection
from typing import Any

import pytest

from penstock.cli.ksql.session import Session
from penstock.sql.client.service import SqlServer
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.clients.driver import wait_until
from tests.clients.processors import write
from tests.docs.pages import ROOT
from tests.sql.servers import EARLIEST, V1, SqlServerProcess


def records(broker: PenstockBroker, topic: str, *rows: tuple[str, dict[str, Any]]) -> None:
    write(broker.bootstrap, topic, [(key.encode(), json.dumps(value).encode()) for key, value in rows])


@pytest.fixture
def orders(server: SqlServerProcess, broker: PenstockBroker, topic_name: str, name: str) -> str:
    """A stream with three rows."""
    create_topic(broker.bootstrap, topic_name)
    server.ksql(
        f"CREATE STREAM {name} (ID STRING KEY, ITEM STRING, N INT) WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='JSON');"
    )
    records(
        broker, topic_name,
        ("a", {"item": "tea", "n": 1}), ("b", {"item": "pot", "n": 2}), ("a", {"item": "cup", "n": 3}),
    )  # fmt: skip
    return name


def test_a_query_keeps_a_table_that_can_be_asked(server: SqlServerProcess, orders: str) -> None:
    (entity,) = server.ksql(
        f"CREATE TABLE T_{orders} AS SELECT ID, COUNT(*) AS C, SUM(N) AS S FROM {orders} GROUP BY ID;"
    )
    assert entity["@type"] == "currentStatus"
    assert entity["commandStatus"]["status"] == "SUCCESS"
    query_id = entity["commandStatus"]["queryId"]
    assert entity["commandStatus"]["message"] == f"Created query with ID {query_id}"
    server.wait_for_rows(f"SELECT * FROM T_{orders};", [["a", 2, 4], ["b", 1, 2]])
    found = server.query(f"SELECT S, ID FROM T_{orders} WHERE ID = 'a';")
    assert found[0]["header"]["schema"] == "`S` INTEGER, `ID` STRING KEY"
    assert found[1] == {"row": {"columns": [4, "a"]}}
    server.ksql(f"INSERT INTO {orders} (ID, ITEM, N) VALUES ('b', 'pan', 40);")
    server.wait_for_rows(f"SELECT S FROM T_{orders} WHERE ID = 'b';", [[42]])


def test_a_query_that_is_replaced_goes_on_from_its_state(server: SqlServerProcess, orders: str) -> None:
    select = f"TABLE R_{orders} AS SELECT ID, COUNT(*) AS C FROM {orders}"
    (made,) = server.ksql(f"CREATE {select} GROUP BY ID;")
    server.wait_for_rows(f"SELECT * FROM R_{orders};", [["a", 2], ["b", 1]])
    (replaced,) = server.ksql(f"CREATE OR REPLACE {select} WHERE N <> 7 GROUP BY ID;")
    assert replaced["commandStatus"]["queryId"] == made["commandStatus"]["queryId"]
    server.ksql(
        f"INSERT INTO {orders} (ID, N) VALUES ('b', 7); INSERT INTO {orders} (ID, N) VALUES ('a', 8);"
        f"INSERT INTO {orders} (ID, N) VALUES ('b', 9);"
    )
    server.wait_for_rows(f"SELECT * FROM R_{orders};", [["a", 3], ["b", 2]])
    refused = server.refused(f"CREATE OR REPLACE {select.replace('COUNT(*)', 'COUNT(N)')} GROUP BY ID;")
    assert refused.json()["message"].startswith("Query is not upgradeable.")


def test_a_stream_of_a_stream_goes_into_a_topic(server: SqlServerProcess, orders: str) -> None:
    server.ksql(
        f"CREATE STREAM BIG_{orders} AS SELECT ID, UCASE(ITEM) AS ITEM, N * 10 AS TENFOLD FROM {orders} WHERE N > 1;"
    )
    rows = server.rows(f"SELECT * FROM BIG_{orders} EMIT CHANGES LIMIT 2;")
    assert sorted(rows) == [["a", "CUP", 30], ["b", "POT", 20]]
    (described,) = server.ksql(f"DESCRIBE BIG_{orders};")
    fields = described["sourceDescription"]["fields"]
    assert [(each["name"], each["schema"]["type"], each.get("type")) for each in fields] == [
        ("ID", "STRING", "KEY"), ("ITEM", "STRING", None), ("TENFOLD", "INTEGER", None),
    ]  # fmt: skip


def test_a_push_query_gives_what_comes_until_its_client_leaves(server: SqlServerProcess, orders: str) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    body = json.dumps({"ksql": f"SELECT ITEM FROM {orders} EMIT CHANGES;", "streamsProperties": {}})
    connection.request("POST", "/query", body, {"Content-Type": V1, "Accept": V1})
    answer = connection.getresponse()
    assert json.loads(answer.read1().strip(b"[\n"))["header"]["schema"] == "`ITEM` STRING"
    server.ksql(f"INSERT INTO {orders} (ID, ITEM, N) VALUES ('z', 'new', 1);")
    assert json.loads(answer.read1().strip(b",\n")) == {
        "row": {"columns": ["new"]}
    }  # nothing that was there before

    def pushes() -> list[str]:
        (entity,) = server.ksql("SHOW QUERIES;")
        return [
            each["id"]
            for each in entity["queries"]
            if each["queryType"] == "PUSH" and orders in each["queryString"]
        ]

    assert len(pushes()) == 1
    answer.close()
    connection.close()
    wait_until(lambda: not pushes(), "the end of the query")


def test_what_is_dropped_must_not_be_read(server: SqlServerProcess, orders: str) -> None:
    (entity,) = server.ksql(f"CREATE TABLE T_{orders} AS SELECT ID, COUNT(*) AS C FROM {orders} GROUP BY ID;")
    query_id = entity["commandStatus"]["queryId"]
    reply = server.refused(f"DROP STREAM {orders};")
    assert reply.status == 400
    assert reply.json()["error_code"] == 40001
    assert f"The following queries read from this source: [{query_id}]" in reply.json()["message"]
    (dropped,) = server.ksql(f"DROP TABLE T_{orders};")
    assert dropped["commandStatus"]["message"].endswith("was dropped.")
    assert query_id not in server.query_ids()
    server.ksql(f"DROP STREAM {orders};")
    assert server.refused(f"DESCRIBE {orders};").status == 400


def test_queries_are_paused_resumed_and_ended(server: SqlServerProcess, orders: str) -> None:
    (entity,) = server.ksql(f"CREATE STREAM S_{orders} AS SELECT ID, N FROM {orders};")
    query_id = entity["commandStatus"]["queryId"]
    assert len(server.rows(f"SELECT * FROM S_{orders} EMIT CHANGES LIMIT 3;")) == 3

    def state() -> str:
        (shown,) = server.ksql("SHOW QUERIES;")
        return next(str(each["state"]) for each in shown["queries"] if each["id"] == query_id)

    server.ksql(f"PAUSE {query_id};")
    wait_until(lambda: state() == "PAUSED", "the pause")
    server.ksql(f"RESUME {query_id};")
    wait_until(lambda: state() == "RUNNING", "the end of the pause")
    server.ksql(f"INSERT INTO {orders} (ID, N) VALUES ('late', 9);")
    assert ["late", 9] in server.rows(f"SELECT * FROM S_{orders} EMIT CHANGES LIMIT 4;")
    server.ksql(f"TERMINATE {query_id};")
    assert query_id not in server.query_ids()


def test_statements_behind_a_refused_one_are_not_run(server: SqlServerProcess, orders: str) -> None:
    reply = server.refused(f"DESCRIBE {orders}; SELEKT 1; SHOW STREAMS;")
    assert reply.status == 400
    reply = server.refused(
        f"CREATE TYPE T_{orders} AS STRUCT<A INT>; DESCRIBE NOT_THERE; DROP TYPE T_{orders};"
    )
    said = reply.json()
    assert (said["@type"], said["error_code"], said["statementText"]) == (
        "statement_error",
        40001,
        "DESCRIBE NOT_THERE;",
    )
    assert [each["@type"] for each in said["entities"]] == ["currentStatus"]
    server.ksql(f"DROP TYPE T_{orders};")


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "told"),
    [
        ("/ksql", {"ksql": "SELECT * FROM S EMIT CHANGES;"}, 400, 40002, "should be issued to"),
        ("/ksql", {"ksql": "SHOW STREAM;"}, 400, 40001, "line 1:6"),
        ("/ksql", {}, 400, 40000, 'Missing "ksql"'),
        ("/ksql", b"{", 400, 40000, "Malformed JSON"),
        (
            "/ksql",
            {"ksql": "SHOW STREAMS;", "streamsProperties": {"ksql.service.id": "x"}},
            400,
            40000,
            "prohibited",
        ),
        ("/query", {"ksql": "SHOW STREAMS;"}, 400, 40000, "not supported"),
        ("/query", {"ksql": "SELECT * FROM NOT_THERE EMIT CHANGES;"}, 400, 40001, "NOT_THERE does not exist"),
        ("/query", {"ksql": "PRINT 'no-such-topic';"}, 400, 40001, "Could not find topic 'no-such-topic'"),
        ("/query-stream", {"sql": "SELECT 1;"}, 400, 40001, "line 1"),
        ("/close-query", {"queryId": "nobody"}, 400, 40000, "No query with id nobody"),
    ],
)
def test_mistakes_are_refused_with_a_code_and_a_sentence(
    server: SqlServerProcess, path: str, body: Any, status: int, code: int, told: str
) -> None:
    reply = server.ask("POST", path, body, {"Content-Type": V1})
    assert (reply.status, reply.json()["error_code"]) == (status, code)
    assert told in reply.json()["message"]


def test_the_server_tells_what_it_is(server: SqlServerProcess) -> None:
    info = server.ask("GET", "/info").json()["KsqlServerInfo"]
    assert info["ksqlServiceId"] == server.service_id
    assert info["serverStatus"] == "RUNNING"
    assert server.ask("GET", "/healthcheck").json()["isHealthy"] is True
    assert server.ask("GET", "/is_valid_property/auto.offset.reset").json() is True
    assert server.ask("GET", "/is_valid_property/ksql.service.id").json()["error_code"] == 40000
    assert server.ask("GET", "/").status == 307


def test_the_functions_are_listed_and_described(server: SqlServerProcess) -> None:
    (listed,) = server.ksql("SHOW FUNCTIONS;")
    kinds = {each["name"]: each["type"] for each in listed["functions"]}
    assert (kinds["UCASE"], kinds["COUNT"], kinds["EXPLODE"]) == ("SCALAR", "AGGREGATE", "TABLE")
    (described,) = server.ksql("DESCRIBE FUNCTION ucase;")
    assert described["@type"] == "describe_function"
    assert described["functions"][0]["returnType"] == "VARCHAR"


def test_print_shows_records_as_they_are(server: SqlServerProcess, orders: str, topic_name: str) -> None:
    reply = server.query_reply(f"PRINT '{topic_name}' FROM BEGINNING LIMIT 3;")
    lines = reply.body.decode().splitlines()
    assert lines[:2] == ["Key format: KAFKA_STRING", "Value format: JSON or KAFKA_STRING"]
    assert len(lines) == 5
    assert 'key: a, value: {"item": "tea", "n": 1}, partition: ' in reply.body.decode()


def test_rows_are_inserted_by_a_stream_of_lines(server: SqlServerProcess, orders: str) -> None:
    body = f'{{"target": "{orders}"}}\n{{"id": "k", "item": "x", "n": 5}}\n{{"ID": "k", "N": "no number"}}\n'.encode()
    reply = server.ask(
        "POST", "/inserts-stream", body, {"Content-Type": "application/vnd.ksqlapi.delimited.v1"}
    )
    lines = [json.loads(line) for line in reply.body.splitlines()]
    assert lines[0] == {"status": "ok", "seq": 0}
    assert (lines[1]["status"], lines[1]["seq"]) == ("error", 1)
    assert ["k", "x", 5] in server.rows(f"SELECT * FROM {orders} EMIT CHANGES LIMIT 4;")


def test_statements_run_side_by_side(server: SqlServerProcess, orders: str) -> None:
    failures: list[object] = []

    def work(number: int) -> None:
        try:
            server.ksql(f"CREATE STREAM S{number}_{orders} AS SELECT ID, N + {number} AS M FROM {orders};")
            rows = server.rows(f"SELECT M FROM S{number}_{orders} EMIT CHANGES LIMIT 3;")
            assert sorted(rows) == [[1 + number], [2 + number], [3 + number]]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    server.ksql("".join(f"DROP STREAM S{number}_{orders};" for number in range(4)), EARLIEST)


def test_topics_are_asserted(server: SqlServerProcess, orders: str, topic_name: str) -> None:
    (said,) = server.ksql(f"ASSERT TOPIC '{topic_name}' WITH (PARTITIONS=1);")
    assert (said["@type"], said["topicName"], said["exists"]) == ("assert_topic", topic_name, True)
    server.ksql("ASSERT NOT EXISTS TOPIC 'no-such-topic';")
    for text, told in (
        ("ASSERT TOPIC 'no-such-topic' TIMEOUT 1 MILLISECOND;", "Topic no-such-topic does not exist"),
        (f"ASSERT TOPIC '{topic_name}' WITH (PARTITIONS=7) TIMEOUT 1 MILLISECOND;", "expected 7 got 1"),
        (f"ASSERT NOT EXISTS TOPIC '{topic_name}' TIMEOUT 1 MILLISECOND;", "exists"),
    ):
        reply = server.refused(text)
        assert (reply.status, reply.json()["error_code"]) == (417, 41700)
        assert told in reply.json()["message"]


def test_clients_that_wait_for_commands_of_the_future_hold_up_nobody(server: SqlServerProcess) -> None:
    body = json.dumps({"ksql": "SHOW TYPES;", "commandSequenceNumber": 10**9}).encode()
    head = f"POST /ksql HTTP/1.1\r\nHost: x\r\nContent-Type: {V1}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    waiting = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(40)]
    try:
        for each in waiting:
            each.sendall(head + body)
        for _ in range(3):
            assert server.ksql("SHOW TYPES;")[0]["@type"] == "type_list"
        answered, _, _ = select.select(waiting, [], [], 0)
        assert answered == []
    finally:
        for each in waiting:
            each.close()


def test_a_row_of_the_first_moment_keeps_its_time(server: SqlServerProcess, orders: str) -> None:
    server.ksql(f"INSERT INTO {orders} (ROWTIME, ID, ITEM, N) VALUES (0, 'z', 'urn', 9);")
    assert server.rows(f"SELECT ROWTIME, ITEM FROM {orders} WHERE ID = 'z';") == [[0, "urn"]]


def test_a_system_property_holds_for_queries_and_can_be_asked_for(
    server: SqlServerProcess, orders: str
) -> None:
    name = "ksql.streams.auto.offset.reset"
    server.ksql(f"ALTER SYSTEM '{name}'='earliest';", {})
    try:
        server.ksql(f"CREATE STREAM OLD_{orders} AS SELECT ID, N FROM {orders};", {})
        rows = server.rows(f"SELECT N FROM OLD_{orders} EMIT CHANGES LIMIT 3;")
        assert sorted(rows) == [[1], [2], [3]]
        (shown,) = server.ksql("SHOW PROPERTIES;", {})
        values = {each["name"]: each["value"] for each in shown["properties"]}
        assert values[name] == "earliest"
    finally:
        server.ksql(f"ALTER SYSTEM '{name}'='latest';", {})
    refused = server.refused("ALTER SYSTEM 'processing.guarantee'='never';")
    assert refused.status == 400
    assert "must be at_least_once or exactly_once_v2" in refused.json()["message"]


def test_a_path_that_is_not_there_is_told_in_ksqldbs_form(server: SqlServerProcess) -> None:
    for method, path, headers, status in (
        ("GET", "/nothing", {}, 404),
        ("GET", "/ksql", {}, 405),
        ("POST", "/ksql", {"Accept": "image/png"}, 406),
        ("POST", "/ksql", {"Content-Type": "image/png"}, 415),
    ):
        reply = server.ask(method, path, b"{}" if method == "POST" else None, headers)
        said = reply.json()
        assert (reply.status, said["@type"], said["error_code"]) == (status, "generic_error", status * 100)
        assert said["message"]


def test_a_pull_query_is_explained_as_one(server: SqlServerProcess, orders: str) -> None:
    server.ksql(f"CREATE TABLE T_{orders} AS SELECT ID, COUNT(*) AS C FROM {orders} GROUP BY ID;")

    def explained(text: str) -> tuple[str, str, str]:
        (found,) = server.ksql(f"EXPLAIN {text}")
        about = found["queryDescription"]
        return about["queryType"], about["tier"], about["executionPlan"]

    kind, tier, plan = explained(f"SELECT C FROM T_{orders} WHERE ID = 'a';")
    assert (kind, tier) == ("PULL", "VIEW")
    assert f"table T_{orders}, topic T_{orders}: 1 key" in plan
    assert explained(f"SELECT ITEM, COUNT(*) FROM {orders} GROUP BY ITEM;")[:2] == ("PULL", "TOPICS")
    assert explained(f"SELECT ITEM FROM {orders} EMIT CHANGES;")[:2] == ("PUSH", "SERVER")
    assert explained(f"CREATE STREAM X AS SELECT ID, ITEM FROM {orders};")[:2] == ("PERSISTENT", "LONG_TASKS")


def test_of_what_is_not_there_the_nearest_is_named(server: SqlServerProcess, orders: str) -> None:
    (made,) = server.ksql(f"CREATE STREAM N_{orders} AS SELECT ID, N FROM {orders};")
    query_id = made["commandStatus"]["queryId"]
    server.ksql(f"CREATE TYPE ADDRESS_{orders} AS STRUCT<A INT>;")
    for text, meant in (
        (f"TERMINATE {query_id.lower()[:-2]}{query_id[-2:]}x;", None),
        (f"TERMINATE {query_id}9;", query_id),
        (f"EXPLAIN {query_id}9;", query_id),
        (f"DROP TYPE ADRESS_{orders};", f"ADDRESS_{orders}"),
        (
            f"CREATE STREAM Y (A ADRESS_{orders}) WITH (KAFKA_TOPIC='y', VALUE_FORMAT='JSON', PARTITIONS=1);",
            f"ADDRESS_{orders}",
        ),
        ("CREATE STREAM Y (A VARCHR) WITH (KAFKA_TOPIC='y', VALUE_FORMAT='JSON', PARTITIONS=1);", "VARCHAR"),
        ("DESCRIBE FUNCTION ucas;", "UCASE"),
    ):
        said = server.refused(text).json()["message"]
        assert meant is None or f"Did you mean {meant}?" in said, said


class Shown:
    """A session of the prompt, and what it shows."""

    def __init__(self, server: SqlServerProcess, **more: Any) -> None:
        self.lines: list[str] = []
        self.session = Session(SqlServer(server.url), show=self.lines.append, **more)


def test_a_query_ends_at_its_timeout_when_nothing_comes(
    server: SqlServerProcess, orders: str, topic_name: str
) -> None:
    shown = Shown(server, timeout_ms=500)
    shown.session.run(f"SELECT * FROM {orders} EMIT CHANGES;")
    assert shown.lines[-1] == "Query terminated"
    shown = Shown(server, timeout_ms=500)
    shown.session.run(f"PRINT '{topic_name}';")
    assert shown.lines == ["Topic printing ceased"]


def test_a_topic_is_printed_up_to_the_limit_of_rows(
    server: SqlServerProcess, orders: str, topic_name: str
) -> None:
    shown = Shown(server, row_limit=2)
    shown.session.run(f"PRINT '{topic_name}' FROM BEGINNING;")
    assert [line[:7] for line in shown.lines] == ["Key for", "Value f", "rowtime", "rowtime", "Topic p"]


def test_the_prompts_own_commands_may_be_piped_into_it(server: SqlServerProcess) -> None:
    def piped(text: str) -> subprocess.CompletedProcess[str]:
        command = [str(ROOT / "bin" / "ksql"), server.url]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)

    done = piped("version\nSHOW\n TYPES;\noutput JSON\nSHOW TYPES;\nexit\nSHOW NOTHING;\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Version: ")
    assert '"@type": "type_list"' in done.stdout
    done = piped("SHOW NOTHING;\nversion\n")
    assert done.returncode == 1
    assert "Version" not in done.stdout
    assert "missing ';'" in piped("SHOW TYPES").stderr
