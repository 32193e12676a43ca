"""Logs by time: what a line says of it, and lines of several logs in one order."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from penstock.client.errors import UserError
from penstock.stack.log_times import parse_since, read_since, time_of
from tests.unit.stack.stacks import asked, made

NOW_S = datetime.datetime(2026, 1, 31, 12, 0, 0).timestamp()


@pytest.mark.parametrize(
    ("text", "seconds_ago"),
    [("90s", 90), ("10m", 600), ("1.5h", 5400), ("2d", 172_800), ("11:30", 1800), ("2026-01-31T11:59:30", 30), ("9:00", 10_800)],
)  # fmt: skip
def test_a_time_is_said_as_how_long_ago_a_clock_or_a_date(text: str, seconds_ago: float) -> None:
    assert parse_since(text, now_s=NOW_S) == NOW_S - seconds_ago


@pytest.mark.parametrize("text", ["yesterday", "10", "25:00", "10y", "", "9999999999d ago"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(UserError, match="that is no time; say 10m, 2h, 14:30"):
        parse_since(text, now_s=NOW_S)


@pytest.mark.parametrize(
    "line",
    [
        "[2026-01-31 12:00:00,500] INFO something (penstock.broker)",
        '{"time": "{zone}", "level": "INFO", "message": "x"}',
        "{zone} main WARN maxCnxns is not configured",
        "26/01/31 12:00:00.5 INFO Master: started",
    ],
)
def test_the_time_of_a_line_is_found_in_every_form_that_services_write(line: str) -> None:
    utc = datetime.datetime.fromtimestamp(NOW_S, datetime.UTC)
    assert time_of(line.replace("{zone}", f"{utc:%Y-%m-%dT%H:%M:%S}.500Z")) == NOW_S + 0.5


@pytest.mark.parametrize("line", ["", "penstock: listening", "[2026-13-45 99:00:00,000] INFO", "  File x"])
def test_a_line_without_a_time_has_none(line: str) -> None:
    assert time_of(line) is None


def test_lines_of_several_logs_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    stack = made(tmp_path, asked(brokers=2))
    first, second = stack.member("broker-1"), stack.member("broker-2")
    stack.log_of(first).write_text(
        "penstock: listening\n[2026-01-31 11:00:00,000] INFO long ago\n[2026-01-31 12:00:01,000] ERROR one\n"
        "Traceback\n  File\n[2026-01-31 12:00:04,000] INFO four\n"
    )
    stack.log_of(second).write_text(
        "[2026-01-31 12:00:02,000] INFO two\n[2026-01-31 12:00:03,000] INFO three\n"
    )

    def told(last: int | None = None) -> list[str]:
        found = read_since(stack, [first, second], since_s=NOW_S, last=last, follow=False)
        return [f"{member.name} {text.split()[-1]}" for member, text in found]

    assert told() == [
        "broker-1 one", "broker-1 Traceback", "broker-1 File", "broker-2 two", "broker-2 three", "broker-1 four",
    ]  # fmt: skip
    assert told(last=1) == ["broker-2 three", "broker-1 four"]
