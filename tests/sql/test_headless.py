"""A server with a file of statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import ProcessFailed
from tests.clients.admin import create_topic
from tests.clients.processors import write
from tests.sql.conftest import bugs
from tests.sql.servers import SqlServerProcess


def test_the_file_runs_at_the_start_and_goes_on_at_the_next(
    broker: PenstockBroker, topic_name: str, name: str, tmp_path: Path
) -> None:
    create_topic(broker.bootstrap, topic_name)
    file = tmp_path / "pipeline.sql"
    file.write_text(
        f"""SET 'auto.offset.reset' = 'earliest';
        CREATE STREAM {name} (K STRING KEY, V STRING) WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='DELIMITED');
        CREATE TABLE T_{name} AS SELECT K, COUNT(*) AS N FROM {name} GROUP BY K;"""
    )
    write(broker.bootstrap, topic_name, [(b"a", b"1"), (b"a", b"2")])
    given = {"ksql.queries.file": str(file)}
    server = SqlServerProcess(tmp_path / "one", broker.bootstrap, given)
    try:
        server.wait_for_rows(f"SELECT * FROM T_{name};", [["a", 2]])
        insert = f"INSERT INTO {name} VALUES ('b', '1');"
        for text in (f"DROP TABLE T_{name} DELETE TOPIC;", insert, "TERMINATE ALL;"):
            reply = server.refused(text)
            assert (reply.status, reply.json()["error_code"]) == (403, 40300)
        for path, body in (
            ("/ksql/terminate", {"deleteTopicList": [".*"]}),
            ("/inserts-stream", f'{{"target": "{name}"}}\n{{"K": "b", "V": "1"}}\n'.encode()),
        ):
            assert server.ask("POST", path, body).json()["error_code"] == 40300
        server.wait_for_rows(
            f"SELECT * FROM T_{name};", [["a", 2]]
        )  # nothing was deleted, and nothing written
        server.ksql(f"ASSERT TOPIC 'T_{name}';")
        ids = server.query_ids()
    finally:
        server.close()
    again = SqlServerProcess(
        tmp_path / "two", broker.bootstrap, {**given, "ksql.service.id": server.service_id}
    )
    try:
        assert again.query_ids() == ids
        write(broker.bootstrap, topic_name, [(b"a", b"3")])
        again.wait_for_rows(f"SELECT * FROM T_{name};", [["a", 3]])
    finally:
        again.close()
    assert bugs(server.log + again.log) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CREATE STREM s;", "line 1:8"),
        (
            "SHOW STREAMS;",
            "only CREATE, INSERT INTO … SELECT, SET and DEFINE may stand there, not: SHOW STREAMS;",
        ),
        ("CREATE STREAM s (v STRING) WITH (KAFKA_TOPIC='no-such', VALUE_FORMAT='JSON');", "no-such"),
    ],
)
def test_a_file_that_cannot_run_stops_the_start_in_words(
    broker: PenstockBroker, tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "pipeline.sql"
    file.write_text(text)
    with pytest.raises(ProcessFailed) as failed:
        SqlServerProcess(tmp_path, broker.bootstrap, {"ksql.queries.file": str(file)})
    assert told in str(failed.value)
    assert "Traceback" not in str(failed.value)
