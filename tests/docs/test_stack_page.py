"""The page about stacks: its files are written, and its commands run one after the other."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.stack.description.reading import read_description
from penstock.stack.services import SERVICES
from tests.cli.boxes import TestBox
from tests.docs.pages import HOW_TO, ROOT, blocks
from tests.docs.test_commands_shown import commands

PAGE = HOW_TO / "stack.md"
DEADLINE_SECONDS = 120
PORTS = " ".join(f"{service.port_option} 0" for service in SERVICES)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """The folder of the page."""
    folder = tmp_path / "shop"
    folder.mkdir()
    text = PAGE.read_text()
    for name, language in (("penstock.yaml", "yaml"), ("payment.avsc", "json"), ("orders.sql", "sql")):
        (block,) = blocks(text, language)
        (folder / name).write_text(block.replace("/tmp/orders.txt", str(tmp_path / "orders.txt")))
    yield folder
    TestBox(folder / "penstock-data").close()


def run(command: str, shop: Path) -> str:
    text = command.replace("shop/", f"{shop}/")
    if " up " in text and "--check" not in text:
        text += f" {PORTS}"
    done = subprocess.run(
        ["timeout", "-k", "5", str(DEADLINE_SECONDS), "sh", "-c", text],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.timeout(300)
def test_the_commands_of_the_page_run_one_after_the_other(shop: Path) -> None:
    said = {}
    for command in commands(PAGE):
        said[command] = run(command, shop)
    again = said["bin/penstock up --file shop/penstock.yaml"]  # the second one of the page
    assert "5 as they shall be, 0 made or changed" in again
    assert (shop / "compose.yaml").exists()
    assert not (shop / "penstock-data").exists()


def test_the_mistakes_of_the_page_are_told_as_it_says() -> None:
    (shown, *_) = blocks(PAGE.read_text(), "text")
    assert re.findall(r"did you mean `([a-z.]+)`", shown) == ["count", "cleanup.policy"]


def test_the_file_of_the_page_names_the_schema_of_editors_from_where_it_is(tmp_path: Path) -> None:
    (block,) = blocks(PAGE.read_text(), "yaml")
    (path,) = re.findall(r"\$schema=\.\./(\S+)", block)
    assert (ROOT / path).exists()
    assert read_description(ROOT / "examples" / "lab" / "penstock.yaml", SERVICES).name == "bioimpedancia"
