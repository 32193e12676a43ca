"""Typed JSON against Spark's own from_json, with generated values: thousands of each type to a call of Spark."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from random import Random

import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.functions import from_json

from penstock.arrow.zone_files import TIME_ZONES
from penstock.records.columnar.json_columns import LocalTime, parse_objects

ROWS = 4_000
MICROS = 1_000_000
DAY = 86_400 * MICROS
# Zones that Java and the system know alike (EST5EDT, for one, depends on the edition), with every kind of change:
# daylight saving of an hour, of half an hour and of two; by negative saving; at one minute past midnight; offsets
# with seconds; a day left out, and a day twice.
ZONES = [
    "America/New_York", "Europe/Lisbon", "Europe/London", "Europe/Dublin", "Europe/Paris", "Europe/Moscow",
    "Australia/Lord_Howe", "Antarctica/Troll", "America/St_Johns", "Africa/Monrovia", "Asia/Kathmandu", "Asia/Kolkata",
    "Pacific/Apia", "Pacific/Kwajalein", "Pacific/Fakaofo", "America/Juneau", "Asia/Manila", "Pacific/Auckland",
    "America/Caracas", "Asia/Pyongyang", "America/Santiago", "Asia/Tokyo", "Africa/Cairo", "America/Nuuk",
]  # fmt: skip
NAMES = [
    "Z", "UTC", "GMT", "UT", "GMT0", "UCT", "PST", "EST", "MST", "HST", "ECT", "JST", "BST", "PSTX", "pst", "utc",
    "Nowhere/Land", "Europe/", "../UTC", "posix/UTC", "localtime", "europe/lisbon", "Etc/GMT+5", "x",
]  # fmt: skip
HARD_FLOATS = [
    "7.038531e-26", "3.4028235677973366e38", "3.4028235677973365e38", "1e39", "16777217", "1.401298464324817e-45",
]  # fmt: skip
ODD_TIMES = [
    "2024-02T10:11:12Z", "2024-02-29T", "2024-02-29T10Z", "2024-02-29T10:11Z", "2024-02-29T10:11GMT",
    "2024-02-29GMT", "2024-02-29T10:11:12GMTZ", "2024-02-29T10:11:123Z", "2024-02-29T10:11:12.Z",
    "2024-02-29T10:11:12\tZ", "\x7f2024-02-29\x7f", "+2024-02-29", "-0001-12-31T23:59:59Z", "0000-02-29",
    "10000-01-01", "294247-01-10T04:00:54.775807Z", "294247-01-10T04:00:54.775808Z",
    "-290308-12-21T19:59:05.224192Z", "-290308-12-21T19:59:05.224191Z", "294247-01-10T05:00:54.775807+01:00",
    "999999-01-01T00:00:00Z", "9999999-01-01", "5881580-07-11", "5881580-07-12", "-5877641-06-23",
    "-5877641-06-22", "2024-02-29T10:11:12z", "", " ", "12", "20240229", "-12345678", "+12345678", "-2147483648",
    "2147483647", "2147483648", "12345678 ", "-99999999", "2024-2-30", "2024-13-01", "2024-02-29T1:2:3+1",
    "2024-02-29T1:2:3+1:30", "2024-02-29T1:2:3+01:3", "2024-02-29T1:2:3+130", "2024-02-29T1:2:3+18:00:01",
    "2024-02-29T1:2:3-18", "2024-02-29T1:2:3+01:02:03", "2024-02-29T1:2:3-010203", "2024-02-29T1:2:3UTC+1:2",
    "2024-02-29T1:2:3 GMT-01:02:03", "2024-02-29T1:2:3+1:2:3", "2024-02-29T1:2:3+", "2024-02-29T1:2:3+00:60",
    "2024-02-29T1:2:3 UT+3", "2024-02-29X", "2024-02-29T25:00:00",
]  # fmt: skip


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def a_local_time(rnd: Random) -> str:
    """Around a change of a zone, or anywhere; 02:30 in most zones comes once, in some never or twice."""
    rules = TIME_ZONES.find(rnd.choice(ZONES))
    assert rules is not None
    if rnd.random() < 0.7:
        near = int(rnd.choice(rules.ends.tolist()))
        shift = rnd.choice(
            [0, 1, 1800 * MICROS, 3600 * MICROS, 2 * 3600 * MICROS, DAY, rnd.randrange(2 * DAY)]
        )
        micros = near + rnd.choice([-1, 1]) * shift
    else:
        micros = rnd.randrange(-62_135_596_800 * MICROS, 253_402_300_799 * MICROS)
    at = datetime(1970, 1, 1) + timedelta(microseconds=micros)
    text = f"{at:%m-%d}{rnd.choice(' T')}{at:%H:%M:%S}"
    year = at.year if rnd.random() < 0.9 else rnd.randrange(-290_307, 294_247)
    return f"{'-' if year < 0 else ''}{abs(year):04}-{text}" + (
        f".{at.microsecond:06}" if at.microsecond else ""
    )


def a_time(rnd: Random, zones: Sequence[str] = (*ZONES, *NAMES)) -> str:
    if rnd.random() < 0.1:
        return quoted(rnd.choice(ODD_TIMES))
    if rnd.random() < 0.05:
        return str(rnd.randrange(-(2**64), 2**64) >> rnd.randrange(64))
    offset = f"{rnd.choice('+-')}{rnd.randrange(20):02}:{rnd.randrange(62):02}"
    second = f"{offset}:{rnd.randrange(60):02}"
    zone = rnd.choice(
        ["", "", "", "Z", offset, offset.replace(":", ""), second, " " + rnd.choice(zones), offset[:3]]
    )
    return quoted(a_local_time(rnd) + zone)


def a_date(rnd: Random) -> str:
    return quoted(rnd.choice(ODD_TIMES) if rnd.random() < 0.3 else a_local_time(rnd)[: rnd.randrange(4, 20)])


def a_number(rnd: Random) -> str:
    """Numbers as they are written, and such as lie near the middle of two doubles, or of two floats."""
    kind = rnd.randrange(8)
    if kind == 0:
        return str(rnd.randrange(-(2**70), 2**70) >> rnd.randrange(70))
    if kind == 1:
        return repr(struct.unpack("f", rnd.randbytes(4))[0]).replace("nan", "NaN").replace("inf", "Infinity")
    if kind == 2:
        return repr(struct.unpack("d", rnd.randbytes(8))[0]).replace("nan", "NaN").replace("inf", "Infinity")
    if kind == 3:
        return f"{rnd.choice(['-', ''])}{rnd.randrange(10 ** rnd.randrange(1, 30))}e{rnd.randrange(-60, 45)}"
    if kind == 4:
        return str(round(rnd.uniform(-1e4, 1e4), rnd.randrange(8)))
    if kind == 5:  # halfway between two floats, and a little beside it
        place = rnd.randrange(2**31 - 2**24)
        low, high = struct.unpack("2f", struct.pack("2I", place, place + 1))
        digits, _, power = f"{(low + high) / 2:.45e}".partition("e")
        return f"{digits}{rnd.choice(['', '1'])}e{power}"
    if kind == 6:
        return rnd.choice(
            [
                "7.038531e-26",
                "3.4028235677973366e38",
                "3.4028235677973365e38",
                "1e39",
                "16777217",
                "1.401298464324817e-45",
            ]
        )
    return rnd.choice(
        [
            "-0",
            "-0.0",
            "0e5",
            "true",
            "null",
            '"NaN"',
            '"-INF"',
            '"1.5"',
            "1e400",
            "NaN",
            "-Infinity",
            "[]",
            "{}",
        ]
    )


def a_decimal(rnd: Random) -> str:
    number = a_number(rnd)
    return quoted(number) if rnd.random() < 0.3 and number[0] in "-0123456789" else number


def a_text(rnd: Random) -> str:
    letters = "".join(rnd.choice("aé😀\"\\/\n\t\u2028 {}[],:'0") for _ in range(rnd.randrange(12)))
    if rnd.random() < 0.2:
        return rnd.choice(["12", "true", "[1, 2]", '{"a": 1}'])
    return json.dumps(letters, ensure_ascii=rnd.random() < 0.5)


def some_bytes(rnd: Random) -> str:
    text = base64.b64encode(rnd.randbytes(rnd.randrange(9))).decode()
    return quoted(text if rnd.random() < 0.8 else text[: rnd.randrange(len(text) + 1)])


def a_boolean(rnd: Random) -> str:
    return rnd.choice(["true", "false", "null", '"true"', "1", "[]"])


def several(one: Callable[[Random], str], rnd: Random) -> str:
    return "[" + ",".join(one(rnd) for _ in range(rnd.randrange(4))) + "]"


def named(one: Callable[[Random], str], rnd: Random) -> str:
    return "{" + ",".join(f'"k{place}":{one(rnd)}' for place in range(rnd.randrange(4))) + "}"


NESTED = pa.struct([("k0", pa.date32()), ("k1", pa.decimal128(9, 3))])
FIELDS: dict[str, tuple[str, pa.DataType, Callable[[Random], str]]] = {
    "b": ("boolean", pa.bool_(), a_boolean),
    "y": ("byte", pa.int8(), a_number),
    "h": ("short", pa.int16(), a_number),
    "i": ("int", pa.int32(), a_number),
    "l": ("long", pa.int64(), a_number),
    "f": ("float", pa.float32(), a_number),
    "d": ("double", pa.float64(), a_number),
    "c": ("decimal(18,6)", pa.decimal128(18, 6), a_decimal),
    "e": ("decimal(38,10)", pa.decimal128(38, 10), a_decimal),
    "s": ("string", pa.string(), a_text),
    "x": ("binary", pa.binary(), some_bytes),
    "t": ("timestamp", pa.timestamp("us", "UTC"), a_time),
    "j": ("date", pa.date32(), a_date),
    "af": ("array<float>", pa.list_(pa.float32()), partial(several, a_number)),
    "at": ("array<timestamp>", pa.list_(pa.timestamp("us", "UTC")), partial(several, a_time)),
    "ml": ("map<string,long>", pa.map_(pa.string(), pa.int64()), partial(named, a_number)),
    "o": ("struct<k0: date, k1: decimal(9,3)>", NESTED, partial(named, a_date)),
}  # fmt: skip


def bits(value: object) -> object:
    """So that NaN is NaN, and -0.0 is not 0.0."""
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack("d", value)
    if isinstance(value, list):
        return [bits(one) for one in value]
    return value


def shown(column: pa.Array) -> list[object]:
    """Days and microseconds as numbers, for Python knows no year before 1 or after 9999."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_date(kind):
        return column.cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_struct(kind):
        fields = zip(*(shown(column.field(number)) for number in range(kind.num_fields)), strict=True)
        valid = column.is_valid().to_pylist()
        return [row if is_there else None for row, is_there in zip(fields, valid, strict=True)]
    if pa.types.is_list(kind):
        items = pa.ListArray.from_arrays(column.offsets, _plain(column.values))
        lists = items.to_pylist()
        return [
            bits(row) if ok else None for row, ok in zip(lists, column.is_valid().to_pylist(), strict=True)
        ]
    return [bits(value) for value in column.to_pylist()]


