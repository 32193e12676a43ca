"""Clients and scripts of KSQL 5.1."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.testing.penstock_broker import PenstockBroker
from tests.sql.servers import SqlServerProcess, bugs

LEGACY = "ksql.query.legacy.format"


def test_a_script_of_the_old_dialect_runs(broker: PenstockBroker, tmp_path: Path, topic_name: str) -> None:
    server = SqlServerProcess(tmp_path / "old", broker.bootstrap, {LEGACY: "true"})
    with_topic = f"KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='JSON', PARTITIONS=1"
    server.ksql(f"CREATE STREAM s (a VARCHAR, n INT) WITH ({with_topic}, KEY='a');")
    server.ksql("INSERT INTO s (ROWTIME, ROWKEY, a, n) VALUES (5, 'x', 'x', 1);")
    server.ksql("CREATE STREAM big AS SELECT * FROM s WHERE n > 0;")
    reply = server.query_reply("SELECT * FROM big LIMIT 1;")
    first, last = (json.loads(line) for line in reply.body.splitlines() if line)
    assert first == {"row": {"columns": [5, "x", "x", 1]}, "errorMessage": None, "finalMessage": None}
    assert last["finalMessage"] == "Limit Reached"
    (listed,) = server.ksql("SHOW STREAMS;")
    assert {"type": "STREAM", "name": "S", "topic": topic_name, "format": "JSON"} in listed["streams"]
    (described,) = server.ksql("DESCRIBE EXTENDED s;")
    assert (described["sourceDescription"]["key"], described["sourceDescription"]["format"]) == (
        "ROWKEY",
        "JSON",
    )
    (explained,) = server.ksql("EXPLAIN SELECT a FROM s;")
    assert explained["queryDescription"]["queryType"] == "PUSH"
    told = server.refused(f"CREATE STREAM t (a VARCHAR) WITH ({with_topic}, KEY='b');").json()["message"]
    assert "The KEY column set in the WITH clause does not exist in the schema: 'B'" in told
    told = server.refused(f"CREATE TABLE t (a VARCHAR) WITH ({with_topic});").json()["message"]
    assert "without providing the KEY column name" in told
    assert server.close() == 0
    # Its streams mean the same at a server that knows today's dialect only.
    new = SqlServerProcess(tmp_path / "new", broker.bootstrap, {"ksql.service.id": server.service_id})
    assert new.rows("SELECT * FROM S;") == [["x", "x", 1]]
    assert new.refused(f"CREATE STREAM t (a VARCHAR) WITH ({with_topic}, KEY='a');").status == 400
    assert new.close() == 0
    assert bugs(server.log) == bugs(new.log) == []
