"""Statements about connectors, with an HTTP server that answers as Connect does."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from penstock.client.errors import BadOption
from penstock.sql.client.rendering import lines_of
from penstock.sql.engine.command_log import Command
from penstock.sql.engine.engine import Engine
from penstock.sql.engine.executing import Execution
from penstock.sql.engine.leading import Leading
from penstock.sql.engine.options import sql_options
from penstock.sql.engine.queries import Queries
from penstock.sql.engine.refusals import SqlRefused
from penstock.sql.engine.sessions import Session

CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"
WITH = f"WITH ('connector.class'='{CLASS}', 'file'='x.txt', 'topic'='t1', 'tasks.max'=2)"
DEADLINE_S = 20.0


class Connect(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.logins: set[str | None] = set()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Connect

    def log_message(self, *_: Any) -> None: ...

    def _answer(self, status: int, body: Any = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _error(self, status: int, message: str) -> None:
        self._answer(status, {"error_code": status, "message": message})

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _info(self, name: str) -> dict[str, Any]:
        return {"name": name, "config": self.server.configs[name], "tasks": [], "type": "source"}

    def do_POST(self) -> None:
        self.server.logins.add(self.headers["Authorization"])
        document = self._body()
        name = document["name"]
        if name in self.server.configs:
            return self._error(409, f"Connector {name} already exists")
        self.server.configs[name] = document["config"]
        return self._answer(201, self._info(name))

    def do_PUT(self) -> None:
        config = self._body()
        if config["connector.class"] != CLASS:
            return self._error(
                400, f"Failed to find any class that implements Connector: {config['connector.class']}"
            )
        errors = (
            []
            if "topic" in config
            else ['Missing required configuration "topic" which has no default value.']
        )
        values = [{"definition": {}, "value": {"name": "topic", "value": None, "errors": errors}}]
        return self._answer(200, {"name": CLASS, "error_count": len(errors), "configs": values})

    def do_DELETE(self) -> None:
        name = self.path.split("/")[2]
        if self.server.configs.pop(name, None) is None:
            return self._error(404, f"Connector {name} not found")
        return self._answer(204)

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        if parts == ["connectors"]:
            return self._answer(200, [*self.server.configs, "GONE"])
        if parts == ["connector-plugins"]:
            return self._answer(200, [{"class": CLASS, "type": "source", "version": "4.3.1"}])
        name = parts[1]
        if name not in self.server.configs:
            return self._error(404, f"Connector {name} not found")
        if parts[2:] == ["status"]:
            tasks = [{"id": 0, "state": "RUNNING"}, {"id": 1, "state": "FAILED", "trace": "a stack"}]
            connector = {"state": "RUNNING", "worker_id": "127.0.0.1:8083"}
            return self._answer(200, {"name": name, "connector": connector, "tasks": tasks, "type": "source"})
        if parts[2:] == ["topics"]:
            return self._answer(200, {name: {"topics": ["t1"]}})
        return self._answer(200, self._info(name))


@pytest.fixture
def connect() -> Iterator[Connect]:
    server = Connect()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(DEADLINE_S)


class NoRunner:
    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: None


def engine_with(url: str) -> Engine:
    options = sql_options({"ksql.connect.url": url} if url else {}, bootstrap="127.0.0.1:1")
    made = Engine(options, None, Queries(NoRunner()), Leading(options))
    made._topics = {"t1": (1, 1)}
    return made


@pytest.fixture
def engine(connect: Connect) -> Iterator[Engine]:
    made = engine_with(f"http://127.0.0.1:1,http://ann:secret@127.0.0.1:{connect.server_address[1]}")
    yield made
    made.close()


def run(engine: Engine, text: str) -> dict[str, Any]:
    (found,) = Execution(engine, Session()).run(text)
    return found


def test_a_connector_is_made_listed_described_and_dropped(engine: Engine, connect: Connect) -> None:
    made = run(engine, f"CREATE SOURCE CONNECTOR `lines` {WITH};")
    assert made["@type"] == "connector_info"
    assert made["info"]["type"] == "source"
    expected = {"connector.class": CLASS, "file": "x.txt", "topic": "t1", "tasks.max": "2", "name": "lines"}
    assert connect.configs["lines"] == expected
    assert connect.logins == {"Basic " + base64.b64encode(b"ann:secret").decode()}
    assert "Created connector lines" in "\n".join(lines_of(made))

    listed = run(engine, "SHOW CONNECTORS;")
    (row, gone) = listed["connectors"]
    assert (row["name"], row["type"], row["className"]) == ("lines", "source", CLASS)
    assert row["state"] == "RUNNING (1/2 tasks RUNNING)"
    assert gone == {"name": "GONE", "type": "unknown"}
    assert listed["warnings"] == [{"message": "Could not describe connector GONE: Connector GONE not found"}]
    assert run(engine, "LIST SINK CONNECTORS;")["connectors"] == []
    assert "lines" in "\n".join(lines_of(listed))

    plugins = run(engine, "SHOW CONNECTOR PLUGINS;")
    assert plugins["connectorsPlugins"] == [{"className": CLASS, "type": "source", "version": "4.3.1"}]
    assert CLASS in "\n".join(lines_of(plugins))

    source = "CREATE STREAM LINES (L STRING) WITH (KAFKA_TOPIC='t1', VALUE_FORMAT='JSON');"
    engine._apply(Command("stream/LINES/create", source, offset=1))
    described = run(engine, "DESCRIBE CONNECTOR `lines`;")
    assert (described["connectorClass"], described["topics"]) == (CLASS, ["t1"])
    assert [each["name"] for each in described["sources"]] == ["LINES"]
    shown = "\n".join(lines_of(described))
    assert "a stack" in shown
    assert "LINES" in shown

    dropped = run(engine, "DROP CONNECTOR `lines`;")
    assert (dropped["@type"], dropped["connectorName"]) == ("drop_connector", "lines")
    assert connect.configs == {}
    assert "Dropped connector" in "\n".join(lines_of(dropped))


def test_what_is_there_already_or_not_is_told_as_connect_does(engine: Engine, connect: Connect) -> None:
    run(engine, f"CREATE SINK CONNECTOR c {WITH};")
    with pytest.raises(SqlRefused, match="Connector C already exists") as refused:
        run(engine, f"CREATE SINK CONNECTOR c {WITH};")
    assert (refused.value.status, refused.value.code) == (409, 40900)
    told = run(engine, f"CREATE SINK CONNECTOR IF NOT EXISTS c {WITH};")
    assert (told["@type"], told["message"]) == ("warning_entity", "Connector C already exists")
    run(engine, "DROP CONNECTOR c;")
    with pytest.raises(SqlRefused, match="Failed to drop connector: Connector C not found") as refused:
        run(engine, "DROP CONNECTOR c;")
    assert refused.value.status == 404
    assert run(engine, "DROP CONNECTOR IF EXISTS c;")["message"] == "Connector 'C' does not exist."
    with pytest.raises(SqlRefused, match="Failed to query connector status: Connector C not found"):
        run(engine, "DESCRIBE CONNECTOR c;")


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        (f"'connector.class'='{CLASS}'", 'Validation error: topic - Missing required configuration "topic"'),
        (
            "'connector.class'='nope.Nope'",
            "Validation error: Failed to find any class that implements Connector: nope.Nope",
        ),
        ("'topic'='t'", "contains no connector type"),
        ("'connector.class'=' '", "Connector type cannot be empty"),
    ],
)
def test_a_wrong_configuration_is_refused_before_it_is_made(
    engine: Engine, connect: Connect, properties: str, told: str
) -> None:
    with pytest.raises(SqlRefused) as refused:
        run(engine, f"CREATE SOURCE CONNECTOR c WITH ({properties});")
    assert told in str(refused.value)
    assert refused.value.code == 40001
    assert connect.configs == {}


def test_without_connect_it_is_told_which_option_says_where_it_is() -> None:
    engine = engine_with("")
    with pytest.raises(SqlRefused, match=r"ksql\.connect\.url"):
        run(engine, "SHOW CONNECTORS;")
    engine.close()
    engine = engine_with("http://127.0.0.1:1")
    with pytest.raises(SqlRefused, match="cannot reach Connect at") as refused:
        run(engine, "SHOW CONNECTORS;")
    assert refused.value.code == 50000
    engine.close()
    with pytest.raises(BadOption, match="is no address of Connect"):
        engine_with("connect:8083")


def test_a_login_in_an_address_is_not_shown(engine: Engine) -> None:
    shown = {each["name"]: each["value"] for each in run(engine, "SHOW PROPERTIES;")["properties"]}
    assert "secret" not in shown["ksql.connect.url"]
    assert shown["ksql.connect.url"].startswith("http://127.0.0.1:1,http://127.0.0.1:")
