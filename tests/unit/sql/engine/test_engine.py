"""What the engine makes of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.client.errors import Unreachable
from penstock.sql.engine import querying
from penstock.sql.engine.command_log import Command
from penstock.sql.engine.engine import Engine
from penstock.sql.engine.executing import Execution
from penstock.sql.engine.leading import Leading
from penstock.sql.engine.options import sql_options
from penstock.sql.engine.queries import Queries
from penstock.sql.engine.refusals import SqlRefused
from penstock.sql.engine.sessions import Session
from penstock.streams.formats.registry import FoundSchema

VALUE = '{"type": "record", "name": "Order", "fields": [{"name": "N", "type": "int"}]}'
INFERRED = "CREATE STREAM ORDERS WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='AVRO', KEY_FORMAT='NONE');"


class Registry:
    """It does not answer the first questions."""

    def __init__(self, silent: int) -> None:
        self.silent = silent

    def latest(self, subject: str) -> FoundSchema | None:
        if self.silent > 0:
            self.silent -= 1
            raise Unreachable("the registry does not answer")
        return FoundSchema(1, "AVRO", VALUE)


class NoRunner:
    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: None


@pytest.fixture
def engine() -> Iterator[Engine]:
    options = sql_options({}, bootstrap="127.0.0.1:1")
    registry: Any = Registry(silent=2)
    made = Engine(options, registry, Queries(NoRunner()), Leading(options))
    made._topics = {"orders": (1, 1)}
    yield made
    made.close()


def test_a_command_waits_for_a_registry_that_does_not_answer(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[str | None] = []

    def waited(seconds: float) -> bool:
        problems.append(engine.problem)
        return False

    monkeypatch.setattr(engine.log, "has_stopped_within", waited)
    engine._apply(Command("stream/ORDERS/create", INFERRED, offset=3))
    assert problems == ["the command at offset 3 waits: the registry does not answer"] * 2
    assert engine.problem is None
    assert str(engine.state.sources["ORDERS"].schema) == "`N` INTEGER"
    assert engine.statuses["stream/ORDERS/create"]["status"] == "SUCCESS"


def test_a_server_that_is_stopped_does_not_wait(engine: Engine) -> None:
    engine.log.close()
    engine._apply(Command("stream/ORDERS/create", INFERRED, offset=3))
    assert "ORDERS" not in engine.state.sources


def test_sources_with_any_name_are_dropped_when_all_ends(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = (
        "CREATE STREAM `a``b; DROP STREAM c` (N INT) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');"
    )
    engine._apply(Command("stream/x/create", statement, offset=3))
    monkeypatch.setattr(
        engine, "record", lambda name, text, **_: engine._apply(Command("stream/x/drop", text, offset=4))
    )
    assert len(engine.state.sources) == 1
    engine.terminate([])
    assert engine.state.sources == {}


def test_a_topic_that_is_printed_counts_as_a_push_query(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing: list[Any] = []
    monkeypatch.setattr(querying, "PrintedLines", lambda engine, statement, closed: closing.append(closed))
    limit = engine.options["ksql.max.push.queries"]
    for _ in range(limit):
        querying.start(engine, "PRINT 'orders';", Session())
    with pytest.raises(SqlRefused, match="Maximum number of push queries exceeded"):
        querying.start(engine, "PRINT 'orders';", Session())
    assert engine.pushes() == []
    closing.pop()()
    querying.start(engine, "PRINT 'orders';", Session())


def test_the_brokers_that_are_used_are_the_ones_that_are_shown(engine: Engine) -> None:
    (shown,) = Execution(engine, Session()).run("SHOW PROPERTIES;")
    values = {each["name"]: each["value"] for each in shown["properties"]}
    assert values["bootstrap.servers"] == "127.0.0.1:1"
