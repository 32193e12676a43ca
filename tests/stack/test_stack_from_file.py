"""penstock up --file: a stack with all that shall be in it, again and again; and what is told where it cannot be so."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.admin import Cluster
from penstock.admin.facets.configs import ConfigResource
from penstock.client.schema_registry import SchemaRegistry
from penstock.sql.client.service import SqlServer
from penstock.stack.services import SERVICES
from tests.cli.boxes import ELSEWHERE, TestBox
from tests.cli.conftest import BIN, Finished, run_command

pytestmark = pytest.mark.timeout(300)

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
PORTS = "brokers: {port: 0}\nzookeeper: {port: 0}\n"
WHOLE = """
data: ./kept
brokers: {port: 0, settings: {num.partitions: 2, zookeeper.session.timeout.ms: 3000}}
zookeeper: {port: 0}
registry: {port: 0}
connect:
  port: 0
  settings: {penstock.connect.master: none}
  connectors:
    orders-to-file:
      config:
        connector.class: org.apache.kafka.connect.file.FileStreamSinkConnector
        topics: orders
        file: OUT
        tasks.max: 1
sql: {port: 0, script: pipeline.sql}
topics:
  orders: {partitions: 3, replication: 1, configs: {retention.ms: 60000}}
  events:
schemas:
  orders-value: {file: order.avsc, compatibility: FULL}
"""
SCRIPT = """
SET 'auto.offset.reset' = 'earliest';
CREATE TYPE address AS STRUCT<street VARCHAR>;
-- What comes in.
CREATE STREAM orders (id VARCHAR) WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON');
"""


class Folder:
    """A folder with a penstock.yaml, in which commands are run as a user runs them."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path = path
        self.box = TestBox(path / "kept")

    def write(self, text: str, **files: str) -> None:
        (self.path / "penstock.yaml").write_text(text.replace("OUT", str(self.path / "out.txt")))
        for name, content in files.items():
            (self.path / name.replace("_", ".")).write_text(content)

    def run(self, *words: str) -> Finished:
        return run_command("penstock", *words, cwd=self.path, environment=ELSEWHERE)

    def url(self, service: str) -> str:
        members = json.loads((self.box.directory / "box.json").read_text())["members"]
        return next(f"http://127.0.0.1:{one['port']}" for one in members if one["service"] == service)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path / "lab")
    yield made
    made.box.close()


def of_url(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def test_a_stack_is_made_of_its_file_and_made_again_only_where_the_file_is_new(folder: Folder) -> None:
    folder.write(WHOLE, order_avsc=json.dumps(ORDER), pipeline_sql=SCRIPT)
    assert folder.run("up", "--check").out == "penstock.yaml is right\n"
    assert not folder.box.directory.exists()

    started = folder.run("up")
    assert started.code == 0, started.err
    assert started.err.startswith("As penstock.yaml says:\n")
    _check_all_is_there(folder)

    again = folder.run("up", "--file", "penstock.yaml")
    assert again.code == 0, again.err
    assert "What penstock.yaml says: 6 as they shall be, 0 made or changed\n" in again.err

    second = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}  # type: ignore[misc]
    changed = WHOLE.replace("partitions: 3", "partitions: 5").replace("60000}", "90000}")
    changed = changed.replace("  events:\n", "").replace("tasks.max: 1", "tasks.max: 2")
    folder.write(changed, order_avsc=json.dumps(second), pipeline_sql=SCRIPT.replace("id VARCHAR", "id INT"))
    third = folder.run("up")
    assert third.code == 0, third.err
    for sentence in (
        "topic orders has 5 partitions now, 3 before",
        "topic orders got retention.ms=90000 (60000 before)",
        "schema orders-value has a new version (id 2)",
        "connector orders-to-file was changed (tasks.max)",
        "topic events is in penstock.yaml no more, and stays: penstock topics delete events removes it",
    ):
        assert sentence in third.err
    assert re.search(
        r"stream ORDERS is there and differs: it has 'VARCHAR\) WITH .* has 'INT\) WITH ", third.err
    )

    folder.write(WHOLE, order_avsc=json.dumps(second), pipeline_sql=SCRIPT)
    back = folder.run("up")
    line = next(n for n, text in enumerate(WHOLE.splitlines(), start=1) if "orders: {partitions" in text)
    assert (
        f"topic orders has 5 partitions, and 3 in penstock.yaml:{line}: partitions cannot be taken away"
        in back.err
    )
    with Cluster(folder.box.bootstrap) as cluster:
        assert {one.name: one.partitions for one in cluster.topics.list()}.items() >= {
            ("orders", 5),
            ("events", 2),
        }

    _check_commands(folder)


