import pytest

from penstock.streams.kernel.row_times import timestamp_reader
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Timestamp
from penstock.streams.plan.types import BIGINT, STRING, TIMESTAMP

SCHEMA = Schema((Column("K", STRING),), (Column("N", BIGINT), Column("T", TIMESTAMP), Column("S", STRING)))


@pytest.mark.parametrize(
    ("column", "pattern", "time"),
    [
        ("N", None, 5),
        ("T", None, 7),
        ("S", "yyyy-MM-dd'T'HH:mm:ssX", 1_600_000_000_000),
        ("K", "yyyy-MM-dd", 86_400_000),
    ],
)
def test_the_time_of_a_row(column, pattern, time):
    read = timestamp_reader(Timestamp(column, pattern), SCHEMA)
    assert read(("1970-01-02",), (5, 7, "2020-09-13T12:26:40Z")) == time


@pytest.mark.parametrize(("column", "pattern"), [("N", None), ("S", "yyyy"), ("K", "yyyy")])
def test_a_row_without_a_time(column, pattern):
    read = timestamp_reader(Timestamp(column, pattern), SCHEMA)
    with pytest.raises(Exception, match=r"is NULL|could not be parsed"):
        read(None, (None, None, "no time"))
