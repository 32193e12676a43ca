"""The log of commands makes one state, also where servers of a service have written to it at one time."""

from __future__ import annotations

import json

import pytest

from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.engine import applying
from penstock.sql.engine.command_log import Command, new_key, read
from penstock.sql.engine.options import of_streams, sql_options
from penstock.sql.engine.spark_runner import SparkRunner
from penstock.sql.engine.state import PersistentQuery, State
from penstock.sql.engine.world import World

ORDERS = "CREATE STREAM ORDERS (ID STRING KEY, N INT) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');"
COUNTS = "CREATE TABLE COUNTS AS SELECT ID, COUNT(*) AS C FROM ORDERS GROUP BY ID;"
LARGE = "CREATE OR REPLACE TABLE COUNTS AS SELECT ID, COUNT(*) AS C FROM ORDERS WHERE N > 1 GROUP BY ID;"


class Known(World):
    """Every topic is there, with a partition."""

    def _topic(self, topic: str) -> tuple[int, int] | None:
        return 1, 1


class Server:
    def __init__(self) -> None:
        self.state = State()
        self._next = 0

    def apply(self, statement: str, query_id: str | None = None) -> applying.Change:
        """As the engine does with what comes from the log."""
        options = sql_options({}, bootstrap="nowhere:1")
        world = Known(self.state, options, None, None, {})  # type: ignore[arg-type]
        command = Command("x/y/create", statement, query_id, {}, self._next)
        self._next += 1
        try:
            return applying.apply(command, self.state, world)
        except StatementRefused as error:
            applying.failed(command, self.state, str(error))
            raise


@pytest.fixture
def server() -> Server:
    made = Server()
    made.apply(ORDERS)
    return made


def test_a_query_goes_on_when_another_server_has_made_the_same_one_a_moment_later(server: Server) -> None:
    server.apply(COUNTS, "CTAS_COUNTS_1")
    with pytest.raises(StatementRefused, match="already exists"):
        server.apply(COUNTS, "CTAS_COUNTS_1")
    query = server.state.queries["CTAS_COUNTS_1"]
    assert (query.error, query.planned is not None) == (None, True)


def test_of_two_queries_with_one_id_the_first_one_counts(server: Server) -> None:
    for name in ("A", "B"):
        server.apply(
            f"CREATE STREAM {name} (ID STRING KEY, N INT) WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
        )
    server.apply("INSERT INTO A SELECT * FROM ORDERS;", "INSERTQUERY_3")
    with pytest.raises(StatementRefused, match="Query ID 'INSERTQUERY_3' already exists"):
        server.apply("INSERT INTO B SELECT * FROM ORDERS;", "INSERTQUERY_3")
    assert server.state.queries["INSERTQUERY_3"].sink == "A"


def test_a_query_that_replaces_another_goes_on_with_its_state(server: Server) -> None:
    server.apply(COUNTS, "CTAS_COUNTS_1")
    query_id = "CTAS_COUNTS_1"  # its group and its changelogs have that name
    change = server.apply(LARGE, query_id)
    assert (change.replaced, change.started) == ([query_id], [query_id])
    assert server.state.queries[query_id].statement == LARGE


def test_two_servers_never_write_the_same_key() -> None:
    """Compaction would keep the second command, which was refused, and drop the first."""
    command = Command("stream/S/create", ORDERS)
    keys = {new_key(command, 7) for _ in range(10)}
    assert len(keys) == 10
    assert json.loads(min(keys))["sequence"] == 7
    assert read(min(keys), command.value(), 7) == Command(command.id, ORDERS, offset=7)


def test_a_system_property_is_for_queries_that_are_there_too(server: Server) -> None:
    server.apply(COUNTS, "CTAS_COUNTS_1")
    query = server.state.queries["CTAS_COUNTS_1"]
    change = server.apply("ALTER SYSTEM 'ksql.streams.processing.guarantee'='exactly_once_v2';")
    assert (change.replaced, change.started) == ([query.id], [query.id])
    assert of_streams(query.system) == {"processing.guarantee": "exactly_once_v2"}
    again = server.apply("ALTER SYSTEM 'processing.guarantee'='exactly_once_v2';")
    assert again.started == []
    beginning = server.apply("ALTER SYSTEM 'auto.offset.reset'='earliest';")
    assert beginning.started == []  # it has begun


def test_what_came_with_a_statement_is_stronger_than_the_system() -> None:
    runner = SparkRunner(sql_options({"ksql.streams.commit.interval.ms": "5"}, bootstrap="nowhere:1"))
    query = PersistentQuery(
        "Q", "", None, {"auto.offset.reset": "earliest"},
        system={"ksql.streams.auto.offset.reset": "latest", "commit.interval.ms": "7", "processing.guarantee": "exactly_once_v2"},
    )  # fmt: skip
    found = runner._properties(query)
    assert (found["auto.offset.reset"], found["commit.interval.ms"]) == ("earliest", "7")
    assert runner._guarantee(query) == "exactly_once_v2"
    query.properties["ksql.streams.processing.guarantee"] = "at_least_once"
    assert runner._guarantee(query) == "at_least_once"
