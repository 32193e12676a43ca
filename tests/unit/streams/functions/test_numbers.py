"""Functions of numbers, casts and decimal arithmetic, by SQL text."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from penstock.streams.functions import java_text
from penstock.streams.plan import types as t
from tests.unit.streams.functions.evaluating import FAILS, value_of

NO_INT = "CAST(NULL AS INT)"
D = Decimal

NUMBERS: list[tuple[str, Any]] = [
    ("ABS(-3)", 3),
    ("ABS(-1.50)", D("1.50")),
    (f"ABS({NO_INT})", None),
    ("CEIL(CAST(-1.5 AS DOUBLE))", -1.0),
    ("CEIL(1.25)", D("2.00")),
    ("FLOOR(CAST(-1.5 AS DOUBLE))", -2.0),
    ("FLOOR(-1.25)", D("-2.00")),
    ("ROUND(CAST(1.5 AS DOUBLE))", 2),
    ("ROUND(CAST(-1.5 AS DOUBLE))", -1),
    ("ROUND(CAST(-1.6 AS DOUBLE))", -2),
    ("ROUND(CAST(0.49999999999999994 AS DOUBLE))", 0),
    ("ROUND(CAST(1234.5678 AS DOUBLE), 2)", 1234.57),
    ("ROUND(CAST(1234.5678 AS DOUBLE), -2)", 1200.0),
    ("ROUND(CAST(-0.125 AS DOUBLE), 2)", -0.12),
    ("ROUND(7)", 7),
    ("ROUND(CAST('1234.56' AS DECIMAL(6, 2)))", D("1235")),
    ("ROUND(CAST('-1.50' AS DECIMAL(6, 2)))", D("-1")),
    ("ROUND(CAST('1234.56' AS DECIMAL(6, 2)), 1)", D("1234.60")),
    ("ROUND(CAST('1234.56' AS DECIMAL(6, 2)), -2)", D("1200.00")),
    ("ROUND(CAST(NULL AS DOUBLE), 1)", None),
    ("TRUNC(CAST(-1.9 AS DOUBLE))", -1),
    ("TRUNC(CAST(1234.5678 AS DOUBLE), 2)", 1234.56),
    ("TRUNC(CAST('1234.56' AS DECIMAL(6, 2)), 1)", D("1234.50")),
    ("SIGN(-5)", -1),
    ("SIGN(CAST(0 AS DOUBLE))", 0),
    ("SQRT(16)", 4.0),
    ("EXP(0)", 1.0),
    ("EXP(1000)", math.inf),
    ("LN(0)", -math.inf),
    ("LOG(2, 8)", 3.0),
    ("POWER(2, 10)", 1024.0),
    ("POWER(10, 400)", math.inf),
    ("CBRT(-8)", -2.0),
    ("DEGREES(PI())", 180.0),
    ("ATAN2(1, 1)", math.pi / 4),
    ("GREATEST(1, 3, 2)", 3),
    (f"GREATEST(1, {NO_INT})", 1),
    ("GREATEST('a', 'B')", "a"),
    ("LEAST(CAST(NULL AS DOUBLE), CAST(NULL AS DOUBLE))", None),
    ("LEAST(1.5, 0.25)", D("0.25")),
    ("COALESCE(NULL, 5)", 5),
    (f"IFNULL({NO_INT}, 5)", 5),
    ("NULLIF(5, 5)", None),
    ("NULLIF(5, 6)", 5),
    ("GEO_DISTANCE(CAST(91 AS DOUBLE), 0e0, 0e0, 0e0)", FAILS),
    ("GEO_DISTANCE(0e0, 0e0, 0e0, 0e0, 'furlong')", FAILS),
    ("GEO_DISTANCE(0e0, 0e0, 0e0, 0e0, 'MI')", 0.0),
    ("AS_VALUE(5)", 5),
]

NOT_NUMBERS = ["SQRT(-1)", "LN(-1)", "ACOS(2)", "LOG(1, 2)", "POWER(-8, 0.5e0)", "0e0 / 0e0", "LOG(0, 5)"]

ARITHMETIC: list[tuple[str, Any]] = [
    ("2147483647 + 1", -(2**31)),
    ("9223372036854775807 + 1", -(2**63)),
    ("-7 / 2", -3),
    ("-7 % 3", -1),
    ("7 / 0", FAILS),
    ("7 % 0", FAILS),
    ("1e0 / 0", math.inf),
    ("1.5 + 1", D("2.5")),
    ("1.50 * 2.0", D("3.000")),
    ("1.0 / 3.0", FAILS),
    ("1.0 / 8", D("0.125000000000")),
    ("5.5 % 2", D("1.5")),
    ("1.0 / 0", FAILS),
    ("1.5 + 1e0", 2.5),
    ("-(-5)", 5),
    ("ABS(CAST('-2147483648' AS INT))", -(2**31)),
    ("-CAST('0.00' AS DECIMAL(3, 2))", D("0.00")),
    ("CAST(-0e0 AS DECIMAL(3, 2))", D("0.00")),
    ("-0.5 * 0", D("0.0")),
]

CASTS: list[tuple[str, Any]] = [
    ("CAST('12' AS INT)", 12),
    ("CAST(' 12 ' AS BIGINT)", 12),
    ("CAST('1.5' AS INT)", FAILS),
    ("CAST('3000000000' AS INT)", FAILS),
    ("CAST(3000000000 AS INT)", 3000000000 - 2**32),
    ("CAST(1e20 AS BIGINT)", 2**63 - 1),
    ("CAST(-1.9e0 AS INT)", -1),
    ("CAST(1.9 AS INT)", 1),
    ("CAST('1e3' AS DOUBLE)", 1000.0),
    ("CAST('Infinity' AS DOUBLE)", FAILS),
    ("CAST('x' AS DOUBLE)", FAILS),
    ("CAST('yes' AS BOOLEAN)", True),
    ("CAST('whatever' AS BOOLEAN)", False),
    ("CAST('1.25' AS DECIMAL(3, 1))", D("1.3")),
    ("CAST('123.45' AS DECIMAL(3, 1))", FAILS),
    ("CAST(1.1e0 AS DECIMAL(4, 2))", D("1.10")),
    ("CAST(12 AS DECIMAL(4, 2))", D("12.00")),
    ("CAST(1e0 AS STRING)", "1.0"),
    ("CAST(1.0E10 AS STRING)", "1.0E10"),
    ("CAST(123456789e0 AS STRING)", "1.23456789E8"),
    ("CAST(0.001e0 AS STRING)", "0.001"),
    ("CAST(0.0001e0 AS STRING)", "1.0E-4"),
    ("CAST(1.50 AS STRING)", "1.50"),
    ("CAST(TRUE AS STRING)", "true"),
    ("CAST(STRUCT(F0 := 1, `f1` := 3, N := CAST(NULL AS INT)) AS STRING)", "Struct{F0=1,f1=3}"),
    ("CAST(ARRAY[1, NULL] AS STRING)", "[1, null]"),
    ("CAST(MAP('a' := 1e0) AS STRING)", "{a=1.0}"),
    ("CAST(ARRAY['1', '2'] AS ARRAY<INT>)", [1, 2]),
    ("CAST(MAP('1' := '2') AS MAP<INT, DOUBLE>)", {1: 2.0}),
    ("CAST(STRUCT(A := '1', B := 2) AS STRUCT<A INT, C STRING>)", {"A": 1, "C": None}),
    ("CAST(CAST('2020-05-26T23:59:58.001' AS TIMESTAMP) AS STRING)", "2020-05-26T23:59:58.001"),
    ("CAST(CAST('2020-05-26T23:59:58+0200' AS TIMESTAMP) AS STRING)", "2020-05-26T21:59:58.000"),
    ("CAST(CAST('2020-05-26T10Z' AS TIMESTAMP) AS STRING)", "2020-05-26T10:00:00.000"),
    ("CAST('2020-13-01' AS TIMESTAMP)", FAILS),
    ("CAST(FROM_UNIXTIME(253402300800000) AS STRING)", "+10000-01-01T00:00:00.000"),
    ("CAST(CAST('2020' AS DATE) AS STRING)", "2020-01-01"),
    ("CAST(CAST('2020-02-30' AS DATE) AS STRING)", FAILS),
    ("CAST(CAST('12:30' AS TIME) AS STRING)", "12:30"),
    ("CAST(CAST('12:30:01.5' AS TIME) AS STRING)", "12:30:01"),
    ("CAST('25:00' AS TIME)", FAILS),
    ("CAST(CAST('2020-05-26T01:00' AS TIMESTAMP) AS DATE)", 18408),
    ("CAST(CAST('2020-05-26T01:00' AS TIMESTAMP) AS TIME)", 3_600_000),
    ("CAST(CAST('2020-05-26' AS DATE) AS TIMESTAMP)", 18408 * 86_400_000),
    ("CAST('-0044-03-15' AS DATE)", -735_525),
]


@pytest.mark.parametrize(("text", "wanted"), NUMBERS + ARITHMETIC + CASTS, ids=lambda value: str(value)[:60])
def test_functions_of_numbers_and_casts(text: str, wanted: Any) -> None:
    found = value_of(text)
    assert found == wanted
    assert type(found) is type(wanted)
    if isinstance(wanted, Decimal):
        assert str(found) == str(wanted)  # with all its decimals


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_out_of_the_domain_is_no_number(text: str) -> None:
    assert math.isnan(value_of(text))


def test_a_great_circle_has_a_length() -> None:
    assert value_of("GEO_DISTANCE(37.4e0, -122.1e0, 51.5e0, -0.1e0)") == pytest.approx(
        8638.258, abs=0.001
    )  # by the law of cosines, too


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (-0.0, "-0.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (123.0, "123.0"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_text.text_of(value, t.DOUBLE) == text
