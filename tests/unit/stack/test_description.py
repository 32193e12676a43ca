"""penstock.yaml: every mistake with its line, and what a right file says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from penstock.client.errors import UserError
from penstock.config.topic_options import TOPIC_OPTIONS
from penstock.stack.composition import ServiceWish
from penstock.stack.description.json_schema import json_schema
from penstock.stack.description.model import Description
from penstock.stack.description.reading import read_description, said_data
from penstock.stack.description.yaml_tree import MAX_BYTES, BadDescription
from penstock.stack.services import SERVICES
from penstock.stack.stack import Service
from tests.cli.penstock_with_bell import BELL
from tests.docs.pages import ROOT

AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'
WHOLE = """
name: lab
data: ./kept
listen: 127.0.0.1
zookeeper: {count: 3, port: 2191}
brokers:
  count: 3
  settings:
    num.partitions: 6
    auto.create.topics.enable: false
registry:
rest: true
connect:
  settings: {offset.flush.interval.ms: 500}
  connectors:
    in:
      file: in.json
      config: {tasks.max: 2}
    out:
      config: {connector.class: FileStreamSink, topics: orders}
sql: {script: pipeline.sql, port: 8089}
console: false
topics:
  orders: {partitions: 3, replication: 3, configs: {cleanup.policy: [compact, delete], retention.ms: 60000}}
  events:
schemas:
  orders-value: {file: order.avsc, compatibility: FULL}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "order.avsc").write_text(AVRO)
    (tmp_path / "in.json").write_text(
        json.dumps({"name": "in", "config": {"connector.class": "FileStreamSource", "topic": "a", "b": True}})
    )
    (tmp_path / "pipeline.sql").write_text("CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='t', FORMAT='JSON');")
    return tmp_path


def read(folder: Path, text: str, services: tuple[Service, ...] = SERVICES) -> Description:
    path = folder / "penstock.yaml"
    path.write_text(text)
    return read_description(path, services)


def mistakes(folder: Path, text: str) -> list[tuple[int, str]]:
    with pytest.raises(BadDescription) as caught:
        read(folder, text)
    return [(line, said) for line, said in caught.value.mistakes]


def test_a_whole_file_is_a_wish_and_contents(folder: Path) -> None:
    found = read(folder, WHOLE)
    assert (found.name, found.data) == ("lab", folder / "kept")
    assert found.wish.services == {
        "zookeeper": ServiceWish(3, 2191, None),
        "broker": ServiceWish(3, None, ("num.partitions=6", "auto.create.topics.enable=false")),
        "registry": ServiceWish(1),
        "rest": ServiceWish(1),
        "connect": ServiceWish(1, None, ("offset.flush.interval.ms=500",)),
        "sql": ServiceWish(1, 8089),
    }
    orders, events = found.contents.topics
    assert (orders.name, orders.partitions, orders.replication) == ("orders", 3, 3)
    assert orders.configs == {"cleanup.policy": "compact,delete", "retention.ms": "60000"}
    assert (events.partitions, events.replication, events.configs) == (None, None, {})
    (schema,) = found.contents.schemas
    assert (schema.subject, schema.kind, schema.compatibility, schema.text) == (
        "orders-value", "AVRO", "FULL", AVRO,
    )  # fmt: skip
    of_file, of_yaml = found.contents.connectors
    assert of_file.config == {
        "name": "in",
        "connector.class": "FileStreamSource",
        "topic": "a",
        "b": "true",
        "tasks.max": "2",
    }
    assert of_yaml.config["topics"] == "orders"
    assert found.contents.script is not None
    assert found.contents.script.path == folder / "pipeline.sql"


def test_a_stack_of_one_broker_needs_one_word(folder: Path) -> None:
    found = read(folder, "brokers:\n")
    assert found.wish.services == {"broker": ServiceWish(1)}
    assert found.data == folder / "penstock-data"
    assert found.contents.is_empty


def test_a_new_row_of_the_table_of_services_can_be_said_without_another_word(folder: Path) -> None:
    assert read(folder, "bell: {port: 0}", (*SERVICES, BELL)).wish.services["bell"] == ServiceWish(1, 0)
    assert mistakes(folder, "bell: {port: 0}")[0][1].startswith("there is no `bell` here")


