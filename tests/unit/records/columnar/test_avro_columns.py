"""Avro's values as columns: what fastavro reads, for any schema, evolution and bytes."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.records.columnar import avro_encode_kernel, avro_kernel
from penstock.records.columnar.avro_columns import AvroReader, Found, ids_of
from penstock.records.columnar.avro_program import NotResolvable
from penstock.records.columnar.avro_schema import UnreadableSchema
from tests.unit.records.columnar.avro_texts import parse_avro

EXAMPLES = 60
NUMBERS = {"int": 31, "long": 63}


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def framed(schema_id: int, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + data


def read(
    reader: Any, writers: dict[int, Any], values: Sequence[bytes | None], references: Sequence[str] = ()
) -> Found:
    made = AvroReader(parse_avro(json.dumps(reader), references))
    for schema_id, writer in writers.items():
        made.add(schema_id, parse_avro(json.dumps(writer), references))
    column = pa.array(values, pa.binary())
    found = made.read(column, ids_of(column))
    found.column.validate(full=True)
    assert len(found.column) == len(values)
    return found


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field[0], "type": field[1], **({"default": field[2]} if len(field) > 2 else {})}
            for field in fields
        ],
        **more,
    }


class Drawn:
    """A schema with values for it: as fastavro takes them, and as the column has them."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self._names = 0

    def schema(self, depth: int = 0) -> Any:
        simple = ["null", "boolean", "int", "long", "float", "double", "bytes", "string", "enum", "fixed"]
        kinds = simple + (["array", "map", "record", "nullable", "union"] if depth < 3 else [])
        kind = self._draw(st.sampled_from(kinds))
        if kind == "array":
            return {"type": "array", "items": self.schema(depth + 1)}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth + 1)}
        if kind == "record":
            count = self._draw(st.integers(0, 4))
            return record(*((f"f{n}", self.schema(depth + 1)) for n in range(count)), name=self._name())
        if kind == "nullable":
            inner = self._draw(st.sampled_from(["int", "string", "double", "boolean"]))
            return self._draw(st.permutations(["null", inner]))
        if kind == "union":
            return self._draw(
                st.permutations(["string", "long", "boolean", record(("x", "int"), name=self._name())])
            )
        if kind == "enum":
            return {"type": "enum", "name": self._name(), "symbols": ["A", "BB", "CCC"]}
        if kind == "fixed":
            return {"type": "fixed", "name": self._name(), "size": self._draw(st.integers(0, 9))}
        return kind

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def value(self, schema: Any) -> tuple[Any, Any]:
        draw = self._draw
        if isinstance(schema, list):
            number = draw(st.integers(0, len(schema) - 1))
            branch = schema[number]
            written, seen = self.value(branch)
            name = branch["name"] if isinstance(branch, dict) else branch
            if len(schema) == 2:
                return written, seen
            return (name, written), {f"member{n}": seen if n == number else None for n in range(len(schema))}
        if schema == "null":
            return None, None
        if schema == "boolean":
            return (draw(st.booleans()),) * 2
        if isinstance(schema, str) and schema in NUMBERS:
            bits = NUMBERS[schema]
            return (draw(st.integers(-(2**bits), 2**bits - 1)),) * 2
        if schema in ("float", "double"):
            return (draw(st.floats(allow_nan=False, width=32 if schema == "float" else 64)),) * 2
        if schema == "bytes":
            return (draw(st.binary(max_size=20)),) * 2
        if schema == "string":
            return (draw(st.text(max_size=20)),) * 2
        if schema["type"] == "enum":
            return (draw(st.sampled_from(schema["symbols"])),) * 2
        if schema["type"] == "fixed":
            return (draw(st.binary(min_size=schema["size"], max_size=schema["size"])),) * 2
        if schema["type"] == "array":
            pairs = [self.value(schema["items"]) for _ in range(draw(st.integers(0, 4)))]
            return [one for one, _ in pairs], [one for _, one in pairs]
        if schema["type"] == "map":
            entries = {f"k{n}": self.value(schema["values"]) for n in range(draw(st.integers(0, 3)))}
            return (
                {key: one for key, (one, _) in entries.items()},
                [(key, one) for key, (_, one) in entries.items()],
            )
        fields = {field["name"]: self.value(field["type"]) for field in schema["fields"]}
        return {name: one for name, (one, _) in fields.items()}, {
            name: one for name, (_, one) in fields.items()
        }


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_every_schema_is_read_as_it_was_written(data: st.DataObject) -> None:
    drawn = Drawn(data.draw)
    schema = record(("a", drawn.schema()), ("b", "int"), name="Top")
    pairs = [drawn.value(schema) for _ in range(4)]
    values = [framed(3, encoded(schema, written)) for written, _ in pairs]
    found = read(schema, {3: schema}, [*values, None])
    assert found.column.to_pylist() == [*(seen for _, seen in pairs), None]
    assert not found.reasons.any()
    # Skipped: a reader that wants the last field only.
    last = read(record(("b", "int"), name="Top"), {3: schema}, values)
    assert last.column.to_pylist() == [{"b": seen["b"]} for _, seen in pairs]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data(), st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_broken_bytes_are_marked_and_never_read_beyond(data: st.DataObject, junk: list[bytes]) -> None:
    drawn = Drawn(data.draw)
    schema = record(("a", drawn.schema()), ("s", "string"), name="Top")
    written, seen = drawn.value(schema)
    good = encoded(schema, written)
    cut = data.draw(st.integers(0, max(0, len(good) - 1)))
    flipped = bytearray(good)
    if flipped:
        flipped[data.draw(st.integers(0, len(flipped) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    broken = [*junk, good[:cut], bytes(flipped)]
    values = [framed(3, each) for each in (good, *broken, good)]
    for reader in (schema, record(name="Top")):
        found = read(reader, {3: schema}, values)
        rows = found.column.to_pylist()
        assert rows[0] == rows[-1] == (seen if reader is schema else {})
        for reason, row in zip(found.reasons, rows, strict=True):
            assert (row is None) == bool(reason)
    assert found is not None


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=60))
def test_what_fastavro_refuses_is_refused(junk: bytes) -> None:
    schema = record(
        ("id", "long"), ("name", ["null", "string"]), ("tags", {"type": "array", "items": "string"}), ("x", "double")
    )  # fmt: skip
    found = read(schema, {1: schema}, [framed(1, junk)])
    try:
        theirs = fastavro.schemaless_reader(io.BytesIO(junk), fastavro.parse_schema(schema), None)
    except Exception:
        assert found.reasons[0]
    else:
        if found.reasons[0]:  # fastavro takes numbers of more than 64 bits, negative branches and lengths
            assert found.column.to_pylist() == [None]
        else:
            assert repr(found.column.to_pylist()) == repr([theirs])


EVOLUTIONS: list[tuple[Any, Any, Any, Any]] = [
    ("int", "long", 7, 7),
    ("int", "float", 7, 7.0),
    ("int", "double", -3, -3.0),
    ("long", "float", 1 << 40, float(1 << 40)),
    ("long", "double", 5, 5.0),
    ("float", "double", 0.5, 0.5),
    ("string", "bytes", "é", "é".encode()),
    ("bytes", "string", b"ab", "ab"),
    ("int", ["null", "long"], 7, 7),
    (["null", "int"], ["null", "long"], None, None),
    (["int", "null"], ["null", "long"], 9, 9),
    (["null", "string"], "string", "x", "x"),
    (["int", "long"], ["int", "long"], 9, 9),
    (["null", "int"], "null", None, None),
    ("string", ["null", "int", "string"], "x", {"member0": None, "member1": "x"}),
    ({"type": "array", "items": "int"}, {"type": "array", "items": ["null", "long"]}, [1, 2], [1, 2]),
    ({"type": "map", "values": "int"}, {"type": "map", "values": "double"}, {"a": 1}, [("a", 1.0)]),
    (
        {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]},
        {"type": "enum", "name": "E", "symbols": ["C", "X"], "default": "X"},
        "A",
        "X",
    ),
    (
        record(("old", "string"), ("id", "int"), name="In"),
        record(("id", "long"), ("at", "long", 42), ("who", ["null", "string"], None), name="In"),
        {"old": "gone", "id": 5},
        {"id": 5, "at": 42, "who": None},
    ),
    (
        record(("id", "int"), name="In"),
        record(
            ("id", "int"), ("tags", {"type": "array", "items": "string"}, ["a", "b"]),
            ("m", {"type": "map", "values": "int"}, {"k": 1}), ("e", {"type": "array", "items": "int"}, []),
            ("in", record(("x", "double", 1.5), ("y", "boolean"), name="Deep"), {"y": True}),
            ("f", {"type": "fixed", "name": "F", "size": 2}, "\xff\x01"), ("b", "bytes", "\x00é"), name="In",
        ),
        {"id": 1},
        {"id": 1, "tags": ["a", "b"], "m": [("k", 1)], "e": [], "in": {"x": 1.5, "y": True}, "f": b"\xff\x01",
         "b": b"\x00\xe9"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("writer", "reader", "value", "seen"), EVOLUTIONS)
def test_an_old_schema_is_read_as_the_new_one(writer: Any, reader: Any, value: Any, seen: Any) -> None:
    wrapped, wanted = record(("v", writer), ("z", "int")), record(("z", "int"), ("v", reader))
    written = framed(1, encoded(wrapped, {"v": value, "z": 3}))
    found = read(wanted, {1: wrapped}, [written, None, written])
    assert found.column.to_pylist() == [{"z": 3, "v": seen}, None, {"z": 3, "v": seen}]


def test_a_field_is_found_by_the_alias_of_the_reader() -> None:
    writer = record(("first", "string"), ("n", "int"))
    reader = record(("n", "int"), ("given", "string"))
    reader["fields"][1]["aliases"] = ["name", "first"]
    found = read(reader, {1: writer}, [framed(1, encoded(writer, {"first": "ana", "n": 1}))])
    assert found.column.to_pylist() == [{"n": 1, "given": "ana"}]


def test_values_of_several_schemas_stand_in_one_column() -> None:
    schemas = {
        1: record(("id", "int")),
        2: record(("id", "long"), ("name", "string", "?")),
        9: record(("name", "string", "?"), ("id", "long"), ("more", {"type": "array", "items": "int"}, [])),
    }
    values = [
        framed(9, encoded(schemas[9], {"id": 4, "name": "d", "more": [1]})),
        framed(1, encoded(schemas[1], {"id": 1})),
        None,
        framed(2, encoded(schemas[2], {"id": 2, "name": "b"})),
        framed(77, b"\x02"),
        b"\x01\x02",
        b"",
    ]
    found = read(schemas[2], schemas, values)
    assert found.column.to_pylist() == [
        {"id": 4, "name": "d"}, {"id": 1, "name": "?"}, None, {"id": 2, "name": "b"}, None, None, None
    ]  # fmt: skip
    assert [bool(each) for each in found.reasons] == [False, False, False, False, True, True, True]
    assert found.why(4) == "the schema of the value is not known"
    assert found.why(5) == "the value does not begin with the id of a schema"


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("string", b"\x01"),  # a length of -1
        ("string", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("string", b"\x04\xff\xff"),
        ({"type": "array", "items": "int"}, b"\x80\x80\x80\x80\x80\x80\x01"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "array", "items": "null"}, b"\xd0\x0f" * 9 + b"\x00"),
        ({"type": "array", "items": "int"}, b"\x01"),
        ({"type": "array", "items": "int"}, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02"),
        ({"type": "map", "values": "int"}, b"\x02\x02"),
        (["null", "int"], b"\x04"),
        (["null", "int", "string"], b"\x01"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02"),
        ("int", b"\x80\x80\x80\x80\x20"),
        ("long", b"\xff" * 11),
        ("double", b"\x00" * 7),
        ({"type": "fixed", "name": "F", "size": 3}, b"ab"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 0}, b"\x04\x7f\xff"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 38}, b"\x28" + b"\x01" + b"\x00" * 19),
        ({"type": "long", "logicalType": "timestamp-millis"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    ],
)
def test_hostile_bytes_take_no_memory(schema: Any, data: bytes) -> None:
    found = read(record(("v", schema)), {1: record(("v", schema))}, [framed(1, data)])
    assert found.column.to_pylist() == [None]
    assert found.reasons[0]
    assert found.column.nbytes < 1000
    skipped = read(record(), {1: record(("v", schema))}, [framed(1, data)])
    assert len(skipped.column) == 1


def test_a_type_within_itself_is_skipped_to_a_depth() -> None:
    chain = record(("next", ["null", "Chain"]), ("data", "bytes"), name="Chain")
    writer = record(("list", chain), ("id", "int"))
    reader = record(("id", "int"))
    short = b"\x02" * 20 + b"\x00" + b"\x02x" * 21
    found = read(reader, {1: writer}, [framed(1, short + b"\x0a"), framed(1, b"\x02" * 100_000)])
    assert found.column.to_pylist() == [{"id": 5}, None]
    assert "deeply" in found.why(1)
    with pytest.raises(UnreadableSchema, match="Chain is within itself"):
        AvroReader(parse_avro(json.dumps(writer)))


def test_a_reader_without_default_does_not_read_what_was_not_written() -> None:
    made = AvroReader(parse_avro(json.dumps(record(("id", "int"), ("name", "string")))))
    with pytest.raises(NotResolvable, match="/name: it is not written"):
        made.add(1, parse_avro(json.dumps(record(("id", "int")))))
    assert not made.knows(1)
    made.add(2, parse_avro(json.dumps(record(("id", "int"), ("name", "string")))))
    column = pa.array([framed(2, b"\x02\x02x")], pa.binary())
    assert made.read(column, ids_of(column)).column.to_pylist() == [{"id": 1, "name": "x"}]


def test_a_schema_with_too_many_columns_is_refused() -> None:
    wide = record(("a", "int"), ("b", "int"), name="L0")
    texts = [json.dumps(wide)]
    for level in range(1, 30):
        texts.append(json.dumps(record(("a", f"L{level - 1}"), ("b", f"L{level - 1}"), name=f"L{level}")))
    with pytest.raises(UnreadableSchema, match="more than 10,000 columns"):
        AvroReader(parse_avro(texts[-1], texts[:-1]))
    # As the writer's, it is skipped.
    made = AvroReader(parse_avro(json.dumps(record(("z", "int"), name="L29"))))
    with pytest.raises(NotResolvable):
        made.add(1, parse_avro(texts[-1], texts[:-1]))


def test_defaults_within_defaults_and_unions_within_unions_take_bounded_time() -> None:
    deep: Any = record(("x", "int", 1), name="D0")
    for level in range(1, 40):
        deep = record(("a", deep, {}), ("b", f"D{level - 1}", {}), name=f"D{level}")
    reader = record(("id", "int"), ("v", {"type": "array", "items": "int"}, []), name="T")
    made = AvroReader(parse_avro(json.dumps(reader)))
    made.add(
        1,
        parse_avro(json.dumps(record(("id", "int"), ("v", {"type": "array", "items": "int"}), ("d", deep)))),
    )
    wide: Any = "int"
    target: Any = "string"
    for level in range(12):
        wide = [
            record(("v", wide), name=f"W{level}x{n}") if n else {"type": "array", "items": "null"}
            for n in range(6)
        ]
        target = record(("v", target), name=f"R{level}")
        wide[2:] = [
            record(("v", f"W{level - 1}x1" if level else "int"), name=f"W{level}x{n}") for n in range(2, 6)
        ]
    bound = AvroReader(parse_avro(json.dumps(record(("v", target), name="Top"))))
    with pytest.raises(UnreadableSchema, match="too large"):
        bound.add(1, parse_avro(json.dumps(record(("v", wide), name="Top"))))
    with pytest.raises(UnreadableSchema, match="more than 10,000 columns"):
        AvroReader(parse_avro(json.dumps(deep)))


def test_logical_types_are_those_of_spark() -> None:
    kinds: dict[str, tuple[Any, Any, pa.DataType]] = {
        "d": ({"type": "int", "logicalType": "date"}, 19000, pa.date32()),
        "ms": ({"type": "long", "logicalType": "timestamp-millis"}, 5, pa.timestamp("us", tz="UTC")),
        "us": ({"type": "long", "logicalType": "timestamp-micros"}, 5, pa.timestamp("us", tz="UTC")),
        "lms": ({"type": "long", "logicalType": "local-timestamp-millis"}, 5, pa.timestamp("us")),
        "ns": ({"type": "long", "logicalType": "timestamp-nanos"}, 5, pa.int64()),
        "tm": ({"type": "int", "logicalType": "time-millis"}, 5, pa.int32()),
        "u": ({"type": "string", "logicalType": "uuid"}, "x", pa.string()),
        "dur": (
            {"type": "fixed", "name": "Dur", "size": 12, "logicalType": "duration"},
            b"123456789012",
            pa.binary(),
        ),
        "odd": ({"type": "string", "logicalType": "date"}, "x", pa.string()),
    }
    schema = record(*((name, kind[0]) for name, kind in kinds.items()))
    plain = record(*((name, kind[0]["type"] if name != "dur" else {k: v for k, v in kind[0].items() if k != "logicalType"})
                     for name, kind in kinds.items()))  # fmt: skip
    value = encoded(plain, {name: kind[1] for name, kind in kinds.items()})
    found = read(schema, {1: schema}, [framed(1, value)])
    assert {field.name: field.type for field in found.column.type} == {
        n: kind[2] for n, kind in kinds.items()
    }
    assert found.column.field("ms").cast(pa.int64()).to_pylist() == [5000]
    assert found.column.field("us").cast(pa.int64()).to_pylist() == [5]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=1, max_size=5))