def _check_all_is_there(folder: Folder) -> None:
    with Cluster(folder.box.bootstrap) as cluster:
        there = {one.name: one.partitions for one in cluster.topics.list()}
        assert (there["orders"], there["events"]) == (3, 2)
        configs = {one.name: one.value for one in cluster.configs.describe(ConfigResource.topic("orders"))}
        assert configs["retention.ms"] == "60000"
    registry = SchemaRegistry(folder.url("registry"))
    assert json.loads(registry.latest("orders-value").text)["name"] == "Order"
    assert of_url(folder.url("registry") + "/config/orders-value")["compatibilityLevel"] == "FULL"
    assert of_url(folder.url("connect") + "/connectors") == ["orders-to-file"]
    (streams,) = SqlServer(folder.url("sql")).statements("SHOW STREAMS;", {}, {}, None)
    assert [one["name"] for one in streams["streams"]] == ["ORDERS"]


def _check_commands(folder: Folder) -> None:
    """They find the stack by the file, too."""
    assert json.loads(folder.run("status", "--file", "penstock.yaml", "-o", "json").out)["healthy"] is True
    since = folder.run("logs", "--since", "10m", "broker", "registry")
    assert since.code == 0
    assert since.out.splitlines()[0].startswith("broker-1 | [")
    assert len(folder.run("logs", "broker", "--tail", "1").out.splitlines()) == 1
    before = folder.box.pids()
    restarted = folder.run("restart", "registry", "broker-1")
    assert restarted.code == 0, restarted.err
    after = folder.box.pids()
    assert {name for name in before if before[name] != after[name]} == {"registry", "broker-1"}
    (folder.box.directory / "mine.txt").write_text("mine")
    asked = folder.run("down", "--volumes")
    assert asked.code == 1
    assert "say --yes where nobody can be asked" in asked.err
    assert folder.box.pids() == after
    removed = folder.run("down", "--volumes", "--yes")
    assert removed.code == 0, removed.err
    assert [path.name for path in folder.box.directory.iterdir()] == ["mine.txt"]


def test_nothing_is_started_where_the_file_has_a_mistake(folder: Folder) -> None:
    folder.write("brokers: {cuont: 3}\ntopics:\n  a: {replication: 2}\n")
    done = folder.run("up", "--file", "penstock.yaml")
    assert done.code == 1
    assert done.err == (
        "penstock: penstock.yaml has 2 mistakes, and nothing was started:\n"
        "penstock.yaml:1: there is no `cuont` below `brokers`; did you mean `count`?\n"
        "penstock.yaml:3: topic `a` has replication 2, and there is 1 broker\n"
    )
    assert [path.name for path in folder.path.iterdir()] == ["penstock.yaml"]


def test_what_brokers_and_services_refuse_is_told_with_its_line_and_the_rest_is_made(folder: Folder) -> None:
    text = (
        "data: kept\n" + PORTS + "registry: {port: 0}\n"
        "topics:\n  good:\n  bad: {configs: {segment.ms: 1, retention.ms: 0}}\n"
        "schemas:\n  a-value: {file: order.avsc, compatibility: FULL}\n"
    )
    folder.write(text, order_avsc=json.dumps(ORDER))
    assert folder.run("up").code == 0
    other = {**ORDER, "fields": [{"name": "number", "type": "int"}]}
    folder.write(text.replace("  good:\n", "  good:\n  more:\n"), order_avsc=json.dumps(other))
    done = folder.run("up")
    assert done.code == 1
    assert re.search(r"✗ penstock.yaml:\d+: schema a-value: .*incompatible", done.err), done.err
    assert "topic more was made" in done.err
    assert ", 1 failed" in done.err
    assert folder.box.status()["healthy"]


def test_a_service_that_dies_at_once_is_told_with_the_end_of_its_log(folder: Folder) -> None:
    folder.write(
        "data: kept\n" + PORTS + "registry: {port: 0, settings: {penstock.subject.acls.file: /nowhere}}\n"
    )
    done = folder.run("up")
    assert done.code == 1
    assert "penstock: registry ended: the end of " in done.err
    assert "registry.log" in done.err
    assert "Traceback" not in done.err
    assert "what was started goes on: penstock down stops it" in done.err
    assert folder.run("down").code == 0


