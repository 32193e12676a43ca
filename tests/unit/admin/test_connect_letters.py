"""What the headers of Connect's dead letters say."""

from __future__ import annotations

import pytest

from penstock.admin.dead_letters.connect_letters import NOWHERE, PREFIX, parse_connect

SAID = {
    "topic": "orders",
    "partition": "3",
    "offset": "41",
    "connector.name": "to-files",
    "exception.class.name": "org.apache.kafka.connect.errors.DataException",
    "exception.message": "no JSON",
    "exception.stacktrace": "at …",
}


def headers(**more: str | None) -> list[tuple[str, bytes | None]]:
    said = {**SAID, **{name.replace("_", "."): text for name, text in more.items()}}
    return [
        ("own", b"1"),
        *((PREFIX + name, text.encode()) for name, text in said.items() if text is not None),
    ]


def test_a_letter_of_a_sink_says_where_it_came_from_and_why() -> None:
    found = parse_connect(headers(), 1000)
    assert found is not None
    assert (found.topic, found.partition, found.offset, found.group) == ("orders", 3, 41, "to-files")
    assert (found.failure.cause, found.failure.message) == (SAID["exception.class.name"], "no JSON")
    assert (found.timestamp_ms, found.failure.last_failure_ms) == (1000, 1000)
    assert found.headers == [("own", b"1")], "its own headers, and no others"


@pytest.mark.parametrize("offset", [None, '{"position": 4}', "-1", "٣", "9" * 40, ""])
def test_a_place_that_is_no_number_of_kafka_s_is_none(offset: str | None) -> None:
    found = parse_connect(headers(offset=offset), 0)
    assert found is not None
    assert (found.partition, found.offset) == (NOWHERE, NOWHERE)


@pytest.mark.parametrize("missing", ["topic", "exception_class_name"])
def test_headers_that_say_no_topic_or_no_cause_are_no_letter(missing: str) -> None:
    assert parse_connect(headers(**{missing: None}), 0) is None


def test_bytes_that_are_no_text_are_shown_as_well_as_they_can() -> None:
    found = parse_connect([*headers(exception_message=None), (PREFIX + "exception.message", b"\xff!")], 0)
    assert found is not None
    assert found.failure.message.endswith("!")
