"""Regular expressions ◇, of RE2 only: they take time in proportion to the text, whoever wrote them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from penstock.client.errors import UserError

MAX_PATTERN: Final = 1_000
MAX_MEMORY_BYTES: Final = 8 << 20
"""Of a compiled pattern: RE2's own bound, which Arrow's search has as well."""
_LACKING: Final = {
    "(?=": "looking ahead", "(?!": "looking ahead", "(?<=": "looking behind", "(?<!": "looking behind",
    "(?>": "an atomic group", "(?(": "a condition",
}  # fmt: skip


class Pattern:
    """`text` is what Arrow's search is given."""

    def __init__(self, text: str, found: Any) -> None:
        self.text = text
        self._found = found

    def is_in(self, text: str) -> bool:
        try:
            return self._found.search(text) is not None
        except UnicodeEncodeError:  # half of a character
            return self._found.search(text.encode("utf-8", "replace").decode()) is not None


@lru_cache(maxsize=64)
def compiled(text: str, *, ignores_case: bool = False) -> Pattern:
    """UserError for what RE2 has not, or what is too large."""
    if len(text) > MAX_PATTERN:
        raise UserError(f"a regular expression has {MAX_PATTERN:,} characters at most")
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY_BYTES
    whole = f"(?i){text}" if ignores_case else text
    try:
        return Pattern(whole, re2.compile(whole, options=options))
    except re2.error as error:
        raise UserError(_complaint(text, str(error.args[0] if error.args else error))) from None
    except UnicodeEncodeError:
        raise UserError("the regular expression has half of a character in it") from None


def quoted(text: str) -> str:
    """The text itself as a pattern."""
    return "".join(
        each if each.isalnum() or each == "_" or ord(each) > 127 else _escaped(each) for each in text
    )


def _escaped(character: str) -> str:
    return "\\x00" if character == "\0" else "\\" + character


def _complaint(text: str, said: str) -> str:
    said = said.removeprefix("b'").removesuffix("'")
    for part, name in _LACKING.items():
        if part in text:
            return (
                f"the regular expression has {part}…), {name}, which can take forever. Write it without: "
                "the syntax of RE2 is what works here"
            )
    if any(f"\\{digit}" in text for digit in "123456789"):
        return (
            "the regular expression refers back to a group (\\1), which can take forever. Write it without: "
            "the syntax of RE2 is what works here"
        )
    if "too large" in said or "repetition" in said:
        return f"the regular expression is too large: {said}. Use smaller counts in {{}}"
    return f"the regular expression cannot be read: {said}"