def test_anchors_and_merges_are_read_and_names_with_x_are_nobodys(folder: Path) -> None:
    text = "x-usual: &usual {partitions: 4}\ntopics:\n  a: *usual\n  b: {<<: *usual, partitions: 2}\n"
    assert [(one.name, one.partitions) for one in read(folder, text).contents.topics] == [("a", 4), ("b", 2)]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("nmae: lab", 1, "there is no `nmae` here; did you mean `name`?"),
        ("brokers:\n  cuont: 3", 2, "there is no `cuont` below `brokers`; did you mean `count`?"),
        ("topics:\n  a: {}\n  b: {}\n  a: {}", 4, "`a` is here twice; the first one is on line 2"),
        ("brokers: {count: three}", 1, "`count` is a whole number from 1 to 100, and here is 'three'"),
        ("zookeeper: {count: 2}", 1, "`count` is 1 or 3, and here is '2'"),
        ("brokers: [1, 2]", 1, "`brokers` has names below it (count, port, settings), and here is a list"),
        ("brokers: {port: 66000}", 1, "`port` is a whole number from 0 to 65535, and here is '66000'"),
        ("secure: yes", 1, "`secure` is true or false, and here is 'yes'"),
        ("name: Läb", 1, "`name` is a name of small letters, digits, - and _, not 'Läb'"),
        ("brokers:\n  settings:\n    num.partitons: 3", 3, "unknown option num.partitons; did you mean num.partitions?"),
        ("brokers: {settings: {num.partitions: many}}", 1,
         "Invalid value many for configuration num.partitions: Not a number of type INT"),
        ("registry:\n  settings: {schema.compatibility.levl: full}", 2,
         "there is no property schema.compatibility.levl; did you mean schema.compatibility.level?"),
        ("rest: {settings: {listeners: 'http://:1'}}", 1, "`listeners` is not for you to set: the stack says it"),
        ("connect: {settings: {offset.flush.interval.ms: soon}}", 1,
         "offset.flush.interval.ms: Invalid value soon for configuration offset.flush.interval.ms: Not a number of type LONG"),
        ("topics:\n  orders: {replication: 3}", 2, "topic `orders` has replication 3, and there is 1 broker"),
        ("brokers: {count: 2}\ntopics:\n  orders: {replication: 3}", 3,
         "topic `orders` has replication 3, and there are 2 brokers"),
        ("topics:\n  orders:\n    configs:\n      clenup.policy: compact", 4,
         "topics have no config `clenup.policy`; did you mean `cleanup.policy`?"),
        ("topics:\n  orders:\n    configs: {cleanup.policy: shred}", 3,
         "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete"),
        ("topics:\n  orders:\n    configs: {retention.ms: }", 3, "`retention.ms` takes a value, and here is nothing"),
        ("topics: {a/b: }", 1,
         "a topic cannot be called so: 'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("topics:\n  a.b:\n  a_b:", 3, "topics `a.b` and `a_b` differ in '.' and '_' only, which brokers refuse"),
        ("brokers: {count: 3, port: 8080}\nregistry: {port: 8082}", 2,
         "brokers and registry would both have port 8082: give one of them another `port`"),
        ("brokers: {count: 3, port: 65534}", 1, "the ports of brokers would go beyond 65535"),
        ("schemas:\n  a-value: {file: order.avsc}", 1,
         "schemas need a schema registry: write `registry:` on a line of its own"),
        ("registry:\nschemas: {a: {file: order.avsc, type: AVR}}", 2,
         "`type` is one of AVRO, JSON, PROTOBUF, not 'AVR'; did you mean AVRO?"),
        ("registry:\nschemas: {a: {file: order.avsc, compatibility: backwrd}}", 2,
         "`compatibility` is one of NONE, BACKWARD, BACKWARD_TRANSITIVE, FORWARD, FORWARD_TRANSITIVE, FULL, FULL_TRANSITIVE, "
         "not 'backwrd'; did you mean BACKWARD?"),
        ("registry:\nschemas: {a: {type: AVRO}}", 2, "schema `a` needs a `file`"),
        ("connect:\n  connectors:\n    out: {config: {topics: a}}", 3,
         "connector `out` needs `connector.class`: what it is"),
        ("connect:\n  connectors:\n    out:", 3, "connector `out` needs a `config`, or a `file` that has one"),
        ("connect:\n  connectors:\n    other: {file: in.json}", 3,
         "connector `other` is called 'in' in its configuration"),
        ("connect:\n  connectors:\n    out:\n      config: {connector.class: FileStreemSink, topics: a}", 4,
         "connector `out`: there is no connector FileStreemSink; did you mean "
         "org.apache.kafka.connect.file.FileStreamSinkConnector?"),
        ("connect:\n  connectors:\n    out:\n      config:\n        connector.class: FileStreamSink\n        tasks.max: two", 6,
         "connector `out`: Invalid value two for configuration tasks.max: Not a number of type INT"),
        ("connect:\n  connectors:\n    out:\n      config: {connector.class: FileStreamSink, topic.regex: a}", 4,
         "connector `out`: the connector has no `topic.regex`; did you mean `topics.regex`?"),
        ("connect:\n  connectors:\n    in:\n      config: {connector.class: FileStreamSource}", 3,
         "connector `in`: Missing required configuration \"topic\" which has no default value."),
        ("secure: true\nspark:", 2,
         "a Spark master asks nobody who they are, so it is no part of a secured stack: leave out `spark`"),
        ("a: b: c", 1, "mapping values are not allowed here"),
        ("brokers:\n\tcount: 1", 2,
         "found character '\\t' that cannot start any token (YAML takes blanks for indentation, no tabs)"),
        ("topics:\n  ? [a]\n  : {}", 2, "a name was expected here"),
        ("- brokers", 1, "the file has names (name, data, listen, secure, "),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_the_nearest_right_word(
    folder: Path, text: str, line: int, said: str
) -> None:
    found = mistakes(folder, text)
    assert any(at == line and told.startswith(said) for at, told in found), found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("registry:\nschemas: {a: {file: ordr.avsc}}", "no such file or directory; did you mean order.avsc?"),
        ("connect: {connectors: {a: {file: nowhere.json}}}", "nowhere.json: no such file or directory"),
        ("sql: {script: .}", "is a directory"),
    ],
)
def test_a_file_that_is_not_there_is_told(folder: Path, text: str, said: str) -> None:
    assert any(said in told for _, told in mistakes(folder, text))


