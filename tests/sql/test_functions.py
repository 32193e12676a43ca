"""Functions in Python by CREATE FUNCTION: in queries that run for good, in pull and push queries, and after a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import wait_until
from tests.clients.processors import read_all
from tests.sql.servers import SqlServerProcess, bugs

ALLOWED = {
    "penstock.sql.functions.enabled": "true",
    "penstock.sql.functions.timeout.ms": "2000",
    "ksql.logging.processing.topic.name": "functions-processing-log",
}
MEAN = """
CREATE AGGREGATE FUNCTION mean(x INT) RETURNS DOUBLE LANGUAGE PYTHON AS $$
    def initial(): return [0, 0]
    def add(state, x): return [state[0] + x, state[1] + 1]
    def result(state): return state[0] / state[1]
$$;
"""


@pytest.fixture(scope="module")
def server(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServerProcess]:
    running = SqlServerProcess(tmp_path_factory.mktemp("functions"), broker.bootstrap, ALLOWED)
    yield running
    assert running.close() == 0
    assert bugs(running.log) == []


@pytest.fixture
def numbers(server: SqlServerProcess, topic_name: str, name: str) -> str:
    """A stream with the rows (a, 1), (b, 2), (a, 3)."""
    server.ksql(
        f"CREATE STREAM {name} (K STRING KEY, N INT) WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    for key, number in (("a", 1), ("b", 2), ("a", 3)):
        server.ksql(f"INSERT INTO {name} VALUES ('{key}', {number});")
    return name


def test_functions_are_refused_unless_the_server_allows_them(broker: PenstockBroker, tmp_path: Path) -> None:
    server = SqlServerProcess(tmp_path, broker.bootstrap)
    reply = server.refused("CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE PYTHON AS $$x$$;")
    assert reply.status == 400
    assert "penstock.sql.functions.enabled=true" in reply.json()["message"]
    assert server.close() == 0


def test_scalar_aggregate_and_table_functions_run_in_queries(server: SqlServerProcess, numbers: str) -> None:
    server.ksql("CREATE FUNCTION twice(x INT) RETURNS INT LANGUAGE PYTHON AS $$ x * 2 $$;")
    server.ksql(MEAN)
    server.ksql(
        "CREATE TABLE FUNCTION upto(x INT) RETURNS INT LANGUAGE PYTHON AS $$\n"
        "def upto(x):\n    for each in range(x):\n        yield each + 1\n$$;"
    )
    server.ksql(f"CREATE STREAM D_{numbers} AS SELECT K, TWICE(N) AS D FROM {numbers} WHERE twice(N) > 2;")
    server.ksql(f"CREATE TABLE M_{numbers} AS SELECT K, MEAN(N) AS M FROM {numbers} GROUP BY K;")
    server.ksql(f"CREATE STREAM U_{numbers} AS SELECT K, UPTO(N) AS U FROM {numbers};")
    server.wait_for_rows(f"SELECT * FROM M_{numbers};", [["a", 2.0], ["b", 2.0]])
    assert server.rows(f"SELECT * FROM D_{numbers} EMIT CHANGES LIMIT 2;") == [["b", 4], ["a", 6]]
    rows = server.rows(f"SELECT K, U FROM U_{numbers} EMIT CHANGES LIMIT 6;")
    assert rows == [["a", 1], ["b", 1], ["b", 2], ["a", 1], ["a", 2], ["a", 3]]
    # The same without a query that runs for good.
    assert server.rows(f"SELECT TWICE(N) FROM {numbers} EMIT CHANGES LIMIT 3;") == [[2], [4], [6]]
    assert server.rows(f"SELECT TWICE(N) FROM {numbers};") == [[2], [4], [6]]
    assert server.rows(f"SELECT K, MEAN(N) FROM {numbers} GROUP BY K;") == [["b", 2.0], ["a", 2.0]]
    server.ksql(f"INSERT INTO {numbers} VALUES ('c', TWICE(21));")
    server.wait_for_rows(f"SELECT M FROM M_{numbers} WHERE K = 'c';", [[42.0]])

    (listed,) = server.ksql("SHOW FUNCTIONS;")
    kinds = {each["name"]: (each["type"], each["category"]) for each in listed["functions"]}
    assert kinds["TWICE"] == ("SCALAR", "USER")
    assert (kinds["MEAN"][0], kinds["UPTO"][0]) == ("AGGREGATE", "TABLE")
    (described,) = server.ksql("DESCRIBE FUNCTION twice;")
    assert described["functions"][0]["arguments"][0]["type"] == "INT"


def test_a_function_that_fails_or_never_ends_costs_its_value_only(
    server: SqlServerProcess, broker: PenstockBroker, numbers: str
) -> None:
    server.ksql(
        "CREATE FUNCTION wild(x INT) RETURNS INT LANGUAGE PYTHON AS $$\n"
        "def wild(x):\n    while x == 1: pass\n    return 10 // (x - 2)\n$$;"
    )
    server.ksql(f"CREATE STREAM W_{numbers} AS SELECT K, N, WILD(N) AS W FROM {numbers};")
    rows = server.rows(f"SELECT N, W FROM W_{numbers} EMIT CHANGES LIMIT 3;")
    assert rows == [[1, None], [2, None], [3, 10]]

    def told() -> str:
        return "".join(
            json.dumps(json.loads(each.value() or b"{}")) for each in read_all(broker.bootstrap, ALLOWED[LOG])
        )

    wait_until(lambda: "WILD has failed: ZeroDivisionError" in told(), "the processing log")
    assert "WILD was given up: it did not end within 2000 ms" in told()


LOG = "ksql.logging.processing.topic.name"


def test_functions_are_replaced_dropped_and_there_after_a_restart(
    broker: PenstockBroker, tmp_path: Path, topic_name: str
) -> None:
    server = SqlServerProcess(tmp_path, broker.bootstrap, ALLOWED)
    made = "FUNCTION f(x INT) RETURNS INT LANGUAGE PYTHON AS"
    server.ksql(f"CREATE {made} $$x + 1$$;")
    assert "exists already" in server.refused(f"CREATE {made} $$x$$;").json()["message"]
    (warned,) = server.ksql(f"CREATE FUNCTION IF NOT EXISTS {made.removeprefix('FUNCTION ')} $$x$$;")
    assert warned["@type"] == "warning_entity"
    server.ksql(
        f"CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='JSON', PARTITIONS=1);"
        "CREATE STREAM OLD AS SELECT K, F(N) AS N FROM S;"
    )
    server.ksql(f"CREATE OR REPLACE {made} $$x + 100$$;")
    assert (
        "built-in"
        in server.refused("CREATE FUNCTION ucase(x INT) RETURNS INT LANGUAGE PYTHON AS $$x$$;").json()[
            "message"
        ]
    )
    server.ksql("INSERT INTO S VALUES ('a', 1);")
    assert server.rows("SELECT N FROM OLD EMIT CHANGES LIMIT 1;") == [[2]]
    assert server.rows("SELECT F(N) FROM S;") == [[101]]
    assert server.close() == 0
    again = SqlServerProcess(
        tmp_path, broker.bootstrap, {**ALLOWED, "ksql.service.id": server.service_id}, name="again"
    )
    assert again.rows("SELECT F(N) FROM S;") == [[101]]
    again.ksql("INSERT INTO S VALUES ('a', 2);")
    assert again.rows("SELECT N FROM OLD EMIT CHANGES LIMIT 2;") == [[2], [3]]
    again.ksql("DROP FUNCTION f;")
    assert (
        "Can't find any functions with the name 'F'"
        in again.query_reply("SELECT F(N) FROM S;").json()["message"]
    )
    assert "Did you mean" not in again.refused("DROP FUNCTION f;").json()["message"]
    again.ksql("DROP FUNCTION IF EXISTS f;")
    assert again.close() == 0
