"""JSON texts to columns. What each text becomes is compared with Spark's from_json in tests/spark/test_values.py."""

import hashlib
import json
import struct
from datetime import date
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.arrow.zone_files import TIME_ZONES
from penstock.records.columnar import json_escapes, json_scalars, json_texts, json_times, json_walk
from penstock.records.columnar.json_columns import (
    LocalTime,
    Objects,
    UnsupportedType,
    check_type,
    parse_objects,
)

LONG = pa.struct([("n", pa.int64())])
DOUBLE = pa.struct([("n", pa.float64())])
TEXT = pa.struct([("s", pa.string())])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def parse(texts: list[bytes | None], kind: pa.StructType, time_zone: str = "UTC") -> Objects:
    found = parse_objects(pa.array(texts, pa.binary()), kind, LocalTime(TIME_ZONES, time_zone))
    found.column.validate(full=True)
    return found


def numbers(*texts: bytes | None, kind: pa.StructType = LONG) -> list[object]:
    return [row["n"] if row is not None else "nothing" for row in parse(list(texts), kind).column.to_pylist()]


@settings(max_examples=200)
@given(st.text())
def test_a_string_comes_back_as_it_was(text: str) -> None:
    for is_ascii in (True, False):
        encoded = json.dumps({"s": text}, ensure_ascii=is_ascii).encode(errors="surrogatepass")
        expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert parse([encoded], TEXT).column.to_pylist() == [{"s": expected}]


@settings(max_examples=200)
@given(st.floats(allow_nan=False))
def test_a_double_comes_back_to_its_last_bit(number: float) -> None:
    (row,) = parse([json.dumps({"n": number}).encode()], DOUBLE).column.to_pylist()
    assert struct.pack("d", row["n"]) == struct.pack("d", number)


@settings(max_examples=200)
@given(ANY_JSON, st.integers(-(2**63), 2**63 - 1))
def test_what_is_not_asked_for_is_passed_over(other: object, number: int) -> None:
    text = json.dumps({"other": other, "n": number, "more": other}).encode()
    found = parse([text], LONG)
    assert not found.incomplete.any()
    assert found.column.to_pylist() == [{"n": number}]


@settings(max_examples=300)
@given(ANY_JSON, st.data())
def test_a_text_that_is_cut_short_is_malformed(other: object, data: st.DataObject) -> None:
    text = json.dumps({"n": 1, "other": other}).encode()
    cut = data.draw(st.integers(1, len(text) - 1))
    found = parse([text[:cut]], LONG)
    assert found.malformed.all()
    assert found.column.to_pylist() == [{"n": None}]


@settings(max_examples=300)
@given(
    st.binary(),
    st.lists(st.sampled_from([b'{"s":', b'"', b"\\", b"}", b"[", b"]", b",", b"\\u", b"1", b"-"])),
)
def test_any_bytes_are_read_without_harm(noise: bytes, parts: list[bytes]) -> None:
    texts: list[bytes | None] = [noise, b"".join(parts), b'{"s":' + noise, b'{"s":1}']
    assert parse(texts, TEXT).column.to_pylist()[3] == {"s": "1"}


def test_null_and_blank_texts_have_no_struct() -> None:
    assert numbers(None, b"", b" ", b"{", b"{}", b'{"n":1}') == [
        "nothing",
        "nothing",
        "nothing",
        None,
        None,
        1,
    ]


def test_a_slice_of_a_column_is_read_from_where_it_begins() -> None:
    column = pa.array([b'{"n":%d}' % number for number in range(10)], pa.binary())[3:6]
    assert parse_objects(column, LONG, LocalTime(TIME_ZONES)).column.to_pylist() == [
        {"n": 3},
        {"n": 4},
        {"n": 5},
    ]


def test_a_column_without_rows_has_none() -> None:
    kind = pa.struct(
        [("a", pa.list_(pa.struct([("s", pa.string())]))), ("m", pa.map_(pa.string(), pa.date32()))]
    )
    assert len(parse([], kind).column) == 0


def test_fields_may_come_in_any_order() -> None:
    kind = pa.struct([(name, pa.int64()) for name in "abcd"])
    rows = parse([b'{"d":4,"b":2,"a":1,"x":0,"c":3}', b'{"c":3,"a":1}'], kind).column.to_pylist()
    assert rows == [{"a": 1, "b": 2, "c": 3, "d": 4}, {"a": 1, "b": None, "c": 3, "d": None}]


def test_nesting_is_followed_to_its_bound() -> None:
    def nested(depth: int) -> bytes:
        return b'{"n":1,"x":' + b"[" * depth + b"]" * depth + b"}"

    deepest = json_walk.MAX_DEPTH
    assert numbers(nested(deepest), nested(deepest + 1)) == [1, None]


