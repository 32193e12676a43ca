"""The page about the architecture names what is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
SOURCE = ROOT / "src" / "penstock"


def named_paths() -> list[str]:
    """`broker/node`, `storage/chores`: in backquotes, and beginning with one of our folders."""
    folders = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name[0] != "_")
    return sorted(set(re.findall(rf"`((?:{folders})/[a-z_/]+)(?:\.py)?`", PAGE.read_text())))


@pytest.mark.parametrize("named", named_paths())
def test_what_the_page_names_is_there(named: str) -> None:
    path = SOURCE / named
    assert path.is_dir() or path.with_suffix(".py").is_file()


def test_every_room_of_the_broker_is_drawn() -> None:
    rooms = {path.parent.name for path in (SOURCE / "broker").glob("*/__init__.py")}
    drawn = set(re.findall(r"([a-z]+)/", PAGE.read_text().split("## The house")[1].split("## Ways")[0]))
    assert rooms - {"adoption"} <= drawn
