"""Values with the ids of schemas, and what is asked of a registry for them."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.arrow import registry_values
from penstock.arrow.registry_schemas import Registry, SchemaText, WriteFormat, registry_of
from penstock.arrow.registry_values import RegistryValues
from penstock.arrow.registry_writing import encoded, encoded_by_topic
from penstock.client.errors import BadOption, UserError
from penstock.schemas.model import AVRO
from tests.small_registry import SmallRegistry, small_registry

OLD = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}
NEW = {**OLD, "fields": [{"name": "id", "type": "long"}, {"name": "more", "type": "string", "default": "?"}]}


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as running:
        yield running


def framed(schema_id: int, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + data


def test_a_schema_is_asked_for_once(registry: SmallRegistry) -> None:
    old, new = registry.add("t-value", OLD), registry.add("t-value", NEW)
    values = RegistryValues(Registry(registry.url), SchemaText(AVRO, json.dumps(NEW), id=new))
    column = pa.array([framed(old, b"\x02"), framed(new, b"\x04\x02x"), framed(old, b"\x06"), None])
    for _ in range(3):
        found = values.read(column)
        assert found.column.to_pylist() == [
            {"id": 1, "more": "?"},
            {"id": 2, "more": "x"},
            {"id": 3, "more": "?"},
            None,
        ]
        assert not found.why
    assert registry.asked == [f"GET /schemas/ids/{old}"]


def test_values_that_are_none_do_not_make_a_request_each(registry: SmallRegistry) -> None:
    new = registry.add("t-value", NEW)
    values = RegistryValues(Registry(registry.url), SchemaText(AVRO, json.dumps(NEW), id=new))
    column = pa.array([framed(1000 + number, b"") for number in range(5000)])
    for _ in range(2):
        found = values.read(column)
        assert len(found.why) == 5000
    assert len(registry.asked) <= 2 * registry_values.MAX_FAILED_LOOKUPS
    assert found.why[0] == "schema 1000: Schema not found"


def test_more_schemas_than_are_kept_begin_anew(
    registry: SmallRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_values, "MAX_WRITERS", 3)
    ids = [
        registry.add("t-value", {**OLD, "fields": [*OLD["fields"], {"name": f"x{n}", "type": "null"}]})  # type: ignore[misc]
        for n in range(5)
    ]
    values = RegistryValues(Registry(registry.url), SchemaText(AVRO, json.dumps(OLD)))
    for _ in range(2):
        for schema_id in ids:
            found = values.read(pa.array([framed(schema_id, b"\x02")]))
            assert found.column.to_pylist() == [{"id": 1}]


def test_a_registry_that_comes_back_is_asked_again(
    registry: SmallRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = registry.add("t-value", OLD)
    monkeypatch.setattr(registry_values, "AWAY_FOR_S", 0.0)
    values = RegistryValues(Registry("http://127.0.0.1:1"), SchemaText(AVRO, json.dumps(OLD)))
    column = pa.array([framed(old, b"\x02")])
    assert "cannot reach the schema registry" in values.read(column).why[0]
    values._registry = Registry(registry.url)
    assert values.read(column).column.to_pylist() == [{"id": 1}]


def test_rows_of_several_topics_have_the_schemas_of_their_own(registry: SmallRegistry) -> None:
    how = WriteFormat(Registry(registry.url), "avro", use_latest=True)
    for topic, schema in (("a", OLD), ("b", NEW)):
        registry.add(f"{topic}-value", schema)
    column = pa.array([{"id": 1}, {"id": 2}, None, {"id": 3}], pa.struct([("id", pa.int32())]))
    topics = pa.array(["a", "b", "a", "a"])
    assert encoded_by_topic(column, how, topics).to_pylist() == [
        framed(1, b"\x02"), framed(2, b"\x04\x02?"), None, framed(1, b"\x06")
    ]  # fmt: skip


def test_a_schema_of_another_kind_is_refused(registry: SmallRegistry) -> None:
    registry.add("t-value", '{"type": "object"}', "JSON")
    how = WriteFormat(Registry(registry.url), "avro", use_latest=True)
    with pytest.raises(UserError, match="the schema of 't-value' is JSON, not AVRO: the format is 'json'"):
        encoded(pa.array([1]), how, "t")


def test_a_password_is_carried_and_not_shown() -> None:
    registry = registry_of(
        {
            "schema.registry.url": "http://bo:word@host:8081",
            "schema.registry.basic.auth.user.info": "ana:secret",
        }
    )
    assert "secret" not in repr(registry)
    assert "word" not in repr(registry)
    assert pickle.loads(pickle.dumps(registry)) == registry
    with pytest.raises(BadOption, match=r"schema\.registry\.frobnicate: it is no option"):
        registry_of({"schema.registry.url": "http://x", "schema.registry.frobnicate": "1"})


def test_executors_read_avro_without_the_libraries_of_the_registry() -> None:
    program = """
import sys
for name in ("fastavro", "orjson", "jsonschema_rs", "google.protobuf", "uvicorn"):
    sys.modules[name] = None
import penstock.arrow.registry_values as values, penstock.arrow.registry_writing, penstock.arrow.json_format
from penstock.arrow.registry_schemas import SchemaText
print(values.column_type(SchemaText("AVRO", '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}')))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "struct<id: int32>\n", done.stderr
