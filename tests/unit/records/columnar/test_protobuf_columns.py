"""Protobuf's messages as columns: what Google's library reads, for any message and bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, duration_pb2, message_factory, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.records.columnar import protobuf_columns, protobuf_walk
from penstock.records.columnar.protobuf_columns import FoundMessages, read_messages
from penstock.records.columnar.protobuf_shapes import shape_of

EXAMPLES = 60
F = descriptor_pb2.FieldDescriptorProto
SCALARS = [
    "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes", "uint32", "sfixed32",
    "sfixed64", "sint32", "sint64",
]  # fmt: skip


def field(
    message: Any,
    name: str,
    number: int,
    kind: str,
    *,
    repeated: bool = False,
    optional: bool = False,
    oneof: int = -1,
) -> Any:
    made = message.field.add(name=name, number=number)
    made.label = F.LABEL_REPEATED if repeated else F.LABEL_OPTIONAL
    if kind.startswith("."):
        made.type, made.type_name = (F.TYPE_ENUM if kind.endswith("Color") else F.TYPE_MESSAGE), kind
    else:
        made.type = getattr(F, f"TYPE_{kind.upper()}")
    if optional:
        message.oneof_decl.add(name=f"_{name}")
        made.oneof_index, made.proto3_optional = len(message.oneof_decl) - 1, True
    elif oneof >= 0:
        made.oneof_index = oneof
    return made


def descriptor() -> Any:
    """A message with a field of every kind."""
    pool = DescriptorPool()
    for known in (timestamp_pb2, duration_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    file.dependency.extend(
        [
            "google/protobuf/timestamp.proto",
            "google/protobuf/duration.proto",
            "google/protobuf/wrappers.proto",
        ]
    )
    color = file.enum_type.add(name="Color")
    for number, name in ((0, "RED"), (1, "GREEN"), (-1, "NONE")):
        color.value.add(name=name, number=number)
    inner = file.message_type.add(name="Inner")
    field(inner, "x", 3, "int32")
    field(inner, "names", 1, "string", repeated=True)
    chain = file.message_type.add(name="Chain")
    field(chain, "next", 1, ".t.Chain")
    field(chain, "n", 2, "int32")
    every = file.message_type.add(name="Every")
    every.oneof_decl.add(name="choice")
    for number, kind in enumerate(SCALARS):
        field(every, f"r_{kind}", number + 40, kind, repeated=True)
        field(every, f"s_{kind}", number + 1, kind)
    field(every, "color", 100, ".t.Color")
    field(every, "colors", 101, ".t.Color", repeated=True)
    field(every, "inner", 102, ".t.Inner")
    field(every, "inners", 103, ".t.Inner", repeated=True)
    field(every, "a", 104, "int32", oneof=0)
    field(every, "b", 105, "string", oneof=0)
    field(every, "c", 106, ".t.Inner", oneof=0)
    for name, kind, places in (("m_text", "int32", 107), ("m_inner", ".t.Inner", 108)):
        entry = every.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        field(entry, "key", 1, "string")
        field(entry, "value", 2, kind)
        field(every, name, places, f".t.Every.{entry.name}", repeated=True)
    field(every, "at", 109, ".google.protobuf.Timestamp")
    field(every, "took", 110, ".google.protobuf.Duration")
    field(every, "w_int", 111, ".google.protobuf.Int64Value")
    field(every, "w_text", 112, ".google.protobuf.StringValue")
    field(every, "chain", 113, ".t.Chain")
    field(every, "times", 20_000, ".google.protobuf.Timestamp", repeated=True)
    field(every, "o_int", 536_870_911, "int32", optional=True)
    field(every, "o_text", 500, "string", optional=True)
    pool.Add(file)
    return pool.FindMessageTypeByName("t.Every")


EVERY = descriptor()
CHAIN = b"\x8a\x07"  # the tag of `chain`
Every: Any = message_factory.GetMessageClass(EVERY)
SHAPE = shape_of(EVERY)


def read(values: Sequence[bytes | None]) -> FoundMessages:
    column = pa.array(values, pa.binary())
    _, ends, data = column.buffers()
    places = np.frombuffer(ends, dtype=np.int32)[: len(values) + 1]
    buffer = (
        np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(1, dtype=np.uint8)
    )
    there = np.array([value is not None for value in values], dtype=np.uint8)
    found = read_messages(buffer, places[:-1], places[1:], there, SHAPE)
    found.column.validate(full=True)
    return found


def micros(message: Any) -> int:
    return int(message.seconds * 1_000_000 + message.nanos // 1000)


def expected(message: Any) -> dict[str, Any]:
    """What the columns have, from what Google's library has."""
    found: dict[str, Any] = {}
    for each in message.DESCRIPTOR.fields:
        value = getattr(message, each.name)
        if each.message_type is not None and each.message_type.GetOptions().map_entry:
            found[each.name] = [
                (k, expected(value[k]) if each.name == "m_inner" else value[k]) for k in sorted(value)
            ]
        elif each.is_repeated:
            found[each.name] = [one(each, item) for item in value]
        elif each.has_presence and not message.HasField(each.name):
            found[each.name] = None
        else:
            found[each.name] = one(each, value)
    return found