def _plain(values: pa.Array) -> pa.Array:
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def compared(spark: SparkSession, texts: list[str], zone: str) -> list[tuple[str, str, object, object]]:
    """(text, field, what Spark has, what we have) where these differ."""
    schema = ", ".join(f"{name} {kind}" for name, (kind, _, _) in FIELDS.items())
    frame = spark.createDataFrame(pa.table({"text": texts})).coalesce(1)
    theirs = frame.select(from_json("text", schema, {"timeZone": zone}).alias("v")).select("v.*").toArrow()
    kind = pa.struct([(name, arrow) for name, (_, arrow, _) in FIELDS.items()])
    found = parse_objects(
        pa.array([text.encode() for text in texts]), kind, LocalTime(TIME_ZONES, zone)
    ).column
    different = []
    for number, name in enumerate(FIELDS):
        expected = shown(theirs.column(name).combine_chunks())
        ours = shown(found.field(number))
        different += [
            (text, name, one, other)
            for text, one, other in zip(texts, expected, ours, strict=True)
            if one != other
        ]
    return different


# A seed cannot be made smaller, and each try is a call of Spark: what differs is shown by its text.
@settings(max_examples=3, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_generated_values_are_those_of_from_json(spark: SparkSession, seed: int) -> None:
    rnd = Random(seed)
    names = [*FIELDS, *"tjfd" * 4]  # most of those of which most can go wrong
    texts = [f'{{"{name}":{FIELDS[name][2](rnd)}}}' for name in rnd.choices(names, k=ROWS)]
    zone = rnd.choice([*ZONES, "UTC", "PST", "+01:30"])
    assert compared(spark, texts, zone)[:20] == [], f"in the zone {zone}"


def test_odd_times_and_zones_are_those_of_from_json(spark: SparkSession) -> None:
    texts = [f'{{"{name}":{quoted(text)}}}' for text in ODD_TIMES for name in "tj"]
    texts += [f'{{"t":"2024-07-01T00:00:00{zone}"}}' for zone in (*NAMES, *ZONES)]
    assert compared(spark, texts, "America/New_York") == []
