"""The page about messages in the console: its conditions and its lines are read as it says."""

import json

import pytest

from penstock.client.errors import UserError
from penstock.console.messages import json_path
from penstock.console.messages.asked import parse_partitions, parse_time
from penstock.console.messages.patterns import compiled
from penstock.console.messages.produce import Encoder, parse_lines
from tests.docs.pages import HOW_TO, blocks

TEXT = (HOW_TO / "console-messages.md").read_text()


def test_each_condition_of_the_page_can_be_asked() -> None:
    conditions = blocks(TEXT, "")[0].splitlines()
    assert len(conditions) == 6
    document = {
        "order": {"total": 120, "id": 1500}, "state": "paid", "items": [{"sku": "A-1"}], "deleted": None,
        "customer": {"name": "Ana Sousa"}, "strange name": ["x42"],
    }  # fmt: skip
    for each in conditions:
        assert json_path.holds(json_path.parse(each), document), each


def test_each_line_of_the_page_can_be_written() -> None:
    lines = blocks(TEXT, "json")[0]
    records = parse_lines(
        lines,
        Encoder("text", "t", is_key=True),
        Encoder("json", "t", is_key=False),
        keeps_partitions=True,
        keeps_timestamps=True,
    )
    assert [record.value for record in records] == [b'{"total":3}', b"a text", None, b"\xff\x00"]
    assert (records[1].partition, records[1].timestamp_ms) == (0, 1_700_000_000_000)


def test_times_and_partitions_of_the_page_are_such() -> None:
    for each in ("10m", "2026-11-16 08:00"):
        assert f"`{each}`" in TEXT
        parse_time(each)
    assert "`0, 3-5`" in TEXT
    assert parse_partitions("0, 3-5") == (0, 3, 4, 5)


@pytest.mark.parametrize("pattern", ["(?=x)", "(?<=x)", r"(a)\1"])
def test_expressions_that_the_page_calls_refused_are(pattern: str) -> None:
    with pytest.raises(UserError, match="forever"):
        compiled(pattern)


def test_the_page_names_every_comparison() -> None:
    for operator in (json_path.EQUAL, json_path.UNEQUAL, json_path.LESS, json_path.AT_MOST, json_path.GREATER,
                     json_path.AT_LEAST, json_path.CONTAINS, json_path.MATCHES):  # fmt: skip
        assert f"`{operator}`" in TEXT
    assert json.loads(blocks(TEXT, "json")[0].splitlines()[0])["key"] == "1"
