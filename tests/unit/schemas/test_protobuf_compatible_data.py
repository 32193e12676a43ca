"""A schema that is said to be compatible reads what the other wrote: any two schemas, any values."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.schemas.model import PROTOBUF, Schema
from penstock.schemas.parsing import parse
from penstock.schemas.values import codec_of

TYPES = ("int32", "int64", "uint32", "bool", "sint64", "string", "bytes", "fixed32", "double", "E", "N")
LABELS = ("", "optional ", "repeated ", "oneof")
Fields = dict[int, tuple[str, str]]
FIELDS = st.dictionaries(
    st.integers(1, 4), st.tuples(st.sampled_from(LABELS), st.sampled_from(TYPES)), max_size=4
)
# Small numbers are the same in all types that are written alike, and nothing is the default.
VALUES: dict[str, Any] = {
    "int64": "1", "sint64": "1", "bool": True, "string": "text", "bytes": "dGV4dA==", "double": 1.5, "E": "ONE", "N": {"x": 1},
}  # fmt: skip


def schema_of(fields: Fields) -> Schema:
    lines = [f"{label}{kind} f{at} = {at};" for at, (label, kind) in fields.items() if label != "oneof"]
    inside = [f"{kind} f{at} = {at};" for at, (label, kind) in fields.items() if label == "oneof"]
    if inside:
        lines.append(f"oneof o {{ {' '.join(inside)} }}")
    body = " ".join(lines)
    text = f'syntax = "proto3"; message M {{ {body} }} enum E {{ ZERO = 0; ONE = 1; }} message N {{ int32 x = 1; }}'
    return parse(PROTOBUF, text)


def value_of(fields: Fields, chosen: set[int]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    one_is_set = False
    for at, (label, kind) in fields.items():
        if at not in chosen or (label == "oneof" and one_is_set):
            continue
        one_is_set = one_is_set or label == "oneof"
        plain = VALUES.get(kind, 1)
        value[f"f{at}"] = [plain, plain] if label == "repeated " else plain
    return value


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FIELDS, FIELDS, st.sets(st.integers(1, 4)))
def test_what_is_said_to_be_compatible_is_read(old: Fields, new: Fields, chosen: set[int]) -> None:
    writer, reader = schema_of(old), schema_of(new)
    if reader.incompatibilities(writer, policy="STRICT"):
        return
    written = value_of(old, chosen)
    data = codec_of(writer).encode(written)
    read = codec_of(reader).decode(data)
    for at in old.keys() & new.keys():
        kind = old[at][1]
        if kind != new[at][1] or f"f{at}" not in written:
            continue
        before, after = written[f"f{at}"], read.get(f"f{at}")
        if isinstance(before, list) and not isinstance(after, list):
            before = before[-1]
        if isinstance(after, list) and not isinstance(before, list):
            before = [before]
        assert after == before, at


@settings(max_examples=60, deadline=None)
@given(FIELDS, FIELDS)
def test_every_schema_is_compatible_with_itself_and_its_other_forms(old: Fields, new: Fields) -> None:
    schema = schema_of(old | new)
    for other in (
        schema.normalized(),
        parse(PROTOBUF, schema.text),
        parse(PROTOBUF, schema.formatted("serialized")),
    ):
        assert not schema.incompatibilities(other, policy="STRICT")
        assert not other.incompatibilities(schema, policy="STRICT")
        assert other.normalized().text == schema.normalized().text
