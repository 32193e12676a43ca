"""The pages about one connector each: their files are written, their worker started and their commands typed, beside the server
that they speak of."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from penstock.connect.findings import definitions
from penstock.connect.plugins import plugins_of_worker
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import RunningProcess, free_port, start_process
from tests.connect.databases import PostgreSql, Redis
from tests.connect.test_elasticsearch_sink import OpenSearch
from tests.connect.test_mongodb_connectors import MongoJavaServer
from tests.docs.pages import HOW_TO, blocks
from tests.docs.test_connect_page import DEADLINE_S, Reader, Step, steps

pytestmark = pytest.mark.timeout(900)
WAITED_FOR = (
    "python ",
    "psql",
    "redis-cli",
    "curl ",
    "cat ",
    "bin/penstock connectors offsets",
    "bin/penstock consume",
)
PATIENCE_S = 3 * DEADLINE_S
"""A Spark of its own for a task starts slowly on a machine that is busy with other tests."""
CHANGES = ("UPDATE", "INSERT", "CREATE", "XADD")

Places = Mapping[str, str]
"""An address of the page, and where the server is."""


class PageReader(Reader):
    def __init__(self, folder: Path, broker: PenstockBroker, places: Places) -> None:
        super().__init__(folder, broker)
        self._places = places
        self._endpoint: RunningProcess | None = None

    def does(self, step: Step) -> None:
        text = step.text
        for address, place in self._places.items():
            text = text.replace(address, place)
        super().does(step._replace(text=text))

    def _starts(self, command: str) -> None:
        """The page's own program, or a worker."""
        if not command.startswith("python "):
            super()._starts(command)
            return
        words = [sys.executable, str(self._folder / command.split()[1]), *command.split()[2:]]
        self._endpoint = start_process(words, name="endpoint", log_path=self._folder / "endpoint.log")
        self._endpoint.wait_for_port(int(words[-1]))

    def _types(self, command: str, expected: str) -> None:
        """What comes about in a while is waited for."""
        if not command.startswith(WAITED_FOR) or any(word in command for word in CHANGES):
            shown = self._shown_before_a_worker(command) if self._worker is None else None
            if shown is None:
                super()._types(command, expected)
            else:
                assert shown == expected, command
            return
        # The page's python is the one that has the package.
        (self._folder / "python.sh").write_text(f'exec {sys.executable} "$@"')
        asked = re.sub(r"^python ", "sh python.sh ", command)
        deadline_s = time.monotonic() + PATIENCE_S
        while (shown := self._shown(asked)) != expected:
            assert time.monotonic() < deadline_s, f"{command}\n{shown}"

    def _shown_before_a_worker(self, command: str) -> str:
        import subprocess

        done = subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            cwd=self._folder,
            check=False,
        )
        return (done.stdout + done.stderr).strip()

    def close(self) -> None:
        """A worker that ends leaves Spark's Python processes alone with a pipe that is gone, which they tell."""
        worker, self._worker = self._worker, None
        if worker is not None:
            assert worker.close() == 0
            log = re.sub(
                r"Traceback [^\n]*\n  File \"[^\n]*pyspark/daemon\.py.*?BrokenPipeError[^\n]*\n",
                "",
                worker.log,
                flags=re.S,
            )
            assert "Traceback" not in log

    def end(self) -> None:
        if self._endpoint is not None:
            self._endpoint.kill()
        self.close()


@contextmanager
def postgresql(folder: Path) -> Iterator[Places]:
    with PostgreSql() as server:
        server.run("CREATE ROLE shop LOGIN SUPERUSER REPLICATION PASSWORD 'word'")
        server.run("CREATE DATABASE shop OWNER shop")
        yield {"localhost:5432": f"127.0.0.1:{server.port}", "database.port=5432": f"database.port={server.port}",
               "database.hostname=localhost": "database.hostname=127.0.0.1"}  # fmt: skip


@contextmanager
def redis(folder: Path) -> Iterator[Places]:
    with Redis(folder) as server:
        yield {"localhost:6379": f"127.0.0.1:{server.port}"}


@contextmanager
def opensearch(folder: Path) -> Iterator[Places]:
    with OpenSearch(folder) as server:
        yield {"localhost:9200": f"127.0.0.1:{server.port}"}


@contextmanager
def mongodb(folder: Path) -> Iterator[Places]:
    with MongoJavaServer(folder) as server:
        yield {"localhost:27017": f"127.0.0.1:{server.port}"}


@contextmanager
def endpoint(folder: Path) -> Iterator[Places]:
    port = free_port()
    yield {"localhost:8000": f"127.0.0.1:{port}", "endpoint.py 8000": f"endpoint.py {port}"}


@contextmanager
def nothing(folder: Path) -> Iterator[Places]:
    yield {}


PAGES: dict[str, Callable[[Path], AbstractContextManager[Places]]] = {
    "change-capture": postgresql,
    "datagen": nothing,
    "elasticsearch": opensearch,
    "http": endpoint,
    "mongodb": mongodb,
    "redis": redis,
    "spark": nothing,
}


@pytest.mark.parametrize("name", PAGES)
def test_what_the_page_shows_is_what_a_reader_sees(tmp_path: Path, name: str) -> None:
    page = (HOW_TO / f"connectors-{name}.md").read_text()
    folder = tmp_path / "folder"
    folder.mkdir()
    options = {"group.initial.rebalance.delay.ms": "0"}
    with (
        PAGES[name](tmp_path / "server") as places,
        PenstockBroker(tmp_path / "broker", options=options) as broker,
    ):
        reader = PageReader(folder, broker, places)
        try:
            found = steps(page)
            assert len(found) > 3
            for step in found:
                reader.does(step)
        finally:
            reader.end()


@pytest.mark.parametrize("name", PAGES)
def test_the_settings_of_the_page_are_there(name: str) -> None:
    page = (HOW_TO / f"connectors-{name}.md").read_text()
    plugins = plugins_of_worker({})
    known: set[str] = set()
    for block in blocks(page, r'properties(?: title="[^"]*")?'):
        classes = re.findall(r"^connector\.class=(.*)$", block, re.MULTILINE)
        for each in classes:
            plugin = plugins.find(each)
            assert plugin is not None, each
            known |= {each["name"] for each in definitions(plugin)}
    named = {
        word.partition("=")[0]
        for cells in re.findall(r"^\| (`[a-z].*?`) \|", page, re.MULTILINE)
        for word in re.findall(r"`([^`]+)`", cells)
    }
    unknown = {name for name in named - known if "." in name and "NAME" not in name and "…" not in name}
    assert not unknown
