"""Random schemas and values: texts stay as they are, values come back, and what is called compatible can be read."""

import json
from itertools import count
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from penstock.schemas.avro.decoding import Reading, single
from penstock.schemas.avro.nodes import Array, Enum, Fixed, Map, Node, Record, Union
from penstock.schemas.avro.parsing import parse
from penstock.schemas.avro.schema import AvroSchema
from penstock.schemas.avro.values import codec_of
from penstock.schemas.model import InvalidValue

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
PROMOTED = {
    "int": ["long", "float", "double"],
    "long": ["float", "double"],
    "float": ["double"],
    "string": ["bytes"],
}
DEFAULTS = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 2,
    "float": 1.5,
    "double": -2.0,
    "bytes": "ÿ",
    "string": "s",
}
FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

texts = st.text(st.characters(codec="utf-8"), max_size=5)
numbers = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False).map(single) | st.just(0.1),
    "double": st.floats(),
}


@st.composite
def schemas(draw: st.DrawFn) -> Any:
    names = count()

    def make(depth: int, *, in_union: bool = False) -> Any:
        kinds = ["primitive", "primitive", "enum", "fixed"]
        kinds += ["record", "record", "array", "map"] if depth else []
        kinds += ["union"] if depth and not in_union else []
        kind = draw(st.sampled_from(kinds))
        name = f"{draw(st.sampled_from(['', 'a.', 'a.b.']))}{kind.title()}{next(names)}"
        if kind == "primitive":
            type_ = draw(st.sampled_from(PRIMITIVES))
            return draw(st.sampled_from([type_, type_, {"type": type_, "x": [1.5, {"y": None}]}]))
        if kind == "enum":
            symbols = [f"S{number}" for number in range(draw(st.integers(1, 3)))]
            return {"type": "enum", "name": name, "symbols": symbols}
        if kind == "fixed":
            return {"type": "fixed", "name": name, "size": draw(st.integers(0, 3))}
        if kind in ("array", "map"):
            return {"type": kind, "items" if kind == "array" else "values": make(depth - 1)}
        inner = [make(depth - 1, in_union=kind == "union") for _ in range(draw(st.integers(0, 3)))]
        if kind == "union":
            by_name = {
                each if isinstance(each, str) else each.get("name", each["type"]): each for each in inner
            }
            return list(by_name.values()) or ["null"]
        fields = [{"name": f"f{number}", "type": each} for number, each in enumerate(inner)]
        return {"type": "record", "name": name, "fields": fields}

    return make(3)


@st.composite
def values(draw: st.DrawFn, node: Node) -> Any:
    if isinstance(node, Union):
        branch = draw(st.sampled_from(node.branches))
        value = draw(values(branch))
        return None if branch.type == "null" else {branch.full_name: value}
    if isinstance(node, Record):
        return {field.name: draw(values(field.type)) for field in node.fields.values()}
    if isinstance(node, Array):
        return [draw(values(node.items)) for _ in range(draw(st.integers(0, 2)))]
    if isinstance(node, Map):
        return {draw(texts): draw(values(node.values)) for _ in range(draw(st.integers(0, 2)))}
    if isinstance(node, Enum):
        return draw(st.sampled_from(node.symbols))
    if isinstance(node, Fixed) or node.type == "bytes":
        size = node.size if isinstance(node, Fixed) else draw(st.integers(0, 3))
        return draw(st.text(st.characters(max_codepoint=255), min_size=size, max_size=size))
    if node.type in numbers:
        value = draw(numbers[node.type])
        return str(value).replace("inf", "Infinity").replace("nan", "NaN") if value - value else value
    return {"null": None, "boolean": draw(st.booleans()), "string": draw(texts)}[node.type]


@st.composite
def evolved(draw: st.DrawFn, said: Any) -> Any:
    """The schema with some changes, most of which a reader can bear."""

    def change(each: Any) -> Any:
        if isinstance(each, list):
            kept = [change_within(branch) for branch in each]
            is_longer = "boolean" not in json.dumps(kept) and draw(st.integers(0, 5)) == 0
            return [*kept, *(["boolean"] if is_longer else [])]
        if isinstance(each, str):
            change = draw(st.integers(0, 3))
            if change == 0 and each in PROMOTED:
                return draw(st.sampled_from(PROMOTED[each]))
            if change == 1:
                return ["null", each] if each != "null" else [each]
            return draw(st.sampled_from(PRIMITIVES)) if change == 2 else each
        return change_within(each)

    def change_within(each: Any) -> Any:
        if isinstance(each, str):
            return each
        if each["type"] == "array":
            return {**each, "items": change(each["items"])}
        if each["type"] == "map":
            return {**each, "values": change(each["values"])}
        if each["type"] == "enum":
            return draw(st.sampled_from([each, {**each, "symbols": [*each["symbols"], "S9"]}, {
                **each, "symbols": ["S0"], "default": "S0"}]))  # fmt: skip
        if each["type"] == "record":
            fields = [{**field, "type": change(field["type"])} for field in each["fields"]]
            fields = [field for field in fields if draw(st.integers(0, 5))]
            if draw(st.booleans()):
                type_ = draw(st.sampled_from(PRIMITIVES))
                new = {"name": "new", "type": type_, "default": DEFAULTS[type_]}
                if draw(st.integers(0, 3)) == 0:
                    del new["default"]
                fields.insert(draw(st.integers(0, len(fields))), new)
            if fields and draw(st.integers(0, 3)) == 0:
                fields[0] = {**fields[0], "name": "renamed", "aliases": [fields[0]["name"]]}
            return {**each, "fields": fields}
        return each

    return change(said)


def _parsed(said: Any) -> AvroSchema:
    return parse(json.dumps(said), [], {})


@FEW
@given(schemas())
def test_the_canonical_text_stays_as_it_is(said: Any) -> None:
    schema = _parsed(said)
    normal = schema.normalized()

    assert parse(schema.text, [], {}).text == schema.text
    assert normal.normalized().text == normal.text
    assert schema.incompatibilities(normal, policy="STRICT") == ()


@FEW
@given(st.data())
def test_a_value_comes_back_as_it_was_written(data: st.DataObject) -> None:
    schema = _parsed(data.draw(schemas()))
    value = data.draw(values(schema.root))
    codec = codec_of(schema)
    written = codec.encode(value)

    assert codec.decode(written) == value
    assert Reading(written, is_plain=False).value(schema.root) == value
    plain = codec_of(schema, plain=True).decode(written)
    assert Reading(written, is_plain=True).value(schema.root) == plain
    json.dumps(plain, allow_nan=False)


@settings(FEW, max_examples=200)
@given(st.data())
def test_what_is_compatible_can_be_read(data: st.DataObject) -> None:
    said = data.draw(schemas())
    writer, reader = _parsed(said), _parsed(data.draw(evolved(said)))
    assume(not reader.incompatibilities(writer, policy="STRICT"))
    written = codec_of(writer).encode(data.draw(values(writer.root)))

    codec_of(writer).decode_as(reader).decode(written)


@FEW
@given(st.data())
def test_any_bytes_are_a_value_or_refused(data: st.DataObject) -> None:
    schema = _parsed(data.draw(schemas()))
    sent = data.draw(st.binary(max_size=30))
    outcomes = []
    for read in (codec_of(schema).decode, lambda sent: Reading(sent, is_plain=False).value(schema.root)):
        try:
            outcomes.append(read(sent))
        except InvalidValue:
            outcomes.append(InvalidValue)

    # fastavro takes more: numbers that are too long, indexes below zero.
    assert outcomes[0] == outcomes[1] or outcomes[1] is InvalidValue
