"""Commands as records: what is written can be read, and what cannot be read is left out."""

from __future__ import annotations

import json

import pytest

from penstock.sql.engine.command_log import Command, read

KEY = json.dumps({"command": "stream/S/create", "sequence": 3}).encode()


def test_a_command_is_read_as_it_was_written() -> None:
    command = Command("stream/S/create", "CREATE STREAM S …;", "CSAS_S_3", {"auto.offset.reset": "earliest"})
    assert read(KEY, command.value(), 7) == Command(
        command.id, command.statement, command.query_id, command.properties, 7
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEY, None),
        (KEY, b"no JSON"),
        (KEY, b"[]"),
        (KEY, b"{}"),
        (KEY, b'{"version": "x", "statement": ""}'),
        (KEY, json.dumps({"version": 99, "statement": "SHOW STREAMS;"}).encode()),
        (None, b'{"version": 1, "statement": "x"}'),
        (b"[1]", b'{"version": 1, "statement": "x"}'),
        (KEY, b'{"version": 1, "statement": "x", "properties": [1]}'),
    ],
)
def test_what_is_no_command_that_we_know_is_left_out(key: bytes | None, value: bytes | None) -> None:
    assert read(key, value, 0) is None
