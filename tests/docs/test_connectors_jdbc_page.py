"""The page about databases: its files are written, its worker started and its commands typed, beside a PostgreSQL of the test."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.connect.connectors.jdbc.sink_settings import SINK_SETTINGS
from penstock.connect.connectors.jdbc.source_settings import SOURCE_SETTINGS
from penstock.testing.penstock_broker import PenstockBroker
from tests.connect.databases import PostgreSql
from tests.docs.pages import HOW_TO
from tests.docs.test_connect_page import DEADLINE_S, Reader, Step, steps

PAGE = HOW_TO / "connectors-jdbc.md"
SERVER = "localhost:5432"
pytestmark = pytest.mark.timeout(300)


class DatabaseReader(Reader):
    def __init__(self, folder: Path, broker: PenstockBroker, database: PostgreSql) -> None:
        super().__init__(folder, broker)
        self._place = f"127.0.0.1:{database.port}"

    def does(self, step: Step) -> None:
        super().does(step._replace(text=step.text.replace(SERVER, self._place)))

    def _types(self, command: str, expected: str) -> None:
        """What a table shows comes about in a while."""
        if not (command.startswith("psql") and "SELECT" in command):
            super()._types(command, expected)
            return
        deadline_s = time.monotonic() + DEADLINE_S
        while (shown := self._shown(command)) != expected:
            assert time.monotonic() < deadline_s, f"{command}\n{shown}"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[DatabaseReader]:
    options = {"group.initial.rebalance.delay.ms": "0"}
    with PostgreSql() as database, PenstockBroker(tmp_path / "broker", options=options) as broker:
        database.run("CREATE ROLE shop LOGIN PASSWORD 'word'")
        database.run("CREATE DATABASE shop OWNER shop")
        folder = tmp_path / "folder"
        folder.mkdir()
        found = DatabaseReader(folder, broker, database)
        try:
            yield found
        finally:
            found.close()


def test_what_the_page_shows_is_what_a_reader_sees(reader: DatabaseReader) -> None:
    found = steps(PAGE.read_text())
    assert len(found) > 5
    for step in found:
        reader.does(step)


def test_the_settings_of_the_page_are_there() -> None:
    known = {setting.name for setting in (*SINK_SETTINGS, *SOURCE_SETTINGS)}
    listed = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named = {
        word.partition("=")[0]
        for line in listed
        for word in line.split("|")[1].replace("`", "").replace(",", "").split()
    }
    modes = {"incrementing", "timestamp", "timestamp+incrementing", "bulk", "mode"}
    assert {name for name in named - modes if name not in known and not name.startswith("consumer.")} == set()
