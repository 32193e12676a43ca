"""The page about the other servers' screens: its command names options that there are, its figures are the code's."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from penstock.cli.verbs.console import console
from penstock.console.dead_letters import MAX_SAMPLES, NAMED_SO
from penstock.console.pages.screens import screens
from penstock.console.pages.sql_results import MAX_ROWS
from penstock.console.words import words as words_of
from penstock.testing.penstock_broker import PenstockBroker
from tests.docs.pages import HOW_TO, blocks
from tests.web.services import WebProcess

TEXT = (HOW_TO / "console-products.md").read_text()


def test_the_command_of_the_page_names_options_that_there_are() -> None:
    known = {name for parameter in console.params for name in parameter.opts}
    (command,) = (block.replace("\\\n", " ") for block in blocks(TEXT, "sh"))
    options = [word for word in shlex.split(command) if word.startswith("--")]
    assert len(options) == 5
    assert set(options) <= known


def test_the_command_starts_a_console(broker: PenstockBroker, tmp_path: Path) -> None:
    """Whether or not the other servers are there."""
    (command,) = (block.replace("\\\n", " ") for block in blocks(TEXT, "sh"))
    words = shlex.split(command.replace("localhost:9092", broker.bootstrap))[1:]
    started = WebProcess(
        [sys.executable, "-m", "penstock", *words, "--port", "0"], tmp_path / "console.log", name="console"
    )
    try:
        assert started.ask("GET", "/health").status == 200
    finally:
        started.close()


def test_each_heading_is_a_screen() -> None:
    titles = {words_of("en")[each.title_key] for each in screens()}
    headings = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert len(headings) == 7
    assert set(headings) <= titles


def test_the_buttons_that_the_page_names_have_these_words() -> None:
    said = set(words_of("en").values())
    named = {
        "Register a schema", "Check compatibility", "Check and register", "Create a connector", "All settings", "As JSON",
        "Offsets", "Queries", "Graph", "Replay", "What would it do?", "Who may?", "Measure on this cluster",
    }  # fmt: skip
    flat = " ".join(TEXT.split())
    assert {each for each in named if f"*{each}*" not in flat} == set()
    assert named <= said


def test_the_figures_of_the_page_are_those_of_the_code() -> None:
    assert MAX_ROWS == 500
    assert "the newest 500 are shown" in TEXT
    assert MAX_SAMPLES == 40
    assert "the\nnewest forty of each" in TEXT or "the newest forty of each" in TEXT
    assert {"dlq", "dead-letter"} <= set(NAMED_SO)
