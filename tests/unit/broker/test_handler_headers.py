"""The headers of the handlers: a reader learns from each what the API is, and what is not done."""

import ast
import re
from pathlib import Path

import pytest

from penstock.broker import handlers
from penstock.wire.apis import APIS

FOLDER = Path(next(iter(handlers.__path__)))


def header(name: str) -> str:
    return ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text())) or ""


def test_every_api_has_a_handler_and_every_handler_an_api() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert files == {api.name for api in APIS.values()}


@pytest.mark.parametrize(("key", "api"), sorted(APIS.items()), ids=lambda value: getattr(value, "name", None))
def test_a_header_begins_with_key_name_and_versions(key: int, api: tuple[object, ...]) -> None:
    name, lowest, highest = str(api[0]), api[1], api[2]
    words = "".join(word.capitalize() for word in name.split("_"))
    versions = f"version {lowest}" if lowest == highest else f"versions {lowest}–{highest}"
    assert header(name).startswith(f"API {key} {words}, {versions}: ")


@pytest.mark.parametrize("name", [api.name for _, api in sorted(APIS.items())])
def test_a_header_ends_with_what_is_not_done(name: str) -> None:
    last = header(name).splitlines()[-1]
    assert re.fullmatch(r"Not done: .*\.", last), last
