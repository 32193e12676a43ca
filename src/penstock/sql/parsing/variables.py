"""`${name}` in a statement stands for a session's variable: as a name, as a literal, and inside quoted texts.

A value is put in as it is where a name or literal stands, after a look at whether it is one; so a variable cannot bring in a
second statement. Inside quotes, quotes of the value are doubled. A name that is not defined stays as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from penstock.sql.parsing.parser import parse
from penstock.sql.parsing.reading import SyntaxRefused
from penstock.sql.parsing.statements import Define, Statement, Undefine
from penstock.sql.parsing.tokens import Token, TokenKind, tokens
from penstock.streams.plan.expressions import Place

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_@]*)\}")
_NAME: Final = re.compile(r"(`[^`]+`|\"[^\"]+\"|[A-Za-z0-9_][A-Za-z0-9_@]*)\Z")
_TEXT: Final = re.compile(r"'(?:[^']|'')*'\Z")


def parse_with(text: str, variables: Mapping[str, str], *, scripts: bool = False) -> list[Statement]:
    """The statements of a text, where DEFINE and UNDEFINE count for those behind them."""
    if "${" not in text:
        return parse(text, scripts=scripts)
    known = dict(variables)
    found: list[Statement] = []
    for part, place in _parts(text):
        before = "\n" * (place.line - 1) + " " * (place.column - 1)  # places are those of the whole text
        for statement in parse(before + substitute(part, known), scripts=scripts):
            if isinstance(statement, Define):
                known[statement.name] = statement.value
            elif isinstance(statement, Undefine):
                known = {
                    name: value for name, value in known.items() if name.upper() != statement.name.upper()
                }
            found.append(statement)
    return found


def _parts(text: str) -> Iterator[tuple[str, Place]]:
    """Statements before they are read, each with its `;`."""
    first: Token | None = None
    for token in tokens(text):
        first = first or token
        if token.kind is TokenKind.END and first is token:
            return
        if token.kind is TokenKind.END or (token.kind is TokenKind.SYMBOL and token.text == ";"):
            yield text[first.start : token.end], first.place
            first = None


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """The text with values in the places of variables; SyntaxRefused where a value does not fit its place. Names of variables are
    the same in upper and lower case."""
    if "${" not in text or not variables:
        return text
    variables = {name.upper(): value for name, value in variables.items()}
    pieces: list[str] = []
    at = 0
    for token in tokens(text):
        replaced = _replaced(token, variables)
        if replaced != token.text and token.kind is not TokenKind.END:
            pieces += [text[at : token.start], replaced]
            at = token.end
    return "".join([*pieces, text[at:]])


def _replaced(token: Token, variables: Mapping[str, str]) -> str:
    if token.kind is TokenKind.STRING:
        return "'" + _REFERENCE.sub(lambda found: _quoted(found, variables), token.text[1:-1]) + "'"
    if token.kind is not TokenKind.VARIABLE:
        return token.text
    value = variables.get(token.text[2:-1].upper())
    if value is None:
        return token.text
    value = value.strip()
    if not _NAME.match(value) and not _TEXT.match(value) and not _is_number(value):
        place = f"Line: {token.place.line}, Col: {token.place.column}"
        raise SyntaxRefused(f"Illegal argument at {place}. Got: '{value}'", token.place)
    return value


def _quoted(found: re.Match[str], variables: Mapping[str, str]) -> str:
    value = variables.get(found.group(1).upper())
    return found.group() if value is None else value.replace("'", "''")


def _is_number(value: str) -> bool:
    try:
        return Decimal(value).is_finite()
    except InvalidOperation:
        return False