def one(each: Any, value: Any) -> Any:
    if each.enum_type is not None:
        known = each.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if each.message_type is None:
        return value
    name = each.message_type.full_name
    if name.endswith(("Timestamp", "Duration")):
        return micros(value)
    if name.startswith("google.protobuf."):
        return value.value
    if name == "t.Chain" and each.containing_type.name == "Chain":
        return value.SerializeToString(deterministic=True)
    return expected(value)


def seen(column: pa.StructArray) -> list[Any]:
    """Numbers for times, since Python's have less room."""
    plain: dict[str, Any] = {}
    for number, each in enumerate(column.type):
        values = column.field(number)
        if pa.types.is_temporal(each.type):
            values = values.cast(pa.int64())
        elif pa.types.is_list(each.type) and pa.types.is_temporal(each.type.value_type):
            values = pa.ListArray.from_arrays(values.offsets, values.values.cast(pa.int64()))
        rows = values.to_pylist()
        plain[each.name] = [sorted(row) if row and each.name.startswith("m_") else row for row in rows]
        if each.name in ("r_uint64", "r_fixed64"):
            plain[each.name] = [row and [int(number) for number in row] for row in rows]
        elif each.name in ("s_uint64", "s_fixed64"):
            plain[each.name] = [None if number is None else int(number) for number in rows]
    valid = column.is_valid().to_pylist()
    return [
        {name: rows[row] for name, rows in plain.items()} if valid[row] else None
        for row in range(len(column))
    ]


NUMBERS = {
    "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1), "int32": (-(2**31), 2**31 - 1), "fixed64": (0, 2**64 - 1),
    "fixed32": (0, 2**32 - 1), "uint32": (0, 2**32 - 1), "sfixed32": (-(2**31), 2**31 - 1),
    "sfixed64": (-(2**63), 2**63 - 1), "sint32": (-(2**31), 2**31 - 1), "sint64": (-(2**63), 2**63 - 1),
}  # fmt: skip


def scalars(kind: str) -> st.SearchStrategy[Any]:
    if kind in NUMBERS:
        return st.integers(*NUMBERS[kind])
    if kind in ("double", "float"):
        return st.floats(allow_nan=False, width=64 if kind == "double" else 32)
    return {"bool": st.booleans(), "string": st.text(max_size=12), "bytes": st.binary(max_size=12)}[kind]


@st.composite
def messages(draw: st.DrawFn) -> Any:
    message = Every()
    for kind in draw(st.lists(st.sampled_from(SCALARS), max_size=6)):
        setattr(message, f"s_{kind}", draw(scalars(kind)))
        getattr(message, f"r_{kind}").extend(draw(st.lists(scalars(kind), max_size=4)))
    inner = st.tuples(st.integers(-5, 5), st.lists(st.text(max_size=5), max_size=3))

    def fill(target: Any) -> None:
        target.x, names = draw(inner)
        target.names.extend(names)

    for choice in draw(st.lists(st.integers(0, 12), max_size=8)):
        match choice:
            case 0:
                message.color = draw(st.integers(-2, 5))
            case 1:
                message.colors.extend(draw(st.lists(st.integers(-2, 5), max_size=4)))
            case 2:
                fill(message.inner)
            case 3:
                fill(message.inners.add())
            case 4:
                message.a = draw(st.integers(-5, 5))
            case 5:
                message.b = draw(st.text(max_size=5))
            case 6:
                fill(message.c)
            case 7:
                message.m_text[draw(st.text(max_size=3))] = draw(st.integers(-5, 5))
            case 8:
                fill(message.m_inner[draw(st.text(max_size=3))])
            case 9:
                message.at.seconds, message.at.nanos = (
                    draw(st.integers(-(10**10), 10**10)),
                    draw(st.integers(0, 10**9 - 1)),
                )
                message.took.seconds = draw(st.integers(-(10**10), 10**10))
                message.times.add().seconds = draw(st.integers(0, 10))
            case 10:
                message.w_int.value, message.w_text.value = (
                    draw(st.integers(-1, 1)),
                    draw(st.text(max_size=3)),
                )
            case 11:
                message.chain.n = 1
                message.chain.next.next.n = 7
            case 12:
                message.o_int, message.o_text = draw(st.integers(-1, 1)), draw(st.text(max_size=2))
    return message