def test_a_time_without_a_zone_is_in_the_given_one() -> None:
    kind = pa.struct([("t", pa.timestamp("us", "UTC"))])
    texts: list[bytes | None] = [b'{"t":"2026-07-01T12:00:00"}', b'{"t":"2026-07-01T12:00:00Z"}']
    rows = parse(texts, kind, "Europe/Lisbon").column.to_pylist()
    assert [row["t"].hour for row in rows] == [11, 12]


@pytest.mark.parametrize(
    ("zone", "local", "utc"),
    [
        ("America/New_York", "2024-03-10T02:30:00", "2024-03-10T07:30:00"),  # skipped: 03:30 of daylight time
        ("America/New_York", "2024-11-03T01:30:00", "2024-11-03T05:30:00"),  # twice: the first
        ("America/New_York", "2500-07-01T00:00:00", "2500-07-01T04:00:00"),
        ("America/New_York", "1883-11-18T00:00:00", "1883-11-18T04:56:02"),
        ("Australia/Lord_Howe", "2024-10-06T02:15:00", "2024-10-05T15:45:00"),
        ("Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T22:00:00"),  # a day that was left out
        ("Africa/Monrovia", "1971-12-31T00:00:00", "1971-12-31T00:44:30"),
        ("PST", "2024-07-01T00:00:00", "2024-07-01T07:00:00"),
        ("EST", "2024-07-01T00:00:00", "2024-07-01T05:00:00"),
        ("+01:02:03", "2024-07-01T00:00:00", "2024-06-30T22:57:57"),
        ("UTC-1:2", "2024-07-01T00:00:00", "2024-07-01T01:02:00"),
    ],
)
def test_a_local_time_is_what_java_makes_of_it(zone: str, local: str, utc: str) -> None:
    kind = pa.struct([("t", pa.timestamp("us", "UTC"))])
    texts: list[bytes | None] = [
        b'{"t":"%s"}' % one.encode() for one in (local, f"{local} {zone}", f"{utc}Z")
    ]
    in_zone, named, expected = parse(texts, kind, zone).column.field(0).to_pylist()
    assert in_zone == named == expected


def test_a_zone_keeps_its_rules_for_all_time() -> None:
    kind = pa.struct([("t", pa.timestamp("us", "UTC"))])
    years = [2040, 2437, 2438, 2439, 2440, 2840, 9640, 290040]
    texts: list[bytes | None] = [b'{"t":"%d-07-01T12:00:00"}' % year for year in years]
    utc: list[bytes | None] = [b'{"t":"%d-07-01T11:00:00Z"}' % year for year in years]
    assert parse(texts, kind, "Europe/Lisbon").column.equals(parse(utc, kind).column)


@pytest.mark.parametrize(
    "text",
    ["2024-02T10:11:12Z", "2024-02-29T10Z", "2024-02-29T10:11Z", "2024-02-29T10:11:123Z", "2024-02-29T"],
)
def test_a_zone_comes_after_seconds_and_a_time_after_a_day(text: str) -> None:
    kind = pa.struct([("t", pa.timestamp("us", "UTC"))])
    assert parse([json.dumps({"t": text}).encode()], kind).incomplete.all()


@pytest.mark.parametrize(
    "name", ["../UTC", "/etc/passwd", "posix/UTC", "localtime", "pst", "Europe", "x\0y", ""]
)
def test_a_name_that_java_does_not_know_is_no_zone(name: str) -> None:
    assert TIME_ZONES.find(name) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"7.038531e-26", 7.0385306918512091e-26),
        (b"3.4028235677973366e38", 3.4028234663852886e38),
        (b"3.4028235677973367e38", float("inf")),
        (b"16777217", 16777216.0),
        (b"16777217.0000000000000000001", 16777218.0),
        (b"1.401298464324817e-45", 1.401298464324817e-45),
    ],
)
def test_a_float_is_rounded_once(text: bytes, expected: float) -> None:
    kind = pa.struct([("n", pa.float32())])
    assert numbers(b'{"n":%s}' % text, kind=kind) == [expected]


def test_a_whole_number_has_no_negative_zero() -> None:
    whole, fraction = numbers(b'{"n":-0}', b'{"n":-0.0}', kind=DOUBLE)
    assert struct.pack("2d", whole, fraction) == struct.pack("2d", 0.0, -0.0)


def test_rows_with_something_wrong_are_known() -> None:
    kind = pa.struct([("n", pa.int64()), ("a", pa.list_(pa.struct([("n", pa.int8())])))])
    found = parse([b'{"n":1}', b'{"n":"1"}', b'{"a":[{"n":1},{"n":[]}]}', b"{", None], kind)
    assert found.incomplete.tolist() == [False, True, True, True, False]
    assert found.malformed.tolist() == [False, False, False, True, False]


