"""A text becomes tokens. Comments and blanks go; each token knows where it stands."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from penstock.streams.plan.expressions import Place


class TokenKind(StrEnum):
    WORD = "word"  # a keyword or an unquoted name
    QUOTED = "quoted"  # "name" or `name`
    STRING = "string"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    DIGIT_WORD = "digit word"  # a name that begins with a digit
    VARIABLE = "variable"  # ${name}
    PROGRAM = "program"  # $$ … $$
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    kind: TokenKind
    text: str
    start: int
    end: int
    place: Place

    @property
    def word(self) -> str:
        """In upper case, where it may be a keyword; else nothing."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""


_TOKEN: Final = re.compile(
    r"""
      (?P<skip>\s+ | --[^\r\n]* | /\*.*?\*/)
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>`(?:[^`]|``)*` | "(?:[^"]|"")*")
    | (?P<float>(?:\d+(?:\.\d*)?|\.\d+)[eE][+-]?\d+(?![A-Za-z0-9_@]))
    | (?P<decimal>\d+\.\d*|\.\d+)
    | (?P<digits>\d[A-Za-z0-9_@]+)
    | (?P<integer>\d)
    | (?P<word>[A-Za-z_][A-Za-z0-9_@]*)
    | (?P<variable>\$\{[A-Za-z_][A-Za-z0-9_@]*\})
    | (?P<program>\$\$.*?\$\$)
    | (?P<symbol>=>|->|:=|<>|!=|<=|>=|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    line, line_start = 1, 0
    for match in _TOKEN.finditer(text):
        start, end, piece = match.start(), match.end(), match.group()
        name = match.lastgroup or "symbol"
        if name != "skip":
            if name == "digits":
                kind = TokenKind.INTEGER if piece.isdigit() else TokenKind.DIGIT_WORD
            else:
                kind = TokenKind[name.upper()]
            found.append(Token(kind, piece, start, end, Place(line, start - line_start + 1)))
        breaks = piece.count("\n")
        if breaks:
            line, line_start = line + breaks, start + piece.rindex("\n") + 1
    found.append(Token(TokenKind.END, "<EOF>", len(text), len(text), Place(line, len(text) - line_start + 1)))
    return found


_RESERVED: Final = """
    SELECT FROM AS ALL DISTINCT WHERE WITHIN WINDOW GROUP BY HAVING LIMIT AT OR AND IN NOT EXISTS BETWEEN LIKE IS NULL
    TRUE FALSE MILLISECOND YEARS MONTHS DAYS HOURS MINUTES SECONDS MILLISECONDS TUMBLING HOPPING SIZE ADVANCE RETENTION
    CASE WHEN THEN ELSE END JOIN FULL OUTER INNER LEFT RIGHT ON WITH VALUES CREATE TABLE TOPIC STREAM STREAMS INSERT
    DELETE INTO DESCRIBE EXTENDED PRINT CAST LIST TOPICS QUERY QUERIES TERMINATE PAUSE RESUME LOAD DROP TO RENAME SAMPLE
    EXPORT CATALOG PROPERTIES BEGINNING UNSET RUN SCRIPT DECIMAL CONNECTOR CONNECTORS NAMESPACE MATERIALIZED VIEW
"""
RESERVED: Final = frozenset(_RESERVED.split())
"""Keywords that can be names only in quotes."""


def unquoted(text: str) -> str:
    """`'it''s'` without its quotes."""
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)
