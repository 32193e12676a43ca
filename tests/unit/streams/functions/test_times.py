"""Functions of dates and times and Java's patterns, by SQL text."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.streams.functions.date_patterns import elements_of
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.surroundings import WORLD
from tests.unit.streams.functions.evaluating import FAILS, value_of

AT = "FROM_UNIXTIME(1588888888123)"  # 2020-05-07T22:01:28.123Z
DAY = "FROM_DAYS(17662)"  # 2018-05-11, a Friday
NOON = "CAST('12:30:01' AS TIME)"


def at(pattern: str, zone: str | None = None) -> str:
    return f"FORMAT_TIMESTAMP({AT}, '{pattern}'" + (f", '{zone}')" if zone else ")")


def parse(text: str, pattern: str, zone: str | None = None) -> str:
    return f"PARSE_TIMESTAMP('{text}', '{pattern}'" + (f", '{zone}')" if zone else ")")


FORMATS: list[tuple[str, Any]] = [
    (at("yyyy-MM-dd''T''HH:mm:ss.SSSX"), "2020-05-07T22:01:28.123Z"),
    (at("yyyy-MM-dd HH:mm:ss.SSSSSS"), "2020-05-07 22:01:28.123000"),
    (at("EEE, d MMM yyyy h:mm a z", "America/Los_Angeles"), "Thu, 7 May 2020 3:01 PM PDT"),
    (at("EEEE MMMM D G uuuu yy Q QQQ", "Europe/Berlin"), "Friday May 129 AD 2020 20 2 Q2"),
    (at("VV O XXX xx Z X", "Europe/Berlin"), "Europe/Berlin GMT+2 +02:00 +0200 +0200 +02"),
    (at("xxx O", "UTC"), "+00:00 GMT"),
    (at("k K h H", "+0230"), "24 0 12 0"),
    (at("''''yyyy[ HH]"), "'2020 22"),
    (at("yyyy''"), FAILS),
    (at("bbb"), FAILS),
    (at("yyyy", "Mars/Olympus"), FAILS),
    (at("yyyy", "../../etc/passwd"), FAILS),
    ("FORMAT_TIMESTAMP(CAST(NULL AS TIMESTAMP), 'yyyy')", None),
    (f"FORMAT_DATE({DAY}, 'dd-MMM-yyyy')", "11-May-2018"),
    (f"FORMAT_DATE({DAY}, 'dd HH')", FAILS),
    (f"FORMAT_DATE({DAY}, 'dd[ HH]')", "11"),
    (f"FORMAT_TIME({NOON}, 'h:mm:ss a')", "12:30:01 PM"),
    (f"FORMAT_TIME({NOON}, 'yyyy')", FAILS),
    ("TIMESTAMPTOSTRING(1588888888123, 'yyyy-MM-dd HH:mm', '+0200')", "2020-05-08 00:01"),
    ("DATETOSTRING(-1, 'dd-MM-yyyy')", "31-12-1969"),
]

PARSED: list[tuple[str, Any]] = [
    (parse("2020-05-07 15:01", "yyyy-MM-dd HH:mm"), 1588863660000),
    (parse("20200507150112345", "yyyyMMddHHmmssSSS"), 1588863672345),
    (parse("2020-05-07T15:01:28+02:00", "yyyy-MM-dd''T''HH:mm:ssXXX"), 1588856488000),
    (parse("2020-05-07 03:01 pm", "yyyy-MM-dd hh:mm a", "America/New_York"), 1588878060000),
    (parse("7 MAY 2020", "d MMM yyyy"), 1588809600000),
    (parse("Thursday, 7 May 2020", "EEEE, d MMMM yyyy"), 1588809600000),
    (parse("Friday, 7 May 2020", "EEEE, d MMMM yyyy"), FAILS),
    (parse("2020", "yyyy"), 1577836800000),
    (parse("05-07", "MM-dd"), (31 + 28 + 31 + 30 + 6) * 86_400_000),
    (parse("15:01", "HH:mm"), (15 * 60 + 1) * 60_000),
    (parse("2020-02-31", "yyyy-MM-dd"), 1582934400000),
    (parse("2020-366", "yyyy-DDD"), 1609372800000),
    (parse("2019-366", "yyyy-DDD"), FAILS),
    (parse("366", "DDD"), FAILS),
    (parse("2020-13-01", "yyyy-MM-dd"), FAILS),
    (parse("2020-05-07 rest", "yyyy-MM-dd"), FAILS),
    (parse("20-05-07", "yy-MM-dd"), 1588809600000),
    (parse("2020-05-07 America/New_York", "yyyy-MM-dd VV"), 1588824000000),
    (parse("2020-05-07 PST", "yyyy-MM-dd z"), 1588834800000),
    (parse("2020-05-07", "yyyy-MM-dd[ HH:mm]"), 1588809600000),
    (
        parse("2021-03-14 02:30", "yyyy-MM-dd HH:mm", "America/New_York"),
        1615707000000,
    ),  # a time that never was
    (parse("Sat, 11", "E, HH"), 212400000),
    (parse("2010/Q4", "yyyy/QQQ"), 1262304000000),
    (parse("02/10", "HH/s"), 7210000),
    (parse("2020-05-07 GMT-3:30", "yyyy-MM-dd O"), 1588822200000),
    (parse("2020-05-07 24:00", "yyyy-MM-dd HH:mm"), 1588896000000),
    ("STRINGTOTIMESTAMP('2020-05-07 15:01', 'yyyy-MM-dd HH:mm', 'Europe/Berlin')", 1588856460000),
    ("STRINGTODATE('2018-05-11', 'yyyy-MM-dd')", 17662),
    ("STRINGTODATE('2018-05', 'yyyy-MM')", FAILS),
    ("PARSE_TIME('12:30:01', 'HH:mm:ss')", 45001000),
    ("PARSE_TIME('12', 'HH')", 43200000),
    ("PARSE_TIME('12:30 am', 'hh:mm a')", 1800000),
    ("PARSE_TIME('30', 'mm')", FAILS),
    ("PARSE_TIME('12 2020', 'HH yyyy')", FAILS),
    ("PARSE_DATE('31/12/20', 'dd/MM/yy')", 18627),
    ("PARSE_DATE('20201231', 'yyyyMMdd')", 18627),
    ("PARSE_DATE('31-dec-2020', 'dd-MMM-yyyy')", 18627),
    ("PARSE_DATE('2020-12-31 and more', 'yyyy-MM-dd')", 18627),
    ("PARSE_DATE('2020-13-01', 'yyyy-MM-dd')", 18628),
    ("PARSE_DATE('5', 'dd')", 4),
    ("PARSE_DATE('2020-12-31 12', 'yyyy-MM-dd HH')", FAILS),
    ("PARSE_DATE('x', 'yyyy')", FAILS),
    ("PARSE_DATE('2020-12-31', CAST(NULL AS STRING))", None),
]

STEPS: list[tuple[str, Any]] = [
    ("DATEADD(DAYS, 10, FROM_DAYS(10))", 20),
    ("DATEADD(DAYS, -13, FROM_DAYS(10))", -3),
    ("DATEADD(MILLISECONDS, 5, FROM_DAYS(10))", 10),
    ("DATESUB(HOURS, 25, FROM_DAYS(10))", 8),
    (f"TIMEADD(HOURS, 13, {NOON})", 5401000),
    (f"TIMESUB(SECONDS, 2, {NOON})", 44999000),
    ("TIMESTAMPADD(MINUTES, 1, FROM_UNIXTIME(0))", 60000),
    ("TIMESTAMPSUB(DAYS, 1, FROM_UNIXTIME(0))", -86400000),
    ("TIMESTAMPADD(MINUTES, CAST(NULL AS INT), FROM_UNIXTIME(0))", None),
    ("UNIX_DATE(FROM_DAYS(5))", 5),
    ("UNIX_TIMESTAMP(FROM_UNIXTIME(5))", 5),
    ("CONVERT_TZ(FROM_UNIXTIME(100), '+0200', '+0500')", 10800100),
    ("CONVERT_TZ(FROM_UNIXTIME(1589234313000), 'America/Los_Angeles', 'America/New_York')", 1589245113000),
    ("CONVERT_TZ(FROM_UNIXTIME(100), 'here', 'there')", FAILS),
]


@pytest.mark.parametrize(("text", "wanted"), FORMATS + PARSED + STEPS, ids=lambda value: str(value)[:70])
def test_functions_of_times(text: str, wanted: Any) -> None:
    assert value_of(text) == wanted


def test_the_present_is_asked_of_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORLD, "now_ms", lambda: 86_400_000 * 3 + 7)
    monkeypatch.setattr(WORLD, "random_bytes", lambda size: bytes(range(size)))
    assert value_of("UNIX_DATE()") == 3
    assert value_of("UNIX_TIMESTAMP()") == 86_400_000 * 3 + 7
    assert value_of("UUID()") == "00010203-0405-4607-8809-0a0b0c0d0e0f"
    assert 0 <= value_of("RANDOM()") < 1


@pytest.mark.parametrize("pattern", ["yyyy-'", "MMMMMM", "HHH", "]", "{", "V", "pd d p", "j", "SSSSSSSSSS"])
def test_a_pattern_that_java_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(FunctionFailed):
        elements_of(pattern)
