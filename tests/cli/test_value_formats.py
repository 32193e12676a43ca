"""Records by the schemas of a registry, with penstock produce and penstock consume."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_port
from tests.cli.conftest import Finished, run_command
from tests.clients.admin import create_topic
from tests.clients.processors import write
from tests.conftest import MakeTopic
from tests.registry.registries import RegistryProcess
from tests.registry_of_tests import registry_of_tests

ORDER = (
    '{"type":"record","name":"Order","namespace":"shop","fields":['
    '{"name":"id","type":"int"},{"name":"note","type":["null","string"],"default":null}]}'
)
BAD_ID = 4000
Verb = Callable[..., Finished]


@pytest.fixture(scope="module")
def registry(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    running = RegistryProcess(broker.bootstrap, tmp_path_factory.mktemp("registry"))
    yield running
    assert running.close() == 0


@pytest.fixture
def verb(broker: PenstockBroker, registry: RegistryProcess) -> Verb:
    def run(*words: str, stdin: str | bytes = "", url: str = registry.url) -> Finished:
        environment = {"PENSTOCK_SCHEMA_REGISTRY": url}
        return run_command("penstock", *words, "-b", broker.bootstrap, stdin=stdin, environment=environment)

    return run


@pytest.fixture
def topic(broker: PenstockBroker, topic_name: str) -> str:
    create_topic(broker.bootstrap, topic_name)
    return topic_name


def produce(verb: Verb, topic: str, *words: str, stdin: str | bytes = "") -> Finished:
    return verb("produce", topic, "--acks", "1", *words, stdin=stdin)


def consume(verb: Verb, topic: str, *words: str) -> Finished:
    return verb("consume", topic, "--from-beginning", "--exit", *words)


def test_lines_become_values_of_a_schema_and_lines_again(
    verb: Verb, topic: str, registry: RegistryProcess, tmp_path: Path
) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(ORDER)
    lines = '{"id": 1}\n{"id": 2, "note": "fragile"}\n{"id": 3, "note": {"string": "ü"}}\n'
    done = produce(verb, topic, "--value-format", "avro", "--value-schema", f"@{file}", stdin=lines)
    assert done == ("", "", 0)

    (schema_id,) = registry.ids(f"{topic}-value")
    raw = consume(verb, topic, "-o", "json").out.splitlines()
    first = json.loads(raw[0])
    data = base64.b64decode(first["value_base64"]) if "value_base64" in first else first["value"].encode()
    assert data == b"\0" + schema_id.to_bytes(4, "big") + b"\x02\x00"

    shown = '{"id":1,"note":null}\n{"id":2,"note":{"string":"fragile"}}\n{"id":3,"note":{"string":"ü"}}\n'
    for kind in ("avro", "registry"):
        assert consume(verb, topic, "--value-format", kind) == (shown, "", 0)
    plain = consume(verb, topic, "--value-format", "avro", "--plain", "-o", "json").out.splitlines()
    assert json.loads(plain[2])["value"] == {"id": 3, "note": "ü"}


def test_the_newest_schema_of_the_subject_is_taken_when_none_is_given(
    verb: Verb, topic: str, registry: RegistryProcess
) -> None:
    done = produce(verb, topic, "--value-format", "avro", stdin="1\n")
    assert (done.out, done.code) == ("", 1)
    assert done.err == (
        f"penstock: the values of {topic}: Subject '{topic}-value' not found. "
        "Another schema is chosen with --value-schema or --value-schema-id.\n"
    )
    registry.register(f"{topic}-value", '"int"')
    newest = registry.register(f"{topic}-value", '"long"')
    other = registry.register("others", ORDER)
    assert produce(verb, topic, "7", "--value-format", "registry").code == 0
    by_id = ("--value-format", "avro", "--value-schema-id", str(other))
    assert produce(verb, topic, '{"id": 8}', *by_id).code == 0
    assert consume(verb, topic, "--value-format", "avro").out == '7\n{"id":8,"note":null}\n'
    assert registry.ids(f"{topic}-value")[-1] == newest


def test_keys_have_schemas_of_their_own_and_may_have_the_separator_in_them(
    verb: Verb, topic: str, registry: RegistryProcess
) -> None:
    words = ("--key-format", "avro", "--key-schema", ORDER, "-K", ":")
    done = produce(verb, topic, *words, stdin='{"id": 1, "note": "a:b"}:one\n{"id":2} :two\n')
    assert done == ("", "", 0)
    assert produce(verb, topic, *words[:4], "--key", '{"id": 3}', "--null").code == 0
    shown = consume(verb, topic, "--key-format", "registry", "-f", "%k=%v;")
    assert shown.out == (
        '{"id":1,"note":{"string":"a:b"}}=one;{"id":2,"note":null}=two;{"id":3,"note":null}=null;'
    )
    assert f"{topic}-key" in registry.subjects()


def test_subjects_may_be_named_by_the_record(verb: Verb, topic: str, registry: RegistryProcess) -> None:
    words = ("--value-format", "avro", "--value-schema", ORDER.replace("shop", "named"))
    assert produce(verb, topic, '{"id": 1}', *words, "--subject-name-strategy", "record-name").code == 0
    assert "named.Order" in registry.subjects()
    assert f"{topic}-value" not in registry.subjects()


def test_without_auto_register_the_schema_must_be_there(
    verb: Verb, topic: str, registry: RegistryProcess
) -> None:
    words = ("--value-format", "avro", "--value-schema", '"double"', "--no-auto-register")
    registry.register(f"{topic}-value", '"long"')
    done = produce(verb, topic, "1", *words)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.err.startswith(f"penstock: the values of {topic}: Schema not found. Another schema")
    registry.register(f"{topic}-value", '"double"')
    assert produce(verb, topic, "1", *words).code == 0


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"id": "two"}', "line 2: id: "),
        ("{", "line 2: it is not JSON: "),
        ('{"id": NaN}', "line 2: it is not JSON: NaN is no number of JSON"),
        ('{"id": 2, "note": "\\ud800"}', "line 2: note: "),
        ("[" * 100_000, "line 2: it is not JSON: it is nested too deeply"),
    ],
)  # fmt: skip
def test_a_line_that_does_not_fit_is_told_and_nothing_behind_it_is_written(
    verb: Verb, topic: str, line: str, complaint: str
) -> None:
    words = ("--value-format", "avro", "--value-schema", ORDER)
    done = produce(verb, topic, *words, stdin=f'{{"id": 1}}\n{line}\n{{"id": 3}}\n')
    assert done.err.startswith(f"penstock: {complaint}")
    assert (done.out, done.err.count("\n"), done.code) == ("", 1, 1)
    assert consume(verb, topic, "--value-format", "avro").out == '{"id":1,"note":null}\n'


def test_what_cannot_be_read_is_told_and_reading_goes_on(
    verb: Verb, topic: str, broker: PenstockBroker, registry: RegistryProcess
) -> None:
    schema_id = registry.register(f"{topic}-value", ORDER)
    framed = [b"\0" + number.to_bytes(4, "big") for number in (schema_id, BAD_ID)]
    good = framed[0] + b"\x02\x00"
    values = (good, b"plain text", None, framed[0] + b"\x02", framed[1] + b"\x02", good)
    write(broker.bootstrap, topic, [(b"k", each) for each in values])

    done = consume(verb, topic, "--value-format", "avro")

    assert done.out == '{"id":1,"note":null}\nnull\n{"id":1,"note":null}\n'
    told = done.err.splitlines()
    assert [line.partition(": the value: ")[0] for line in told] == [
        *(f"penstock: {topic}-0@{offset}" for offset in (1, 3, 4)),
        "penstock: 3 records could not be read",
    ]
    assert f"the registry does not have its schema: Schema {BAD_ID} not found" in told[2]
    assert done.code == 1


def test_a_message_of_a_protobuf_schema_is_chosen_by_its_name(verb: Verb, topic: str) -> None:
    schema = 'syntax = "proto3"; package p; message A { int32 a = 1; } message B { int32 b = 1; }'
    words = ("--value-format", "protobuf", "--value-schema", schema, "--message")
    assert produce(verb, topic, '{"b": 5}', *words, "p.B").err == ""
    assert consume(verb, topic, "--value-format", "protobuf").out == '{"b":5}\n'
    done = produce(verb, topic, '{"b": 5}', *words, "p.C")
    assert (
        done.err
        == f"penstock: the values of {topic}: the schema cannot be used: the schema has no message p.C\n"
    )


@pytest.mark.parametrize(
    ("name", "schema", "shown"),
    [
        ("json-schema", '{"type":"object","properties":{"n":{"type":"integer"}}}', '{"n":5}\n'),
        ("protobuf", 'syntax = "proto3"; message M { int32 n = 1; }', '{"n":5}\n'),
    ],
)  # fmt: skip
def test_the_other_kinds_go_in_and_out_too(
    verb: Verb, topic: str, name: str, schema: str, shown: str
) -> None:
    assert produce(verb, topic, '{"n": 5}', "--value-format", name, "--value-schema", schema).err == ""
    assert consume(verb, topic, "--value-format", "registry") == (shown, "", 0)
    done = consume(verb, topic, "--value-format", "avro")
    assert done.err.startswith(f"penstock: {topic}-0@0: the value: its schema (id ")
    assert f"is of {name}, not of avro\n" in done.err


def test_a_registry_that_does_not_answer_ends_the_verbs_at_once(verb: Verb, topic: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    complaint = (
        f"penstock: cannot reach the schema registry at {url}: Connection refused (schema.registry.url)\n"
    )
    words = ("--value-format", "avro", "--schema-registry-url", url)
    assert produce(verb, topic, "1", *words) == ("", complaint, 1)
    write_one = produce(verb, topic, "1", "--value-format", "avro", "--value-schema", '"int"')
    assert write_one.code == 0
    assert consume(verb, topic, *words) == ("", complaint, 1)


def test_the_login_is_in_the_command_config(broker: PenstockBroker, topic: str, tmp_path: Path) -> None:
    with registry_of_tests() as guarded:
        guarded.authorization = "Basic " + base64.b64encode(b"ana:secret").decode()
        guarded.register(f"{topic}-value", '"int"')
        file = tmp_path / "client.properties"
        file.write_text(
            f"bootstrap.servers={broker.bootstrap}\nschema.registry.url={guarded.url}\n"
            "schema.registry.basic.auth.user.info=ana:secret\n"
        )
        config = ("--command-config", str(file))
        assert run_command("penstock", "produce", topic, "5", "--value-format", "avro", *config) == (
            "",
            "",
            0,
        )
        words = ("consume", topic, "--from-beginning", "--exit", "--value-format", "avro")
        assert run_command("penstock", *words, *config) == ("5\n", "", 0)
        at = ("-b", broker.bootstrap, "--schema-registry-url", guarded.url)
        done = run_command("penstock", *words, *at)
        assert (done.out, done.err.count("\n"), done.code) == ("", 1, 1)
        assert done.err.startswith("penstock: Unauthorized (schema.registry.basic.auth.user.info")


@pytest.mark.parametrize(
    "words",
    [
        ("--value-format", "avro", "--value-schema", '"int"', "--value-schema-id", "1"),
        ("--value-schema", '"int"'),
        ("--value-format", "registry", "--value-schema", '"int"'),
        ("--key-format", "avro"),
    ],
)
def test_options_that_do_not_go_together_are_a_wrong_command_line(
    verb: Verb, topic: str, words: tuple[str, ...]
) -> None:
    assert produce(verb, topic, "1", *words).code == 2


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ("order.avsc", "--value-schema: cannot read order.avsc: "),
        ('{"type": "nothing"}', "the schema cannot be used: "),
    ],
)
def test_a_schema_that_is_none_is_told_in_one_line(
    verb: Verb, topic: str, schema: str, complaint: str
) -> None:
    done: Any = produce(verb, topic, "1", "--value-format", "avro", "--value-schema", schema)
    assert complaint in done.err
    assert (done.out, done.err.count("\n"), done.code) == ("", 1, 1)


def test_sql_asks_the_fields_of_values(verb: Verb, topic: str, make_topic: MakeTopic) -> None:
    words = ("--value-format", "avro", "--value-schema", ORDER)
    lines = '{"id": 1}\n{"id": 2, "note": "fragile"}\n'
    assert produce(verb, topic, *words, stdin=lines).code == 0
    assert produce(verb, topic, "no value of a schema").code == 0
    other, plain = make_topic(), make_topic()
    schema = 'syntax = "proto3"; message Name { string name = 1; }'
    named = ("--value-format", "protobuf", "--value-schema", schema)
    assert produce(verb, other, '{"name": "ü"}', *named).code == 0
    assert produce(verb, plain, "text").code == 0

    query = f'select t.value.id, t.value.note from "{topic}" t order by "offset"'
    for kind in ("avro", "registry"):
        done = verb("sql", query, "--value-format", kind, "-o", "csv")
        assert done == ("id,note\n1,NULL\n2,fragile\nNULL,NULL\n".replace("NULL", ""), "", 0)
    joined = (
        f'select t.value.id, o.value.name, p.value from "{topic}" t, "{other}" o, "{plain}" p '
        "where t.value.id = 2"
    )
    done = verb("sql", joined, "--value-format", "registry", "-o", "json")
    assert (done.code, json.loads(done.out)) == (0, [{"id": 2, "name": "ü", "value": "text"}])


def test_sql_tells_of_a_kind_that_is_wrong_and_of_a_registry_that_is_away(verb: Verb, topic: str) -> None:
    assert produce(verb, topic, "1", "--value-format", "avro", "--value-schema", '"int"').code == 0
    query = f'select value from "{topic}"'
    wrong = verb("sql", query, "--value-format", "json-schema")
    assert (wrong.out, wrong.code) == ("", 1)
    assert wrong.err == f"penstock: the schema of '{topic}-value' is AVRO, not JSON: the format is 'avro'\n"
    away = verb("sql", query, "--value-format", "avro", url=f"http://127.0.0.1:{free_port()}")
    assert (away.code, away.err.count("\n")) == (1, 1)
    assert "cannot reach the schema registry" in away.err
