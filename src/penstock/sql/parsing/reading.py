"""Tokens are read one after the other; what does not fit is refused with its place, in ksqlDB's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from penstock.sql.parsing.tokens import RESERVED, Token, TokenKind, tokens, unquoted
from penstock.streams.plan.expressions import Place

T = TypeVar("T")

_NAMES: Final = (TokenKind.WORD, TokenKind.QUOTED, TokenKind.DIGIT_WORD)


class SyntaxRefused(Exception):
    """The text is no statement. `place` is where reading stopped; `message` begins with it."""

    def __init__(self, message: str, place: Place, prefix: str = "") -> None:
        self.message = f"{prefix}line {place.line}:{place.column}: {message}"
        super().__init__(self.message)
        self.place = place


class Reader:
    """Stands at one token of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = 0
        self.lambda_names: tuple[str, ...] = ()

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def ahead(self, count: int = 1) -> Token:
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        if token.kind is not TokenKind.END:
            self.at += 1
        return token

    # what comes next, without taking it unless it fits

    def is_next(self, *words: str) -> bool:
        """All of these keywords or symbols, in this order."""
        return all(_is(self.ahead(step), word) for step, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        if not self.is_next(*words):
            return False
        self.at += len(words)
        return True

    def accept_any(self, *words: str) -> str | None:
        for word in words:
            if self.accept(word):
                return word
        return None

    # what must come next

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                self.refuse_missing(word)

    def is_name(self, steps: int = 0) -> bool:
        token = self.ahead(steps)
        return token.kind in _NAMES and token.word not in RESERVED

    def name(self) -> str:
        """As the engine takes it: in upper case, unless quoted."""
        return self.name_as_written(upper=True)

    def name_as_written(self, *, upper: bool = False) -> str:
        if not self.is_name():
            token = self.token
            if token.word in RESERVED:
                self.refuse_reserved(token)
            self.refuse_here()
        token = self.take()
        if token.kind is TokenKind.QUOTED:
            return unquoted(token.text)
        return token.text.upper() if upper else token.text

    def string(self) -> str:
        if self.token.kind is not TokenKind.STRING:
            self.refuse("Syntax Error\nExpecting STRING")
        return unquoted(self.take().text)

    def integer(self) -> int:
        negative = self.accept("-")
        if self.token.kind is not TokenKind.INTEGER:
            self.refuse("Syntax Error\nExpecting INTEGER_VALUE")
        value = int(self.take().text)
        return -value if negative else value

    def listed(self, one: Callable[[], T]) -> tuple[T, ...]:
        found = [one()]
        while self.accept(","):
            found.append(one())
        return tuple(found)

    # refusals

    def refuse(self, message: str, place: Place | None = None) -> NoReturn:
        raise SyntaxRefused(message, place or self.token.place)

    def refuse_here(self) -> NoReturn:
        place = self.token.place
        self.refuse(
            f"Syntax Error\nSyntax error at or near '{self.token.text}' at line {place.line}:{place.column}"
        )

    def refuse_reserved(self, token: Token) -> NoReturn:
        self.refuse(
            f'Syntax Error\n"{token.text}" is a reserved keyword and it can\'t be used as an identifier.'
            f" You can use it as an identifier by escaping it as '{token.text}' "
        )

    def refuse_missing(self, word: str) -> NoReturn:
        """As one token that is missing, one too many, or the wrong one."""
        following = self.ahead()
        if _is(following, word) and self.token.word in RESERVED:
            self.refuse_reserved(self.token)
        if word in (")", "]", ">", ";"):
            self.refuse(f"Syntax Error\nmissing '{word}' at '{self.token.text}'")
        self.refuse(f"Syntax Error\nExpecting '{word}'")


def _is(token: Token, word: str) -> bool:
    if token.kind is TokenKind.WORD:
        return token.word == word
    return token.kind is TokenKind.SYMBOL and token.text == word
