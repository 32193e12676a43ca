"""Pull queries of shapes that ksqlDB refuses: ORDER BY, DISTINCT, a source twice, SELECT in FROM."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.servers import SqlServerProcess

PEOPLE = (("ann", None, 30, "x"), ("bob", "ann", 10, "y"), ("cid", "ann", 20, "x"), ("dan", "bob", 10, None))


@pytest.fixture
def people(server: SqlServerProcess, topic_name: str, name: str) -> str:
    """A table, and with _S behind its name a stream of its topic."""
    columns = "BOSS STRING, PAY INT, TEAM STRING"
    with_topic = f"WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='JSON'"
    server.ksql(f"CREATE TABLE {name} (ID STRING PRIMARY KEY, {columns}) {with_topic}, PARTITIONS=2);")
    server.ksql(f"CREATE STREAM {name}_S (ID STRING KEY, {columns}) {with_topic});")
    for row in PEOPLE:
        values = ", ".join("NULL" if each is None else repr(each) for each in row)
        server.ksql(f"INSERT INTO {name} VALUES ({values});")
    return name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ID FROM {t} ORDER BY ID DESC;", [["dan"], ["cid"], ["bob"], ["ann"]]),
        ("SELECT ID, PAY FROM {t} ORDER BY PAY, ID DESC;", [["dan", 10], ["bob", 10], ["cid", 20], ["ann", 30]]),
        ("SELECT ID FROM {t} WHERE PAY < 30 ORDER BY PAY * -1, 1 LIMIT 2;", [["cid"], ["bob"]]),
        ("SELECT ID, TEAM FROM {s} ORDER BY TEAM, 1;", [["dan", None], ["ann", "x"], ["cid", "x"], ["bob", "y"]]),
        ("SELECT ID FROM {s} ORDER BY TEAM DESC NULLS FIRST, ID;", [["dan"], ["bob"], ["ann"], ["cid"]]),
        ("SELECT ID FROM {s} ORDER BY TEAM NULLS LAST, ID;", [["ann"], ["cid"], ["bob"], ["dan"]]),
        ("SELECT TEAM, SUM(PAY) AS S FROM {s} WHERE PAY > 0 GROUP BY TEAM ORDER BY S DESC;", [["x", 50], ["y", 10]]),
        ("SELECT TEAM FROM {s} GROUP BY TEAM ORDER BY COUNT(*);", [["y"], ["x"]]),
        ("SELECT DISTINCT PAY FROM {t} ORDER BY PAY;", [[10], [20], [30]]),
        ("SELECT DISTINCT PAY, ARRAY[TEAM] AS A FROM {s} ORDER BY 2 DESC, 1;",
         [[10, ["y"]], [20, ["x"]], [30, ["x"]], [10, [None]]]),
        ("SELECT e.ID, b.PAY FROM {t} e JOIN {t} b ON e.BOSS = b.ID ORDER BY e.ID;",
         [["bob", 30], ["cid", 30], ["dan", 10]]),
        ("SELECT a.ID, b.TEAM FROM {t} a JOIN {t} AS b ON a.ID = b.ID WHERE a.PAY > 10 ORDER BY 1;",
         [["ann", "x"], ["cid", "x"]]),
        ("SELECT MAX(S) AS M, COUNT(*) AS C FROM (SELECT TEAM, SUM(PAY) AS S FROM {s} GROUP BY TEAM) GROUP BY 1;",
         [[50, 2]]),
        ("SELECT x.N FROM (SELECT UCASE(ID) AS N, PAY FROM {t} WHERE PAY = 10) AS x WHERE N LIKE 'B%';", [["BOB"]]),
        ("SELECT * FROM (SELECT ID, PAY FROM {t} ORDER BY PAY DESC LIMIT 2) ORDER BY ID;", [["ann", 30], ["cid", 20]]),
        ("SELECT * FROM (SELECT N FROM (SELECT ID AS N FROM {t} WHERE ID = 'ann'));", [["ann"]]),
        ("SELECT t.TEAM, COUNT(*) AS C FROM (SELECT BOSS FROM {s}) AS q JOIN {t} t ON q.BOSS = t.ID GROUP BY t.TEAM "
         "ORDER BY C DESC;", [["x", 2], ["y", 1]]),
    ],
)  # fmt: skip
def test_the_answer_has_the_shape_that_is_asked_for(
    server: SqlServerProcess, people: str, text: str, expected: list[Any]
) -> None:
    assert server.rows(text.format(t=people, s=f"{people}_S")) == expected


def test_columns_for_the_order_only_are_not_shown(server: SqlServerProcess, people: str) -> None:
    header, *_ = server.query(f"SELECT ID FROM {people} ORDER BY PAY + 1;")
    assert header["header"]["schema"] == "`ID` STRING KEY"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT ID FROM {t} ORDER BY 2;", "there is no column with this number"),
        ("SELECT ID FROM {t} ORDER BY NOPE;", "NOPE"),
        ("SELECT MAP('a' := 1) AS M FROM {t} ORDER BY M;", "maps have no order"),
        ("SELECT DISTINCT ID FROM {t} ORDER BY PAY;", "ORDER BY of SELECT DISTINCT"),
        ("SELECT DISTINCT ID FROM {s} EMIT CHANGES;", "only supported by pull queries"),
        ("SELECT ID FROM {s} ORDER BY ID EMIT CHANGES;", "only supported by pull queries"),
        ("SELECT ID FROM (SELECT ID FROM {s}) EMIT CHANGES;", "only supported by pull queries"),
        ("SELECT ID FROM (SELECT ID FROM {s} EMIT CHANGES);", "does not go on"),
        ("SELECT * FROM {t} JOIN {t} ON {t}.ID = {t}.BOSS;", "stands for two sources"),
        ("SELECT ID FROM {t} ORDER BY ID NULLS;", "Expecting"),
    ],
)
def test_what_such_a_query_cannot_say_is_told(
    server: SqlServerProcess, people: str, text: str, told: str
) -> None:
    reply = server.query_reply(text.format(t=people, s=f"{people}_S"))
    assert reply.status == 400
    assert told in reply.json()["message"]


def test_queries_that_go_on_have_no_order(server: SqlServerProcess, people: str) -> None:
    told = server.refused(f"CREATE STREAM X AS SELECT DISTINCT ID, PAY FROM {people}_S;").json()["message"]
    assert "only supported by pull queries" in told
    told = server.refused(
        f"CREATE STREAM X AS SELECT a.ID, b.PAY FROM {people}_S a JOIN {people}_S b WITHIN 1 HOUR ON a.ID = b.ID;"
    ).json()["message"]
    assert "self joins are not yet supported" in told