@settings(max_examples=EXAMPLES)
@given(st.lists(messages(), min_size=1, max_size=4))
def test_every_message_is_read_as_google_s_library_reads_it(written: list[Any]) -> None:
    values = [message.SerializeToString() for message in written]
    found = read([*values, None, b""])
    assert not found.bad.any()
    assert seen(found.column) == [*map(expected, written), None, expected(Every())]


@settings(max_examples=EXAMPLES)
@given(messages(), messages())
def test_a_message_in_two_parts_is_what_both_together_are(first: Any, second: Any) -> None:
    data = first.SerializeToString() + second.SerializeToString()
    together = Every.FromString(data)
    if together.HasField("chain"):  # its bytes are those that were written, in their parts
        return
    found = read([data])
    assert seen(found.column) == [expected(together)]


def test_of_entries_with_one_key_the_last_counts() -> None:
    parts = [
        Every(m_text={"a": 1, "b": 2}),
        Every(m_text={"b": 3}, m_inner={"": {"x": 4}}),
        Every(m_inner={"": {"x": 5}}),
    ]
    data = b"".join(part.SerializeToString() for part in parts)
    other = Every(m_text={"b": 9})
    found = read([data, None, other.SerializeToString()])
    assert seen(found.column) == [expected(Every.FromString(data)), None, expected(other)]


@settings(max_examples=3 * EXAMPLES)
@given(messages(), st.data())
def test_broken_bytes_are_marked_where_google_s_library_refuses_them(
    message: Any, data: st.DataObject
) -> None:
    good = message.SerializeToString()
    broken = bytearray(good or b"\x08\x01")
    place = data.draw(st.integers(0, len(broken) - 1))
    if data.draw(st.booleans()):
        broken[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del broken[place:]
    junk = data.draw(st.binary(max_size=30))
    found = read([good, bytes(broken), junk, good])
    rows = seen(found.column)
    assert rows[0] == rows[3] == expected(message)
    for row, value in ((1, bytes(broken)), (2, junk)):
        try:
            theirs = Every.FromString(value)
        except DecodeError:
            # What is in a message that is only bytes for us, they look into.
            assert found.bad[row] or CHAIN in value
            continue
        if found.bad[row]:
            assert rows[row] is None
        elif not theirs.HasField("chain"):
            ours, wanted = rows[row], expected(theirs)
            for name in ("m_text", "m_inner"):
                ours[name], wanted[name] = dict(ours[name]), dict(wanted[name])
            assert repr(ours) == repr(wanted)


def test_fields_of_other_types_and_unknown_ones_are_skipped() -> None:
    group = b"\xd3\x3e" + b"\x08\x01" + b"\xd4\x3e"  # a group with the number 1002
    values = [
        b"\x2a\x02hi" + b"\x28\x07",  # 5 as text, then as the number that it is
        group + b"\x28\x07",
        b"\xf8\x3f\x05" + b"\x28\x07" + b"\xfa\x3f\x01x",
    ]
    found = read(values)
    assert not found.bad.any()
    assert found.column.field("s_int32").to_pylist() == [7, 7, 7]


@pytest.mark.parametrize(
    "value",
    [
        b"\x28", b"\x28" + b"\xff" * 10 + b"\x01", b"\x00\x01", b"\x0a\xff\xff\xff\xff\x0f", b"\x09\x01", b"\x4a\x02\xff\xff",
        b"\x0b" * 5000, b"\x0c", b"\xd3\x3e\x08\x01", b"\xb2\x06\x05\x18", b"\xe2\x02\x03\x01\x02\x80", b"\x2e\x01",
    ],
)  # fmt: skip
def test_hostile_bytes_are_broken(value: bytes) -> None:
    found = read([value, b"\x28\x07"])
    assert found.column.to_pylist()[0] is None or value[:2] == b"\x4a\x02"
    assert found.column.field("s_int32").to_pylist()[1] == 7


def test_a_batch_that_becomes_too_large_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    message = Every()
    for number in range(50):
        message.inners.add().x = number
    values = [message.SerializeToString()] * 20
    whole = read(values).column
    monkeypatch.setattr(protobuf_columns, "MAX_CELLS", 500)
    assert read(values).column.equals(whole)
    monkeypatch.setattr(protobuf_columns, "MAX_CELLS", 150)
    found = read([b"\x28\x07", *values])
    assert found.bad.tolist() == [0] + [2] * 20
    assert found.column.field("s_int32").to_pylist()[0] == 7


def test_compiled_parts_are_compiled_anew_when_what_they_call_changes() -> None:
    files = [
        import_module(f"penstock.records.columnar.{part}").__file__
        for part in ("memory", "byte_kernels", "protobuf_shapes")
    ]
    sources = b"".join(Path(str(file)).read_bytes() for file in files)
    assert hashlib.sha256(sources).hexdigest()[:16] == protobuf_walk.MADE_FROM