def test_decimals_are_read_to_38_digits(numbers: list[int]) -> None:
    decimal = {"logicalType": "decimal", "precision": 38, "scale": 5}
    schema = record(
        ("b", {"type": "bytes", **decimal}), ("f", {"type": "fixed", "name": "F", "size": 20, **decimal})
    )
    plain = record(("b", "bytes"), ("f", {"type": "fixed", "name": "F", "size": 20}))
    values = []
    for number in numbers:
        size = (number.bit_length() + 8) // 8
        both = {"b": number.to_bytes(size, "big", signed=True), "f": number.to_bytes(20, "big", signed=True)}
        values.append(framed(1, encoded(plain, both)))
    found = read(schema, {1: schema}, values)
    exact = [Decimal(number).scaleb(-5, __import__("decimal").Context(prec=50)) for number in numbers]
    assert found.column.field("b").to_pylist() == found.column.field("f").to_pylist() == exact


def test_schemas_that_refer_to_others_are_read() -> None:
    inner = json.dumps({**record(("x", "int"), name="Inner"), "namespace": "a.b"})
    outer = {**record(("in", "a.b.Inner"), ("again", ["null", "a.b.Inner"]), name="Outer"), "namespace": "c"}
    found = read(outer, {1: outer}, [framed(1, b"\x02\x02\x04")], [inner])
    assert found.column.to_pylist() == [{"in": {"x": 1}, "again": {"x": 2}}]


def test_columns_grow_as_far_as_values_need() -> None:
    schema = record(("l", {"type": "array", "items": {"type": "map", "values": "string"}}))
    value = {"l": [{f"key{n}": "x" * 50 for n in range(20)} for _ in range(40)]}
    values = [framed(1, encoded(schema, value))] * 30
    found = read(schema, {1: schema}, values)
    assert found.column.to_pylist() == [{"l": [list(one.items()) for one in value["l"]]}] * 30


@pytest.mark.parametrize(
    ("module", "parts"),
    [
        (avro_kernel, ("tree_layout", "tree_kernels", "memory", "byte_kernels")),
        (avro_encode_kernel, ("memory", "byte_kernels")),
    ],
)
def test_compiled_parts_are_compiled_anew_when_what_they_call_changes(
    module: Any, parts: tuple[str, ...]
) -> None:
    files = [import_module(f"penstock.records.columnar.{part}").__file__ for part in parts]
    sources = b"".join(Path(str(file)).read_bytes() for file in files)
    assert hashlib.sha256(sources).hexdigest()[:16] == module.MADE_FROM