def test_a_port_that_is_taken_is_told_with_who_has_it_and_where_to_change_it(folder: Folder) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        folder.write(f"data: kept\n{PORTS}registry: {{port: {port}}}\n")
        done = folder.run("up")
    assert done.code == 1
    assert f"registry cannot use port {port} (address already in use): stop " in done.err
    assert (
        f"(pid {os.getpid()}), which uses it, or give it another `port` below `registry` in penstock.yaml"
        in done.err
    )
    assert "--registry-port" in done.err
    assert folder.box.pids() == {}


def test_all_services_come_up_together_and_a_watch_ends_when_they_are_removed(tmp_path: Path) -> None:
    box = TestBox(tmp_path / "box")
    ports = [word for service in SERVICES for word in (service.port_option, "0")]
    command = [str(BIN / "penstock"), "up", "--all", "--foreground", *ports, "--data", str(box.directory)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as up:
        try:
            assert up.stderr is not None
            said = ""
            for line in up.stderr:
                said += line
                if line.startswith("Watching."):
                    break
            assert up.poll() is None, said
            services = {one["service"]: one["healthy"] for one in box.status()["services"]}
            assert services == dict.fromkeys(
                {service.name for service in SERVICES} - {"spark", "spark-worker"}, True
            )
            assert box.run("down", "--volumes", "--yes").code == 0
            assert "Traceback" not in up.stderr.read()
            assert up.wait(60) == 0
            assert not box.directory.exists()
        finally:
            up.kill()
            box.close()


def test_options_that_the_file_says_do_not_go_with_it_and_ports_do(folder: Folder) -> None:
    folder.write("data: kept\nbrokers:\n")
    refused = folder.run("up", "--file", "penstock.yaml", "--brokers", "3")
    assert refused.err == "penstock: --brokers does not go with --file: write it into penstock.yaml\n"
    moved = folder.run("up", "--file", "penstock.yaml", "--port", "0", "--zookeeper-port", "0")
    assert moved.code == 0, moved.err
    fewer = folder.run("up", "--file", "penstock.yaml")
    assert fewer.code == 0, fewer.err


def test_members_that_the_file_has_no_more_are_told_and_go_on(folder: Folder) -> None:
    folder.write("data: kept\n" + PORTS + "registry: {port: 0}\n")
    assert folder.run("up").code == 0
    port = folder.url("registry").rpartition(":")[2]
    folder.write(f"data: kept\nbrokers: {{port: {port}}}\nzookeeper: {{count: 3, port: 0}}\n")
    again = folder.run("up")
    assert again.code == 0, again.err
    assert "registry is in " in again.err
    assert "(penstock down --only registry stops it)" in again.err
    assert f"and penstock.yaml says {port}: it stays" in again.err
    assert "there are 1 ZooKeeper servers, and penstock.yaml says 3: that stays so" in again.err
    assert "registry runs already" in again.err


def test_a_secured_stack_has_its_contents_by_the_admins_login(folder: Folder) -> None:
    text = WHOLE.replace("data:", "secure: true\ndata:").replace("sql: {port: 0, script: pipeline.sql}\n", "")
    folder.write(text, order_avsc=json.dumps(ORDER))
    started = folder.run("up")
    assert started.code == 0, started.err
    assert "connector orders-to-file was made" in started.err
    again = folder.run("up")
    assert "What penstock.yaml says: 4 as they shall be, 0 made or changed\n" in again.err
    assert folder.run("down", "--volumes", "--yes").code == 0
    assert not folder.box.directory.exists()


def test_a_spark_master_comes_with_a_worker(folder: Folder) -> None:
    folder.write(
        "data: kept\n"
        + PORTS
        + "spark: {port: 0}\nspark-worker: {port: 0, settings: {cores: 1, memory: 512m}}\n"
    )
    started = folder.run("up")
    assert started.code == 0, started.err
    worker = of_url(folder.url("spark-worker") + "/json/")
    assert (worker["cores"], worker["memory"]) == (1, 512)
    stopped = folder.run("down", "--volumes", "--yes")
    assert stopped.code == 0, stopped.err
    assert not folder.box.directory.exists()
