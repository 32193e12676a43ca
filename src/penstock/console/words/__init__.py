"""The words of the pages, by language and key: `topics.title`. One module per screen and language, each with `WORDS`.

A key that a language lacks is said in English; a key that nobody has is shown as it is, so that a page never fails for a word.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Final

LANGUAGES: Final = {"en": "English", "pt": "Português"}
DEFAULT: Final = "en"


def text(language: str, key: str, **values: object) -> str:
    """>>> text("pt", "common.cancel")
    'Cancelar'
    """
    found = words(language).get(key)
    if found is None:
        found = words(DEFAULT).get(key, key)
    return found.format(**values) if values else found


@cache
def words(language: str) -> dict[str, str]:
    if language not in LANGUAGES:
        return words(DEFAULT)
    package = import_module(f"penstock.console.words.{language}")
    found: dict[str, str] = {}
    for each in sorted(pkgutil.iter_modules(package.__path__), key=lambda one: one.name):
        found |= import_module(f"{package.__name__}.{each.name}").WORDS
    return found
