"""Confluent's console tools for values with schemas, with the command lines that its documentation shows."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import Finished, run_command
from tests.clients.admin import create_topic
from tests.clients.processors import write
from tests.registry.registries import RegistryProcess
from tests.registry_of_tests import registry_of_tests

RECORD = (
    '{"type":"record","name":"myrecord","fields":['
    '{"name":"f1","type":"string"},{"name":"f2","type":["null","double"],"default":null}]}'
)
Tool = Callable[..., Finished]


@pytest.fixture(scope="module")
def registry(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    running = RegistryProcess(broker.bootstrap, tmp_path_factory.mktemp("registry"))
    yield running
    assert running.close() == 0


@pytest.fixture
def topic(broker: PenstockBroker, topic_name: str) -> str:
    create_topic(broker.bootstrap, topic_name)
    return topic_name


@pytest.fixture
def tool(broker: PenstockBroker, registry: RegistryProcess, topic: str) -> Tool:
    """`tool("avro-console-producer", "value.schema=…")`: words with an equals sign and no dash are properties."""

    def run(name: str, *words: str, stdin: str = "") -> Finished:
        given = [f"schema.registry.url={registry.url}", *words]
        options = [part for word in given for part in ([word] if word[:2] == "--" else ["--property", word])]
        if name.endswith("consumer"):
            options += ["--timeout-ms", "15000"]
            options += [] if "--partition=0" in words else ["--from-beginning"]
        else:
            options += ["--request-required-acks", "1", "--timeout", "5"]
        at = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
        return run_command(f"kafka-{name}", *at, *options, stdin=stdin)

    return run


def consumed(count: int) -> str:
    return f"Processed a total of {count} messages\n"


def test_values_go_in_and_come_out_as_json(tool: Tool, registry: RegistryProcess, topic: str) -> None:
    lines = '{"f1": "value1"}\n{"f1": "ü", "f2": {"double": 0.5}}\n'
    assert tool("avro-console-producer", f"value.schema={RECORD}", stdin=lines) == ("", "", 0)
    (schema_id,) = registry.ids(f"{topic}-value")
    shown = tool("avro-console-consumer", "print.schema.ids=true", "--max-messages=2")
    assert shown == (
        f'{{"f1":"value1","f2":null}}\t{schema_id}\n{{"f1":"ü","f2":{{"double":0.5}}}}\t{schema_id}\n',
        consumed(2),
        0,
    )


def test_keys_have_a_schema_or_a_serializer(tool: Tool, registry: RegistryProcess, topic: str) -> None:
    schemas = ('value.schema={"type":"string"}', 'key.schema={"type":"int"}')
    words = ("parse.key=true", "null.marker=NULL")
    assert tool("avro-console-producer", *schemas, *words, stdin='1\t"a"\n2\tNULL\n').err == ""
    shown = tool("avro-console-consumer", "print.key=true", "key.separator=|", "--max-messages=2")
    assert shown.out == '1|"a"\n2|null\n'
    assert set(registry.subjects()) >= {f"{topic}-value", f"{topic}-key"}

    words = ("parse.key=true", "key.serializer=org.apache.kafka.common.serialization.LongSerializer")
    assert tool("avro-console-producer", schemas[0], *words, stdin='7\t"b"\n').err == ""
    deserializer = "key.deserializer=org.apache.kafka.common.serialization.LongDeserializer"
    last = ("--partition=0", "--offset=2", "--max-messages=1")
    assert tool("avro-console-consumer", "print.key=true", deserializer, *last).out == '7\t"b"\n'


def test_a_schema_may_be_in_a_file_or_known_by_its_id_or_the_newest(
    tool: Tool, registry: RegistryProcess, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "f.avsc"
    file.write_text(RECORD)
    registry.put(f"/config/{topic}-value", {"compatibility": "NONE"})
    other = registry.register("other", '"string"')
    for words, line in (
        ((f"value.schema.file={file}",), '{"f1": "a"}\n'),
        ((f"value.schema.id={other}",), '"b"\n'),
        ((f"value.schema={RECORD}", "use.latest.version=true"), '"c"\n'),
    ):
        assert tool("avro-console-producer", *words, stdin=line) == ("", "", 0)
    assert registry.ids(f"{topic}-value")[1] == other  # where Confluent's registers it, too
    assert tool("avro-console-consumer", "--max-messages=3").out == '{"f1":"a","f2":null}\n"b"\n"c"\n'


def test_a_line_that_does_not_fit_is_told_with_its_number(tool: Tool) -> None:
    lines = '{"f1": "a"}\n{"f1": 5}\n{"f1": "c"}\n'
    done = tool("avro-console-producer", f"value.schema={RECORD}", stdin=lines)
    assert done.err.startswith(
        "org.apache.kafka.common.errors.SerializationException: The value on line number 2 does not fit its schema: f1: "
    )
    assert (done.out, done.err.count("\n"), done.code) == ("", 1, 1)
    assert tool("avro-console-consumer", "--max-messages=1").out == '{"f1":"a","f2":null}\n'


def test_without_a_schema_the_producer_says_what_it_needs(tool: Tool) -> None:
    done = tool("avro-console-producer", stdin="1\n")
    assert done == (
        "",
        "kafka-avro-console-producer: Must provide the value schema in either value.schema, value.schema.id, "
        "or value.schema.file\n",
        1,
    )


def test_a_value_that_is_none_ends_the_consumer_unless_it_is_to_skip_it(
    tool: Tool, registry: RegistryProcess, broker: PenstockBroker, topic: str
) -> None:
    schema_id = registry.register(f"{topic}-value", '"int"')
    good = struct.pack(">bi", 0, schema_id) + b"\x02"
    write(broker.bootstrap, topic, [(b"k", good), (b"k", b"text"), (b"k", good)])
    done = tool("avro-console-consumer", "--max-messages=3")
    told = f"Error processing message at {topic}-0@1: it does not begin with the id of a schema (a zero byte and four more)"
    assert done == ("1\n", f"ERROR {told}\n{consumed(2)}", 1)
    done = tool("avro-console-consumer", "--max-messages=3", "--skip-message-on-error")
    assert (done.out, done.code) == ("1\n1\n", 0)


@pytest.mark.parametrize(
    ("name", "schema", "line", "shown"),
    [
        ("json-schema", '{"type":"object"}', '{"f1": "a"}', '{"f1":"a"}'),
        ("protobuf", 'syntax = "proto3"; message M { int64 user_id = 1; string f2 = 2; }',
         '{"user_id": 5}', '{"userId":"5","f2":""}'),
    ],
)  # fmt: skip
def test_the_other_kinds_have_tools_of_their_own(
    tool: Tool, name: str, schema: str, line: str, shown: str
) -> None:
    assert tool(f"{name}-console-producer", f"value.schema={schema}", stdin=f"{line}\n") == ("", "", 0)
    assert tool(f"{name}-console-consumer", "--max-messages=1") == (f"{shown}\n", consumed(1), 0)
    assert "is of" in tool("avro-console-consumer", "--max-messages=1").err


def test_kafka_s_own_tools_take_the_classes_and_a_login(broker: PenstockBroker, topic: str) -> None:
    with registry_of_tests() as guarded:
        guarded.authorization = "Basic " + base64.b64encode(b"ana:secret").decode()
        at = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
        login = ("basic.auth.credentials.source=USER_INFO", "schema.registry.basic.auth.user.info=ana:secret")
        given = (f"schema.registry.url={guarded.url}", *login)
        reading = [f"--reader-property={each}" for each in (*given, 'value.schema="string"')]
        done = run_command(
            "kafka-console-producer", *at, "--line-reader", "io.confluent.kafka.formatter.AvroMessageReader", *reading,
            "--request-required-acks", "1", stdin='"x"\n',
        )  # fmt: skip
        assert done == ("", "", 0)
        done = run_command(
            "kafka-console-consumer", *at, "--formatter", "io.confluent.kafka.formatter.AvroMessageFormatter",
            *(f"--formatter-property={each}" for each in given), "--from-beginning", "--max-messages", "1",
        )  # fmt: skip
        assert done == ('"x"\n', consumed(1), 0)
