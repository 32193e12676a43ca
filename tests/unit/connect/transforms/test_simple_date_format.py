"""Java's SimpleDateFormat; the tests beside Kafka have more."""

from __future__ import annotations

import pytest

from penstock.connect.transforms.simple_date_format import SimpleDateFormat

MS = 1_600_000_000_123  # Sunday, 2020-09-13 12:26:40.123


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2020-09-13T12:26:40.123Z"),
        ("EEE, d MMM yy h:mm a", "Sun, 13 Sep 20 12:26 PM"),
        ("D w W F u k K", "257 38 3 2 7 12 0"),
        ("'o''clock' {0}", "o'clock {0}"),
        ("", ""),
    ],
)
def test_a_time_is_written_as_java_writes_it(pattern: str, text: str) -> None:
    assert SimpleDateFormat(pattern).format(MS) == text


@pytest.mark.parametrize(
    ("pattern", "text", "ms"),
    [
        ("yyyy-MM-dd HH:mm:ss", "2020-09-13 12:26:40", 1_600_000_000_000),
        ("yyyyMMddHHmmss", "20200913122640", 1_600_000_000_000),
        ("yyyy-MM-dd'T'HH:mm:ssX", "2020-09-13T14:26:40+02", 1_600_000_000_000),
        ("yyyy-MM-dd", "2020-02-30 and more", 1_583_020_800_000),
        ("yy-MM-dd", "46-01-01", -757_382_400_000),
        ("yy-MM-dd", "45-01-01", 2_366_841_600_000),
        ("yyyy-MM-dd", "today", None),
        ("yyyy", "99999999999999999999", None),
        ("yyyy", "0", None),
    ],
)
def test_a_time_is_read_leniently(pattern: str, text: str, ms: int | None) -> None:
    assert SimpleDateFormat(pattern).parse(text) == ms


@pytest.mark.parametrize("pattern", ["b", "'open", "XXXX", "y" * 2_000])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        SimpleDateFormat(pattern)


def test_whether_the_time_of_day_shows_is_known() -> None:
    assert SimpleDateFormat("yyyyMMdd 'Hms'").is_of_days
    assert not SimpleDateFormat("yyyyMMddHH").is_of_days
