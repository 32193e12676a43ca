"""Statements about connectors, with a worker of Connect."""

from __future__ import annotations

from pathlib import Path

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import wait_until
from tests.connect.workers import STRINGS, Worker, closing
from tests.sql.servers import SqlServerProcess, bugs


def test_lines_of_a_file_become_rows_of_a_stream(
    broker: PenstockBroker, tmp_path: Path, topic_name: str
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("one\ntwo\n")
    given = {
        "bootstrap.servers": broker.bootstrap,
        "listeners": "http://127.0.0.1:0",
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    worker = Worker(tmp_path / "worker", given, kind="standalone")
    with closing(worker):
        server = SqlServerProcess(tmp_path, broker.bootstrap, {"ksql.connect.url": worker.url})
        (made,) = server.ksql(
            "CREATE SOURCE CONNECTOR lines WITH ('connector.class'='FileStreamSource', "
            f"'file'='{lines}', 'topic'='{topic_name}');"
        )
        assert made["info"]["config"]["file"] == str(lines)

        def is_running() -> bool:
            (listed,) = server.ksql("SHOW SOURCE CONNECTORS;")
            return [each["state"] for each in listed["connectors"]] == ["RUNNING (1/1 tasks RUNNING)"]

        wait_until(is_running, "the connector")
        wait_until(lambda: server.refused(f"ASSERT TOPIC '{topic_name}';").status == 200, "the topic")
        server.ksql(f"CREATE STREAM L (LINE STRING) WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='KAFKA');")
        assert server.rows("SELECT LINE FROM L EMIT CHANGES LIMIT 2;") == [["one"], ["two"]]
        wait_until(
            lambda: server.ksql("DESCRIBE CONNECTOR lines;")[0]["topics"] == [topic_name],
            "the connector's topic",
        )
        (plugins,) = server.ksql("SHOW CONNECTOR PLUGINS;")
        assert any("FileStreamSource" in each["className"] for each in plugins["connectorsPlugins"])
        reply = server.refused("CREATE SOURCE CONNECTOR wrong WITH ('connector.class'='FileStreamSource');")
        assert reply.status == 400
        assert "topic" in reply.json()["message"]
        server.ksql("DROP CONNECTOR lines;")
        assert server.ksql("SHOW CONNECTORS;")[0]["connectors"] == []
        assert server.close() == 0
        assert bugs(server.log) == []
