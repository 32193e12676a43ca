"""The pages of the Python API: every package for programs has one, and whatever a page names is there."""

from __future__ import annotations

import inspect
import pkgutil
import re
from typing import Any

import pytest

from tests.docs.pages import ROOT

PAGES = ROOT / "docs" / "reference" / "python"
FOR_PROGRAMS = {
    "admin", "arrow", "client", "connect", "consumer", "inspection", "spark", "stack", "streams", "testing",
}  # fmt: skip
NAMED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def test_every_package_for_programs_has_a_page_that_is_found() -> None:
    index, site = (PAGES / "index.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    for name in FOR_PROGRAMS:
        assert f"[`penstock.{name}`]({name}.md)" in index
        assert f"penstock.{name}: reference/python/{name}.md" in site
    assert {path.stem for path in PAGES.glob("*.md")} == FOR_PROGRAMS | {"index"}


def named_on(page: str) -> list[str]:
    return NAMED.findall((PAGES / f"{page}.md").read_text())


@pytest.mark.parametrize("name", sorted(FOR_PROGRAMS))
def test_whatever_a_page_names_is_there(name: str) -> None:
    assert named_on(name)
    for each in named_on(name):
        pkgutil.resolve_name(each)


@pytest.mark.parametrize("name", ["client", "inspection", "stack"])
def test_whatever_a_page_names_says_what_it_is(name: str) -> None:
    for each in named_on(name):
        found: Any = pkgutil.resolve_name(each)
        own = found.__doc__ if inspect.isclass(found) else inspect.getdoc(found)
        assert own, f"{each} has no docstring"
        assert not own.startswith(f"{getattr(found, '__name__', '')}("), (
            f"{each} has only a named tuple's docstring"
        )
