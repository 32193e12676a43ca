"""What records for transforms are made of: structs and maps, nulls, defaults, all types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.connect.described import NULL, Json

LOGICAL = "org.apache.kafka.connect.data."


def of(type: str, **more: Any) -> Json:
    return {"type": type, "optional": False, **more}


def opt(type: str, **more: Any) -> Json:
    return {"type": type, "optional": True, **more}


def logical(type: str, name: str, **more: Any) -> Json:
    return {"optional": False, **more, "type": type, "name": LOGICAL + name, "version": 1}


def struct(fields: Mapping[str, Json], **more: Any) -> Json:
    return {
        "type": "struct",
        "optional": False,
        **more,
        "fields": [{"field": name, **schema} for name, schema in fields.items()],
    }


def with_schema(schema: Json, payload: Any) -> Json:
    return {"schema": schema, "payload": payload}


def plain(payload: Any) -> Json:
    return {"schema": None, "payload": payload}


DECIMAL = logical("bytes", "Decimal", parameters={"scale": "2"})
DATE, TIME, TIMESTAMP = logical("int32", "Date"), logical("int32", "Time"), logical("int64", "Timestamp")
INNER = struct(
    {"b": opt("int32"), "c": opt("string", default="deep"), "d": struct({"e": opt("boolean")}, optional=True)}
)
ROW = struct(
    {
        "id": of("int64"),
        "name": opt("string"),
        "size": opt("int32", default=7),
        "note": opt("string", default="none"),
        "inner": {**INNER, "optional": True},
        "tags": {"type": "array", "items": of("string"), "optional": True},
        "when": {**TIMESTAMP, "optional": True},
    },
    name="row",
    version=3,
    doc="A row.",
    parameters={"from": "test"},
)  # fmt: skip
FULL = {
    "id": 5, "name": "Ann", "size": 1, "note": "x", "inner": {"b": 1, "c": "c", "d": {"e": True}}, "tags": ["a", "b"],
    "when": 1_600_000_000_123,
}  # fmt: skip
SPARSE = {"id": 5, "name": None, "size": None, "note": None, "inner": None, "tags": None, "when": None}
HALF = {**FULL, "inner": {"b": None, "c": None, "d": None}, "name": None}
MAP = {
    "id": 5,
    "name": "Ann",
    "inner": {"b": 1, "d": {"e": True, "f": None}, "z": {}},
    "tags": ["a"],
    "none": None,
    "f": 1.5,
    "ok": True,
}
TYPES = {
    "i8": opt("int8"), "i16": opt("int16"), "i32": opt("int32"), "i64": opt("int64"), "f32": opt("float"), "f64": opt("double"),
    "ok": opt("boolean"), "text": opt("string"), "raw": opt("bytes"), "list": opt("array", items=of("int32")),
    "map": opt("map", keys=of("string"), values=of("int32")), "row": struct({"a": of("int32")}, optional=True),
    "dec": {**DECIMAL, "optional": True}, "date": {**DATE, "optional": True}, "time": {**TIME, "optional": True},
    "at": {**TIMESTAMP, "optional": True},
}  # fmt: skip
VALUES = {
    "i8": 127, "i16": -32768, "i32": 2**31 - 1, "i64": -(2**63), "f32": 0.1, "f64": 1e300, "ok": True, "text": "12",
    "raw": "AAEC", "list": [1, 2], "map": {"a": 1}, "row": {"a": 1}, "dec": "AN4=", "date": 18_000, "time": 3_723_004,
    "at": 1_600_000_000_123,
}  # fmt: skip


def sink(value: Json = NULL, key: Json = NULL, **more: Any) -> Json:
    return {
        "topic": "orders",
        "partition": 1,
        "offset": 7,
        "timestamp": 1_600_000_000_123,
        "value": value,
        "key": key,
        **more,
    }


def source(value: Json = NULL, key: Json = NULL, **more: Any) -> Json:
    return {"kind": "source", "topic": "orders", "value": value, "key": key, **more}


def field(name: str) -> Json:
    """A struct with one field of this type, and its value."""
    return with_schema(struct({"v": TYPES[name]}), {"v": VALUES[name]})


ROWS = [
    with_schema(ROW, FULL),
    with_schema(ROW, SPARSE),
    with_schema(ROW, HALF),
    with_schema({**ROW, "optional": True}, None),
    plain(MAP),
    NULL,
    with_schema(of("string"), "text"),
    plain("text"),
]
NO_DEFAULTS = {"replace.null.with.default": "false"}
FORMATS = (
    "yyyyMMdd", "yy-M-d", "yyyyy", "MMM MMMM EEE EEEE", "hh:mm a", "KK kk", "SSS SSSSSS S", "D DDD", "w W F u E", "YYYY", "G",
    "z zzzz Z X XX XXX", "'T' ''yy'' 'o''clock'", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "{0} yyyy {", "'", "XXXX", "LLL L", "bb",
)  # fmt: skip
PARSED = (
    ("yyyyMMdd", "20200131"),
    ("yyyyMMdd", "2020013"),
    ("yyyy-MM-dd", "2020-1-3"),
    ("yyyy-MM-dd", "2020-13-45"),
    ("yyyy-MM-dd", "2020-01-31 and more"),
    ("yyyy-MM-dd", " 2020-01-31"),
    ("yy-MM-dd", "99-01-31"),
    ("yy-MM-dd", "30-01-31"),
    ("yy-MM-dd", "2030-01-31"),
    ("dd MMM yyyy", "31 jan 2020"),
    ("dd MMM yyyy", "31 January 2020"),
    ("EEE, dd MMM yyyy HH:mm:ss Z", "Fri, 31 Jan 2020 10:20:30 +0130"),
    ("yyyy-MM-dd'T'HH:mm:ssX", "2020-01-31T10:20:30Z"),
    ("yyyy-MM-dd'T'HH:mm:ssXXX", "2020-01-31T10:20:30-05:30"),
    ("yyyy-MM-dd'T'HH:mm:ssXX", "2020-01-31T10:20:30-0530"),
    ("yyyy-MM-dd HH:mm:ss.SSS", "2020-01-31 10:20:30.123456"),
    ("yyyy-MM-dd HH:mm:ss.SSS", "2020-01-31 10:20:30.5"),
    ("hh:mm a", "12:30 am"),
    ("hh:mm a", "12:30 PM"),
    ("hh:mm a", "1:30 xm"),
    ("HH:mm z", "10:20 UTC"),
    ("HH:mm z", "10:20 GMT+2:00"),
    ("HH:mm z", "10:20 PST"),
    ("D yyyy", "60 2020"),
    ("kk:mm", "24:30"),
    ("yyyy-MM-dd", "x"),
    ("yyyy-MM-dd", ""),
    ("yyyy-MM-dd", "2020--1-05"),
    ("HHmmss", "102030"),
    ("HHmmss", "10203"),
    ("MM/dd/yyyy", "1/2/2020"),
    ("yyyy-MM-dd", "2020/01/01"),
    ("yyyyMMddHHmmssSSS", "20200131102030123"),
    ("yyyy-MM", "2020-07"),
    ("H", "25"),
    ("d MMMM", "5 may"),
    ("yyyy-DDD", "2020-366"),
)
PATTERNS = (
    (r"(.*)\.(.*)\.(.*)", "$3"),
    (r"([^.]+)\.([^.]+)\.([^.]+)", "$2_$3"),
    (r"(?<db>[^.]+)\.(.*)", "${db}-$2"),
    (r"orders-v(\d+)", "o$1$$"),
    (r"a|aab", "X"),
    ("(a)(a)?(b)?", "[$1$2$3]"),
    (".*", r"\$1\\"),
    ("(.*)", "$10"),
    ("(.*)", "$2"),
    ("(.*)", "${x}"),
    ("(a", "x"),
    (r"(?!db).*", "n"),
    (r"(?=a)a*+b", "p"),
    (r"(\w)\1b", "back"),
    (r"\Qorders-v2\E", "q"),
    (r"\p{Alpha}+-v\p{Digit}", "pos"),
    ("(?i)ORDERS.*", "i"),
    ("[a-z.]+", "k"),
    ("", "x"),
    ("(.*)", ""),
    (r"(?<x>a)(?<y>a)b", "${y}${x}"),
    ("(.*)", "$"),
    ("(.*)", "a\\"),
    ("*", "x"),
    (r"[\w.]+", "w"),
    (r"[^-]+", "n"),
    (r"[]a]+b", "b"),
)
