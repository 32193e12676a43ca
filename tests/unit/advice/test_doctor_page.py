"""The page about the doctor names each check, in order, and its Python runs."""

import re

from penstock.advice.doctor.checks import ALL
from tests.docs.pages import HOW_TO, blocks


def test_the_page_has_the_table_of_the_checks() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", (HOW_TO / "doctor.md").read_text(), re.MULTILINE)
    assert rows == [(check.name, check.what) for check in ALL]


def test_the_python_of_the_page_about_capacity_runs() -> None:
    (code,) = blocks((HOW_TO / "capacity.md").read_text(), "python")
    exec(compile(code, "capacity.md", "exec"), {})
