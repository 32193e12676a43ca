"""The page about SQL: statements are run in one session, commands by a shell, in their order, and show what it says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.cli.ksql.session import Session
from penstock.sql.client.service import SqlServer
from penstock.sql.engine.options import SQL_OPTIONS, STATEMENT_PROPERTIES, STREAMS
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import wait_until
from tests.docs.pages import HOW_TO, ROOT, blocks
from tests.sql.servers import bugs
from tests.web.services import WebProcess

PAGE = HOW_TO / "sql.md"
SERVER = "localhost:8088"
WIDTH = 80
DEADLINE_S = 60.0
pytestmark = pytest.mark.timeout(300)


class Step(NamedTuple):
    """`shown` None: the page does not say."""

    kind: str
    title: str
    text: str
    shown: str | None


def steps(page: str) -> Iterator[Step]:
    """Fenced blocks; a block of text right behind statements is what they show."""
    fences = list(
        re.finditer(r'^```([\w-]+)(?: title="([^"]*)")?\n(.*?)^```\n', page, re.DOTALL | re.MULTILINE)
    )
    for fence, after in zip(fences, [*fences[1:], None], strict=True):
        kind, title, text = fence.groups()
        if kind == "sql":
            is_shown = (
                after is not None and after[1] == "text" and not page[fence.end() : after.start()].strip()
            )
            yield Step(
                "file" if title else "sql", title or "", text, after[3] if is_shown and after else None
            )
        elif kind == "console":
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                yield Step("console", "", command, shown)


class Reader:
    """Who does what the page says, against a server of the test's."""

    def __init__(self, url: str, folder: Path) -> None:
        self._address = url.partition("//")[2]
        self._folder = folder
        self._lines: list[str] = []
        self._session = Session(SqlServer(url), width=WIDTH, show=self._lines.append)

    def does(self, step: Step) -> str:
        if step.kind == "file":
            (self._folder / step.title).write_text(step.text)
            return ""
        return self._runs(step.text) if step.kind == "console" else self._types(step.text)

    def _types(self, statements: str) -> str:
        self._lines.clear()
        self._session.run(statements)
        return tidied("\n".join(self._lines))

    def _runs(self, command: str) -> str:
        command = command.replace("bin/ksql", f"{ROOT}/bin/ksql http://{SERVER}").replace(
            SERVER, self._address
        )
        done = subprocess.run(
            ["timeout", str(int(DEADLINE_S)), "sh", "-c", command],
            capture_output=True, text=True, check=False, cwd=self._folder, env={"PATH": "/usr/bin:/bin", "COLUMNS": str(WIDTH)},
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return tidied(done.stdout)


def tidied(shown: str) -> str:
    """Without spaces at ends of lines, empty lines around, times, and the name that a query has for as long as it lasts."""
    text = "\n".join(line.rstrip() for line in shown.strip("\n").splitlines()).strip("\n")
    text = re.sub(r"transient_(\w+)_\d+", r"transient_\1_…", text)
    return re.sub(r"\b1[6-9]\d{11}\b|\b\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}\b", "(a time)", text)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with PenstockBroker(tmp_path, options={"group.initial.rebalance.delay.ms": "0"}) as broker:
        (start,) = blocks(PAGE.read_text(), "sh")
        command = start.partition("#")[0].replace("localhost:9092", broker.bootstrap).split()
        words = [str(ROOT / command[0]), *command[1:], "--host", "127.0.0.1", "--port", "0"]
        words += ["--set", "penstock.sql.functions.enabled=true"]
        server = WebProcess(words, tmp_path / "sql.log")
        yield Reader(server.url, tmp_path)
        assert server.close() == 0
        assert bugs(server.log) == []


def test_what_the_page_shows_is_what_a_reader_sees(reader: Reader) -> None:
    found = list(steps(PAGE.read_text()))
    assert len(found) > 15
    for step in found:
        shown = reader.does(step)
        expected = None if step.shown is None else tidied(step.shown)
        if expected is None or shown == expected:
            continue
        assert step.text.startswith(("SELECT", "curl")), f"{step.text}\n{shown}"
        # What queries have worked off so far.
        wait_until(lambda step=step, expected=expected: reader.does(step) == expected, step.text)  # type: ignore[misc]


def test_the_properties_of_the_page_are_there() -> None:
    known = (
        {option.name for option in SQL_OPTIONS}
        | STATEMENT_PROPERTIES
        | {"listeners", "authentication.method"}
    )
    named = set(
        re.findall(
            r"`((?:ksql|penstock|auto|processing|commit|max|buffered|replication)\.[a-z_.]+)(?:=[^`]*)?`",
            PAGE.read_text(),
        )
    )
    assert {name.removeprefix(STREAMS) for name in named if not name.endswith(".")} <= {
        name.removeprefix(STREAMS) for name in known
    }
