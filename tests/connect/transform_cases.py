"""For every transform and predicate of Kafka Connect: configurations, right and wrong ones, and records."""

from __future__ import annotations

from typing import Any

from tests.connect.described import NULL, Json
from tests.connect.transform_records import (
    DATE,
    FORMATS,
    MAP,
    NO_DEFAULTS,
    PARSED,
    PATTERNS,
    ROWS,
    TIME,
    TIMESTAMP,
    TYPES,
    VALUES,
    field,
    of,
    opt,
    plain,
    sink,
    source,
    struct,
    with_schema,
)


class Cases:
    def __init__(self) -> None:
        self.all: list[tuple[str, Json, Json]] = []

    def add(self, name: str, config: Json, *records: Json) -> None:
        self.all.extend((name, config, record) for record in records)

    def on_rows(self, name: str, *configs: Json, rows: list[Json] = ROWS) -> None:
        for config in configs:
            self.add(f"{name}$Value", config, *[sink(value) for value in rows])
        keys = sink(ROWS[0], ROWS[0]), sink(plain(1), plain(MAP)), source(NULL, ROWS[1])
        self.add(f"{name}$Key", configs[0], *keys)


def _extracted(cases: Cases) -> None:
    cases.on_rows("HoistField", {"field": "all"})
    cases.on_rows(
        "ExtractField",
        {"field": "name"},
        {"field": "size"},
        {"field": "size", **NO_DEFAULTS},
        {"field": "inner.c", "field.syntax.version": "V2"},
        {"field": "inner.d.e", "field.syntax.version": "v2"},
        {"field": "inner.c", "field.syntax.version": "V2", **NO_DEFAULTS},
        {"field": "name.x", "field.syntax.version": "V2"},
        {"field": "inner.nothing", "field.syntax.version": "V2"},
        {"field": "inner.c"},
        {"field": "nothing"},
    )
    dotted = with_schema(struct({"a.b": struct({"c`.d": of("int32")})}), {"a.b": {"c`.d": 1}})
    for path in ("`a.b`.`c\\`.d`", "`a.b`.c`.d", "`a.b", "a.b", "`a.b`.", "`a`b`", "``", "."):
        cases.add(
            "ExtractField$Value",
            {"field": path, "field.syntax.version": "V2"},
            sink(dotted),
            sink(plain({"a.b": {"c`.d": 1}})),
        )


def _inserted(cases: Cases) -> None:
    cases.on_rows(
        "InsertField",
        {"topic.field": "t", "partition.field": "p", "timestamp.field": "at", "offset.field": "o"},
        {
            "topic.field": "t!",
            "partition.field": "p!",
            "timestamp.field": "at!",
            "static.field": "s!",
            "static.value": "x",
        },
        {"topic.field": "t?", "static.field": "s?", "static.value": "x", **NO_DEFAULTS},
        {"topic.field": "name"},
    )
    for value in (ROWS[0], plain(MAP)):
        cases.add("InsertField$Value", {"offset.field": "o"}, source(value))
        cases.add(
            "InsertField$Value",
            {"partition.field": "p", "timestamp.field": "at"},
            source(value),
            source(value, partition=2, timestamp=5),
        )
    cases.add("InsertField$Value", {}, sink(plain(MAP)))
    cases.add("InsertField$Value", {"static.field": "s"}, sink(plain(MAP)))


def _replaced(cases: Cases) -> None:
    cases.on_rows(
        "ReplaceField",
        {"exclude": "name,inner"},
        {"include": "id,size,note"},
        {"include": "id,size,note", "exclude": "id", "renames": "size:length,nothing:x", **NO_DEFAULTS},
        {"renames": "name:note,note:name"},
        {"renames": "name:note"},
        {"renames": "x:id"},
        {},
    )
    cases.add("ReplaceField$Value", {"renames": "a:b:c"}, sink(plain(MAP)))
    cases.add("ReplaceField$Value", {"renames": "a"}, sink(plain(MAP)))
    for config in (
        {"fields": "id,name"},
        {"fields": "size,note"},
        {"fields": "size", **NO_DEFAULTS},
        {"fields": "nothing"},
        {"fields": "id,id"},
    ):
        cases.add("ValueToKey", config, *[sink(value) for value in ROWS])
    for text in ("", "a,,b", "a,"):
        cases.add("ValueToKey", {"fields": text}, sink(plain(MAP)))


