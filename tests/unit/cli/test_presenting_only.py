"""The command line parses and presents: it speaks to nobody itself, and stays within a number of lines.

docs/decisions/ says what the lines are, and what to do where the ceiling is reached: move logic into a library.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import penstock.cli

CLI = Path(penstock.cli.__file__).parent
CEILING_LINES = 16_000
MOST_LINES_OF_A_FILE = 500
SPEAKERS = (
    "socket",
    "ssl",
    "http.client",
    "urllib.request",
    "sqlite3",
    "penstock.wire",
    "penstock.client.connection",
)
"""Who imports one of these speaks to somebody. Libraries do: client, admin, inspection, load, sql.client, stack."""
WAITS_ON_A_LOOP = {"kafka/zookeeper_security_migration.py"}
"""It waits for stores/zookeeper, whose calls are coroutines, with asyncio.run."""


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(CLI.rglob("*.py")):
        yield str(path.relative_to(CLI)), path.read_text()


def imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def test_no_command_speaks_to_anybody_itself() -> None:
    speaking = [
        f"{name}: {module}"
        for name, text in modules()
        for module in imported(text)
        if any(module == each or module.startswith(f"{each}.") for each in SPEAKERS)
    ]
    assert speaking == []


def test_no_command_runs_a_loop() -> None:
    assert {name for name, text in modules() if "asyncio" in imported(text)} <= WAITS_ON_A_LOOP


def test_the_command_line_stays_within_its_lines() -> None:
    lines = {name: len(text.splitlines()) for name, text in modules()}
    assert sum(lines.values()) <= CEILING_LINES
    assert [name for name, count in lines.items() if count > MOST_LINES_OF_A_FILE] == []
