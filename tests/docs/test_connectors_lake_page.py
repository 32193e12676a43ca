"""The page about files and lakes: its files are written, its worker started and its commands typed."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.connect.connectors.lake.settings import SETTINGS as LAKE_SETTINGS
from penstock.connect.connectors.object_store.settings import SETTINGS as STORE_SETTINGS
from penstock.testing.penstock_broker import PenstockBroker
from tests.docs.pages import HOW_TO
from tests.docs.test_connect_page import DEADLINE_S, Reader, steps

PAGE = HOW_TO / "connectors-lake.md"
COMPACT = "lake compact"
pytestmark = pytest.mark.timeout(300)


class LakeReader(Reader):
    def _types(self, command: str, expected: str) -> None:
        """What a table shows comes about in a while."""
        if not command.startswith("python "):
            super()._types(command, expected)
            return
        deadline_s = time.monotonic() + DEADLINE_S
        # The page's python is the one that has the package.
        (self._folder / "python.sh").write_text(f'exec {sys.executable} "$@"')
        while (shown := self._shown(command.replace("python ", "sh python.sh ", 1))) != expected:
            assert time.monotonic() < deadline_s, f"{command}\n{shown}"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[LakeReader]:
    options = {"group.initial.rebalance.delay.ms": "0"}
    with PenstockBroker(tmp_path / "broker", options=options) as broker:
        folder = tmp_path / "folder"
        folder.mkdir()
        found = LakeReader(folder, broker)
        try:
            yield found
        finally:
            found.close()


def test_what_the_page_shows_is_what_a_reader_sees(reader: LakeReader) -> None:
    found = steps(PAGE.read_text())
    assert len(found) > 5
    for step in found:
        if COMPACT in step.text:
            command = step.text.strip()
            # Both records may have come with one commit.
            assert re.fullmatch(
                r"shop\.orders: (2 files became 1, 2 rows|no small files)", reader._shown(command)
            )
        else:
            reader.does(step)


def test_the_settings_of_the_page_are_there() -> None:
    known = {setting.name for setting in (*LAKE_SETTINGS, *STORE_SETTINGS)}
    listed = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named = {word for cell in listed for word in cell.replace("`", "").replace(",", "").split()}
    assert named <= known