def _flattened(cases: Cases) -> None:
    cases.on_rows("Flatten", {}, {"delimiter": "_"}, {"delimiter": " "})
    bare = struct({"in": struct({"a": of("int32"), "b": opt("string")})})
    cases.add(
        "Flatten$Value",
        {},
        sink(field("map")),
        sink(field("dec")),
        sink(with_schema(bare, {"in": {"a": 1, "b": "x"}})),
    )
    cases.on_rows(
        "HeaderFrom",
        {"fields": "id,note", "headers": "h1,h2", "operation": "move"},
        {"fields": "id,note", "headers": "h1,h2", "operation": "copy"},
        {"fields": "size,name", "headers": "h1,h2", "operation": "move", **NO_DEFAULTS},
        {"fields": "note", "headers": "h", "operation": "copy", **NO_DEFAULTS},
        {"fields": "nothing", "headers": "h", "operation": "move"},
    )
    cases.add("HeaderFrom$Value", {"fields": "a,b", "headers": "h", "operation": "move"}, sink(plain(MAP)))
    cases.add("HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "MOVE"}, sink(plain(MAP)))


def _named(cases: Cases) -> None:
    cases.on_rows(
        "SetSchemaMetadata",
        {"schema.name": "new", "schema.version": "9"},
        {"schema.name": "new"},
        {"schema.version": "2", **NO_DEFAULTS},
        rows=[value for value in ROWS if value["schema"] is None or value["schema"]["type"] == "struct"],
    )
    cases.add("SetSchemaMetadata$Value", {}, sink(ROWS[0]))
    cases.add("SetSchemaMetadata$Value", {"schema.version": "x"}, sink(ROWS[0]))
    cases.add(
        "SetSchemaMetadata$Value",
        {"schema.name": "n"},
        sink(field("list")),
    )


def _masked(cases: Cases) -> None:
    cases.on_rows(
        "MaskField",
        {"fields": "name"},
        {"fields": "id,size,note"},
        {"fields": "id", "replacement": "42"},
        {"fields": "name,none", "replacement": "***"},
        {"fields": "id", "replacement": "x"},
        {"fields": "size", **NO_DEFAULTS},
        {"fields": "tags,inner"},
    )
    for name in TYPES:
        if name != "dec":  # ours has the scale of the field
            cases.add("MaskField$Value", {"fields": "v"}, sink(field(name)))
        if name not in ("dec",):
            cases.add("MaskField$Value", {"fields": "v", "replacement": "300.7"}, sink(field(name)))
            cases.add("MaskField$Value", {"fields": "v", "replacement": "1e2"}, sink(field(name)))
            cases.add("MaskField$Value", {"fields": "v", "replacement": "many"}, sink(field(name)))
    for value in (5, 1.5, True, "x", [1], {"a": 1}):
        cases.add("MaskField$Value", {"fields": "v"}, sink(plain({"v": value})))
        cases.add("MaskField$Value", {"fields": "v", "replacement": "7"}, sink(plain({"v": value})))
    cases.add("MaskField$Value", {"fields": "v", "replacement": ""}, sink(plain({"v": 1})))


def _cast(cases: Cases) -> None:
    targets = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
    for target in targets:
        for name in TYPES:
            cases.add("Cast$Value", {"spec": f"v:{target}"}, sink(field(name)))
        for name in ("i64", "f64", "text", "raw"):
            cases.add("Cast$Value", {"spec": target}, sink(with_schema(TYPES[name], VALUES[name])))
            whole = {**TYPES[name], "optional": False, "default": VALUES[name]}
            cases.add("Cast$Key", {"spec": target}, sink(NULL, with_schema(whole, VALUES[name])))
        for plain_value in (5, -129, 1.75, True, "300", "x", "true", [1], {"a": 1}, None, 2**40):
            cases.add("Cast$Value", {"spec": target}, sink(plain(plain_value)))
            cases.add("Cast$Value", {"spec": f"v:{target},w:string"}, sink(plain({"v": plain_value})))


def _cast_texts(cases: Cases) -> None:
    for number in (float("1e40"), -3.99, 1e-5, 12345678.9, 0.001, 100.0, 1e7, 9.999999e6):
        for target in ("float32", "int8", "int64", "string", "boolean"):
            cases.add(
                "Cast$Value",
                {"spec": f"v:{target}"},
                sink(with_schema(struct({"v": of("double")}), {"v": number})),
            )
    for text in (
        "+5",
        " 5",
        "5 ",
        "1e3",
        "1.5f",
        "NaN",
        "0x10",
        "",
        "TRUE",
        "1_0",
        "128",
        "-128",
        "99999999999999999999",
        "1.",
        ".5",
    ):
        for target in ("int8", "int64", "float32", "float64", "boolean"):
            cases.add(
                "Cast$Value",
                {"spec": f"v:{target}"},
                sink(with_schema(struct({"v": of("string")}), {"v": text})),
            )
    for day in (0, -1, 1, 20_000):
        cases.add("Cast$Value", {"spec": "v:string"}, sink(with_schema(struct({"v": DATE}), {"v": day})))
    cases.add(
        "Cast$Value",
        {"spec": "v:int8", **NO_DEFAULTS},
        sink(with_schema(struct({"v": opt("int32", default=300)}), {"v": None})),
    )
    cases.add(
        "Cast$Value",
        {"spec": "v:int8"},
        sink(with_schema(struct({"v": of("int32")}, default={"v": 1}), {"v": 2})),
    )
    for spec in ("v:int99", "v:array", "int8,v:int8", "a:b:c", "", "v:INT8 , w : string"):
        cases.add("Cast$Value", {"spec": spec}, sink(plain({"v": 1, "w": 1})))


def _times(cases: Cases) -> None:
    times: list[tuple[Json, Any]] = [
        (TIMESTAMP, 1_600_000_000_123),
        (TIMESTAMP, -1),
        (DATE, 18_000),
        (DATE, -1),
        (TIME, 3_723_004),
        (of("int64"), 1_600_000_000_123),
        (of("int64"), -1_500),
        (of("string"), "2020-09-13 12:26:40"),
        (of("string"), "nonsense"),
        (of("int32"), 5),
        (of("double"), 1.5),
    ]
    pattern = "yyyy-MM-dd HH:mm:ss"
    for target in ("string", "unix", "Date", "Time", "Timestamp"):
        for schema, value in times:
            config = {"target.type": target, "format": pattern}
            cases.add("TimestampConverter$Value", config, sink(with_schema(schema, value)))
            cases.add(
                "TimestampConverter$Value",
                {**config, "field": "v"},
                sink(with_schema(struct({"v": schema, "w": opt("string")}), {"v": value})),
            )
        for plain_value in (1_600_000_000_123, "2020-09-13 12:26:40", "x", 1.5, True, None, [1]):
            cases.add(
                "TimestampConverter$Value",
                {"target.type": target, "format": pattern},
                sink(plain(plain_value)),
            )
            cases.add(
                "TimestampConverter$Key",
                {"target.type": target, "format": pattern, "field": "v"},
                sink(NULL, plain({"v": plain_value})),
            )
        optional = {**TIMESTAMP, "optional": True, "default": 5}
        for more in ({}, NO_DEFAULTS):
            cases.add(
                "TimestampConverter$Value",
                {"target.type": target, "format": pattern, "field": "v", **more},
                sink(with_schema(struct({"v": optional}, optional=True), {"v": None})),
            )
        cases.add(
            "TimestampConverter$Value",
            {"target.type": target, "format": pattern, "field": "v"},
            sink(with_schema(struct({"v": optional}, optional=True), None)),
            sink(ROWS[0]),
        )
        cases.add(
            "TimestampConverter$Value",
            {"target.type": target, "format": pattern},
            sink(with_schema({**TIMESTAMP, "optional": True}, None)),
        )


def _time_units(cases: Cases) -> None:
    for precision in ("seconds", "milliseconds", "microseconds", "nanoseconds"):
        for value in (1_600_000_000, -1_600_000_001, 1_999_999, 7):
            cases.add(
                "TimestampConverter$Value",
                {"target.type": "Timestamp", "unix.precision": precision},
                sink(with_schema(of("int64"), value)),
            )
            cases.add(
                "TimestampConverter$Value",
                {"target.type": "unix", "unix.precision": precision},
                sink(with_schema(TIMESTAMP, value)),
                sink(plain(value)),
            )
    for config in (
        {"target.type": "string"},
        {"target.type": "string", "format": "bad"},
        {"target.type": "Nope"},
        {"target.type": "Date", "unix.precision": "weeks"},
    ):
        cases.add("TimestampConverter$Value", config, sink(plain(5)))
    cases.add("TimestampConverter$Value", {"target.type": "Date"}, sink(plain("2020-01-01")))
    for each in FORMATS:
        config = {"target.type": "string", "format": each}
        cases.add(
            "TimestampConverter$Value",
            config,
            *[
                sink(with_schema(TIMESTAMP, ms))
                for ms in (1_600_000_000_123, 5, 1_704_067_199_999, 1_735_689_600_000)
            ],
        )
    for each, text in PARSED:
        cases.add("TimestampConverter$Value", {"target.type": "unix", "format": each}, sink(plain(text)))


def _topics(cases: Cases) -> None:
    for config in (
        {},
        {"topic.format": "${timestamp}.${topic}.x", "timestamp.format": "yyyy-MM-dd'T'HH"},
        {"topic.format": "fixed"},
    ):
        cases.add(
            "TimestampRouter",
            config,
            sink(plain(1)),
            sink(plain(1), timestamp=None),
            sink(plain(1), topic="a$1${timestamp}"),
        )
    for regex, replacement in PATTERNS:
        cases.add(
            "RegexRouter",
            {"regex": regex, "replacement": replacement},
            *[sink(plain(1), topic=topic) for topic in ("db.shop.orders", "orders-v2", "aab", "a")],
        )
        cases.add(
            "predicates.TopicNameMatches",
            {"pattern": regex},
            *[sink(plain(1), topic=topic) for topic in ("db.shop.orders", "orders-v2", "aab", "a")],
        )


def _headers(cases: Cases) -> None:
    for literal in ("5", "text", "2020-01-31", "[1,2]", '{"a":1}', "true", "null", "1.5", "", '[1,"a"]'):
        cases.add(
            "InsertHeader",
            {"header": "h", "value.literal": literal},
            sink(plain(1), headers=[{"name": "h", **plain("x")}]),
        )
    headers_said = [
        {"name": "a", **plain("1")},
        {"name": "b", **with_schema(of("int32"), 2)},
        {"name": "a", **plain(None)},
    ]
    for names in ("a", "a,b", "c", ""):
        cases.add("DropHeaders", {"headers": names}, sink(plain(1), headers=headers_said))
        cases.add("predicates.HasHeaderKey", {"name": names}, sink(plain(1), headers=headers_said))
    cases.add("Filter", {}, sink(plain(1)))
    cases.add(
        "predicates.RecordIsTombstone", {}, sink(plain(1)), sink(NULL), sink(with_schema(opt("string"), None))
    )


PARTS = (
    _extracted,
    _inserted,
    _replaced,
    _flattened,
    _named,
    _masked,
    _cast,
    _cast_texts,
    _times,
    _time_units,
    _topics,
    _headers,
)


def cases() -> list[tuple[str, Json, Json]]:
    found = Cases()
    for part in PARTS:
        part(found)
    return found.all
