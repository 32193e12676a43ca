"""What a browser remembers for its user: language, light or dark. In cookies that are worth nothing to others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.console.words import DEFAULT, LANGUAGES

LANGUAGE: Final = "penstock_language"
THEME: Final = "penstock_theme"
MAX_COOKIES: Final = 50
_THEMES: Final = {"dark": True, "light": False}


@dataclass(frozen=True)
class Preferences:
    language: str
    is_dark: bool | None
    """None: as the system has it."""

    @staticmethod
    def read(cookies: Mapping[str, str], accept_language: bytes = b"") -> Preferences:
        language = cookies.get(LANGUAGE, "")
        if language not in LANGUAGES:
            language = _accepted(accept_language.decode("latin-1"))
        return Preferences(language, _THEMES.get(cookies.get(THEME, "")))


def _accepted(header: str) -> str:
    """The first language of the header that we have; browsers send the best one first."""
    for part in header[:200].split(","):
        code = part.partition(";")[0].strip()[:2].lower()
        if code in LANGUAGES:
            return code
    return DEFAULT


def cookies_of(header: bytes) -> dict[str, str]:
    """Of several with one name the first: a more exact path comes first, and a parent's domain cannot overrule it."""
    found: dict[str, str] = {}
    for pair in header.decode("latin-1").split(";")[:MAX_COOKIES]:
        name, equals, value = pair.strip().partition("=")
        if equals:
            found.setdefault(name, value)
    return found