@pytest.mark.parametrize(
    "kind",
    [pa.uint8(), pa.timestamp("us"), pa.duration("s"), pa.list_(pa.uint8()), pa.map_(pa.int64(), pa.int64())],
)
def test_types_that_are_not_read_are_named(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedType):
        check_type(pa.struct([("x", kind)]))


@pytest.mark.parametrize(
    ("module", "parts"),
    [
        (json_escapes, ["byte_kernels"]),
        (json_walk, ["byte_kernels", "json_escapes"]),
        (json_scalars, ["byte_kernels", "json_escapes", "json_walk"]),
        (json_times, ["byte_kernels", "json_escapes", "json_walk", "json_scalars"]),
        (json_texts, ["byte_kernels", "json_escapes", "json_walk", "json_scalars"]),
    ],
    ids=lambda each: each.__name__.rpartition(".")[2] if isinstance(each, ModuleType) else "",
)
def test_compiled_code_is_not_kept_when_a_part_of_it_changes(module: ModuleType, parts: list[str]) -> None:
    folder = Path(str(module.__file__)).parent
    sources = b"".join((folder / f"{part}.py").read_bytes() for part in parts)
    assert hashlib.sha256(sources).hexdigest()[:16] == module.MADE_FROM


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(max_size=3))
def test_a_key_is_found_whichever_way_it_is_escaped(name: str, other: str) -> None:
    text = json.dumps({name + other: 2, name: 1}).encode()
    assert parse([text], pa.struct([(name, pa.int64())])).column.to_pylist() == [{name: 1}]


@pytest.mark.parametrize(
    "text",
    [
        "-294246-01-01T00:00:00Z",
        "-290308-01-01",
        "2024-01-01T00:00:00 UTC+99",
        "2024-01-01T00:00:00GMT-18:01",
    ],
)
def test_a_time_that_no_timestamp_can_hold_is_null(text: str) -> None:
    kind = pa.struct([("t", pa.timestamp("us", tz="UTC"))])
    found = parse([json.dumps({"t": text}).encode()], kind)
    assert found.column.field(0).null_count == 1
    assert found.incomplete.all()


@pytest.mark.parametrize("text", ["1234567890123456789_0", "1234567890123456789 ", "1234567890123456789١"])
def test_a_long_decimal_has_digits_only(text: str) -> None:
    kind = pa.struct([("n", pa.decimal128(38, 2))])
    assert parse([json.dumps({"n": text}).encode()], kind).incomplete.all()


def test_an_escape_is_read_behind_two_gigabytes() -> None:
    text = rb'{"t":"2024\u002d01-01"}'
    data = np.zeros(2**31 - 1, dtype=np.uint8)  # of which the system keeps what is written alone
    data[-len(text) :] = np.frombuffer(text, dtype=np.uint8)
    places = np.array([len(data) - len(text), len(data)], dtype=np.int32)
    values = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(places), pa.py_buffer(data)])
    found = parse_objects(values, pa.struct([("t", pa.date32())]), LocalTime(TIME_ZONES))
    assert found.column.to_pylist() == [{"t": date(2024, 1, 1)}]


EVERYTHING = pa.struct(
    [
        ("n", pa.float64()),
        ("l", pa.int64()),
        ("c", pa.decimal128(38, 10)),
        ("s", pa.string()),
        ("x", pa.binary()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("a", pa.list_(pa.map_(pa.string(), pa.struct([("s", pa.list_(pa.string()))])))),
    ]
)
PARTS = [
    *(f'"{field.name}":' for field in EVERYTHING), "{", "}", "[", "]", ",", '"', "'", "\\", "\\u", "\\ud83d", "00e9",
    "-", "1", "12345678901234567890", ".5", "e9", "true", "nul", "NaN", "Infinity", "-I", "2024-02-29", "T10:11:12.5",
    "+01", " UTC", "aGk=", " ", "\n",
]  # fmt: skip


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PARTS), max_size=30), st.sampled_from(["", "{", '{"a":[{"k":{"s":[']))
def test_what_lies_around_a_text_is_not_looked_at(parts: list[str], begun: str) -> None:
    text = (begun + "".join(parts)).encode()
    found = []
    for around in (b'"', b"9", b"}"):
        values = pa.array([around * 9, text, around * 9], pa.binary())
        found.append(parse_objects(values.slice(1, 1), EVERYTHING, LocalTime(TIME_ZONES)))
        found[-1].column.validate(full=True)
    assert found[0].column.equals(found[1].column)
    assert found[0].column.equals(found[2].column)