def test_what_is_wrong_inside_other_files_is_told(folder: Path) -> None:
    (folder / "order.avsc").write_text('{"type": "recrd"}')
    (folder / "in.json").write_text("{")
    (folder / "pipeline.sql").write_text(
        "CREATE STREAM s (a INT) WITH (FORMAT='JSON');\nINSERT INTO s VALUES (1);"
    )
    told = "\n".join(said for _, said in mistakes(folder, WHOLE))
    assert "order.avsc is no AVRO schema" in told
    assert "in.json is no JSON" in told
    assert "pipeline.sql: line 2: only CREATE, INSERT INTO … SELECT, SET and DEFINE may stand here" in told


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines(folder: Path) -> None:
    with pytest.raises(BadDescription) as caught:
        read(folder, "nmae: x\nbrokers: {count: 0}\ntopics:\n  a: {partitions: 0}\n  b: {replication: 9}\n")
    lines = str(caught.value).splitlines()
    assert lines[0] == "penstock.yaml has 4 mistakes, and nothing was started:"
    assert [int(re.match(r".*penstock\.yaml:(\d+): ", line)[1]) for line in lines[1:]] == [1, 2, 4, 5]  # type: ignore[index]


def test_a_file_that_is_too_large_empty_or_no_text_is_told_in_one_line(folder: Path) -> None:
    path = folder / "penstock.yaml"
    for data, said in (
        (b"x" * (MAX_BYTES + 1), "is larger than"),
        (b"# nothing\n", "is empty"),
        (b"brokers:\n\xff: 1", "2: this is not UTF-8"),
        (b"[" * 100_000, "is nested too deeply"),
    ):
        path.write_bytes(data)
        with pytest.raises(UserError, match=said):
            read_description(path, SERVICES)
    path.unlink()
    with pytest.raises(UserError, match=r"cannot read .*no such file"):
        read_description(path, SERVICES)


def test_a_file_that_names_itself_over_and_over_ends(folder: Path) -> None:
    assert mistakes(folder, "topics: &a\n  t: *a\n") != []
    assert mistakes(folder, "brokers: &a\n  <<: *a\n  count: 0\n") != []


def test_where_the_stack_is_can_be_read_whatever_else_is_wrong(folder: Path) -> None:
    path = folder / "penstock.yaml"
    path.write_text("data: there\nbrokers: {cuont: 3}\n")
    assert said_data(path) == folder / "there"
    path.write_text("brokers: {cuont: 3}\n")
    assert said_data(path) == folder / "penstock-data"
    path.write_text("a: b: c")
    with pytest.raises(UserError, match="Name the stack's directory with --data"):
        said_data(path)


# ---------------------------------------------------------------------------------------- the schema of editors


def judged(text: str) -> list[str]:
    validator = jsonschema_rs.validator_for(json_schema(SERVICES))
    loaded: Any = yaml.safe_load(text)
    return [error.message for error in validator.iter_errors(loaded)]


def test_the_schema_of_editors_takes_what_the_check_takes() -> None:
    assert judged(WHOLE) == []
    assert judged("brokers:\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "nmae: x",
        "brokers: {cuont: 3}",
        "brokers: {count: three}",
        "zookeeper: {count: 2}",
        "topics: {a: {configs: {clenup.policy: compact}}}",
        "schemas: {a: {file: x, type: AVR}}",
        "rest: {port: 66000}",
    ],
)
def test_the_schema_of_editors_refuses_what_the_check_refuses(folder: Path, text: str) -> None:
    assert judged(text) != []
    assert mistakes(folder, text) != []


def test_editors_complete_configs_of_topics_with_what_they_mean() -> None:
    topics = json_schema(SERVICES)["properties"]["topics"]["additionalProperties"]
    known = topics["properties"]["configs"]["properties"]
    assert known["retention.ms"]["description"] == TOPIC_OPTIONS["retention.ms"].doc
    assert set(TOPIC_OPTIONS) <= set(known)


@pytest.mark.parametrize("key", ["brokers", "registry", "rest", "connect", "sql", "console"])
def test_each_service_knows_its_settings(folder: Path, key: str) -> None:
    (problem,) = mistakes(folder, f"{key}:\n  settings:\n    surely.not.there: 1\n")
    assert problem[0] == 3
    assert re.search(r"(unknown option|there is no (property|setting)) surely\.not\.there", problem[1])


def test_the_page_of_reference_and_the_schema_in_deploy_are_those_of_the_table() -> None:
    script = str(ROOT / "scripts" / "generate_stack_reference.py")
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
