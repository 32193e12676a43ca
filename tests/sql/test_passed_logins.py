"""A cluster that asks for a login, and a server that passes on those of its callers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.admin import Cluster
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import wait_until
from tests.conftest import BROKER_OPTIONS
from tests.sql.servers import V1, SqlServerProcess, bugs
from tests.web.services import Reply

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = {"admin": "a-secret", "ana": "p:ss", "bob": "b-secret"}
EARLIEST = {"auto.offset.reset": "earliest"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    names = " ".join(f'user_{name}="{word}"' for name, word in USERS.items())
    options = {
        **BROKER_OPTIONS,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin;User:ANONYMOUS",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    listeners = {"SASL_PLAINTEXT": {"plain.sasl.jaas.config": f"{PLAIN} {names};"}}
    with PenstockBroker(tmp_path_factory.mktemp("guarded"), options=options, listeners=listeners) as broker:
        with Cluster(broker.bootstrap) as cluster:
            cluster.topics.create("open")
            cluster.acls.add("User:ana", ["Read", "Write", "Describe"], name="open")
            cluster.acls.add(
                "User:ana", ["Create", "Read", "Write", "Describe"], name="OF_ANA", is_prefix=True
            )
            cluster.acls.add("User:bob", ["Describe"], name="open")
            cluster.acls.add("User:bob", ["Describe"], name="OF_ANA", is_prefix=True)
        yield broker


@pytest.fixture(scope="module")
def server(guarded: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServerProcess]:
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": USERS["admin"],
        "penstock.sql.auth.propagate": "true",
    }
    running = SqlServerProcess(tmp_path_factory.mktemp("passing"), guarded.address("SASL_PLAINTEXT"), given)
    yield running
    assert running.close() == 0
    assert bugs(running.log) == []


def asked(server: SqlServerProcess, name: str, path: str, text: str, password: str | None = None) -> Reply:
    login = base64.b64encode(f"{name}:{password or USERS[name]}".encode()).decode()
    headers = {"Content-Type": V1, "Accept": V1, "Authorization": f"Basic {login}"}
    return server.ask("POST", path, {"ksql": text, "streamsProperties": EARLIEST}, headers)


def rows(reply: Reply) -> list[Any]:
    assert reply.status == 200, reply.body.decode()
    assert "errorMessage" not in reply.body.decode(), reply.body.decode()
    return [each["row"]["columns"] for each in reply.json() if "row" in each]


def test_the_brokers_see_who_asks(server: SqlServerProcess) -> None:
    stream = "CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='open', VALUE_FORMAT='JSON');"
    assert asked(server, "ana", "/ksql", stream).status == 200
    assert asked(server, "ana", "/ksql", "INSERT INTO S VALUES ('a', 1);").status == 200
    push = "SELECT * FROM S EMIT CHANGES LIMIT 1;"
    assert rows(asked(server, "ana", "/query", push)) == [["a", 1]]
    assert rows(asked(server, "ana", "/query", "SELECT N FROM S;")) == [[1]]
    table = "CREATE TABLE OF_ANA AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
    made = asked(server, "ana", "/ksql", table)
    assert made.status == 200, made.body.decode()
    lookup = "SELECT C FROM OF_ANA WHERE K = 'a';"
    wait_until(lambda: rows(asked(server, "ana", "/query", lookup)) == [[1]], "the row")

    refused = asked(server, "bob", "/ksql", "INSERT INTO S VALUES ('b', 2);")
    assert (refused.status, refused.json()["error_code"]) == (403, 40301)
    refused = asked(server, "bob", "/query", lookup)  # from the server's view, which ana's question has made
    assert (refused.status, refused.json()["error_code"]) == (403, 40301)
    assert "Authorization denied to Read on topic(s): [OF_ANA]" in refused.json()["message"]
    refused = asked(server, "bob", "/ksql", "CREATE STREAM OF_BOB AS SELECT K, N FROM S;")
    assert (refused.status, refused.json()["error_code"]) == (403, 40301)
    printed = asked(server, "bob", "/query", "PRINT 'open' FROM BEGINNING LIMIT 1;")
    assert "rowtime" not in printed.body.decode()
    told = asked(server, "bob", "/query", push).body.decode()
    assert '"a"' not in told
    body = b'{"target": "S"}\n{"K": "b", "N": 2}\n'
    login = base64.b64encode(f"bob:{USERS['bob']}".encode()).decode()
    headers = {"Content-Type": "application/vnd.ksqlapi.delimited.v1", "Authorization": f"Basic {login}"}
    assert json.loads(server.ask("POST", "/inserts-stream", body, headers).body)["status"] == "error"
    assert rows(asked(server, "ana", "/query", "SELECT N FROM S;")) == [[1]]


def test_who_does_not_log_in_is_refused(server: SqlServerProcess) -> None:
    refused = server.refused("SHOW STREAMS;")
    assert (refused.status, refused.json()["error_code"]) == (401, 40100)
    refused = asked(server, "ana", "/ksql", "SHOW STREAMS;", "wrong")
    assert (refused.status, refused.json()["error_code"]) == (401, 40100)
    assert server.ask("GET", "/info").status == 200
