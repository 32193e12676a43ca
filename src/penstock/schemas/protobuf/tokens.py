"""A .proto text in words. Comments are left out.

A token is a piece of the text: a name with its dots, a number, a string in its quotes, or one sign. All of them are found with
one regular expression that never goes back, so the time is linear in the text.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from penstock.schemas.model import InvalidSchema

_COMMENT: Final = r"//[^\n]*+|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/"
_TOKEN: Final = r"""
      \.?[A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+   # a name
    | 0[xX][0-9a-fA-F]++
    | (?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+[fF]?+
    | "[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"
    | '[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'
    | /\*[\s\S]*+            # a comment without an end takes the rest,
    | ["'][^\n]*+            # a string without an end takes the line
    | .
    | \Z
"""
_SCAN: Final = re.compile(rf"(?:\s++|\#\#)*+({_TOKEN})".replace(r"\#\#", _COMMENT), re.VERBOSE)
_ESCAPE: Final = re.compile(
    r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_LETTERS: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_SPELLED: Final = {code: f"\\{letter}" for letter, code in _LETTERS.items()} | {
    code: f"\\{chr(code)}" for code in b"\\'\""
}
_OCTAL: Final = {code: f"\\{code:03o}" for code in [*range(32), 127]} | {
    0xDC00 + byte: f"\\{byte:03o}" for byte in range(128, 256)
}
_WRITTEN: Final = _OCTAL | _SPELLED
MAX_NUMBER: Final = 536_870_911
"""Of a field."""
MAX_ENUM_NUMBER: Final = (1 << 31) - 1


class Tokens:
    """Read one after another. After the last one there are empty ones."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = _SCAN.findall(text)
        self._tokens.append("")
        self._at = 0

    @property
    def next(self) -> str:
        """The token that comes; it stays."""
        return self._tokens[self._at]

    def take(self) -> str:
        token = self._tokens[self._at]
        if not token:
            self.refuse("the text ends too early")
        self._at += 1
        return token

    def taken(self, token: str) -> bool:
        """Whether this one comes; then it is gone."""
        if self._tokens[self._at] == token:
            self._at += 1
            return True
        return False

    def require(self, token: str) -> None:
        if self._tokens[self._at] != token:
            self.refuse(f"expected '{token}'")
        self._at += 1

    def name(self) -> str:
        """Without dots: of a message, a field, a value."""
        token = self._tokens[self._at]
        if not token.isidentifier():
            self.refuse("expected a name")
        self._at += 1
        return token

    def path(self) -> str:
        """A name that may have dots, of a type or a package."""
        token = self._tokens[self._at]
        if not is_path(token):
            self.refuse("expected a name")
        self._at += 1
        while self.next == "." or (self.next[:1] == "." and is_path(self.next)):  # `foo . bar`
            dotted = self.take()
            token += dotted if dotted != "." else "." + self.name()
        return token

    def integer(self) -> int:
        negative = self.taken("-")
        token = self.next
        try:
            value = int(token, 16) if token[:2] in ("0x", "0X") else int(token, 8 if _is_octal(token) else 10)
        except ValueError:
            self.refuse("expected a number")
        self._at += 1
        return -value if negative else value

    def string(self) -> str:
        """With those that follow it: they are one. Bytes that are no UTF-8 are in it as `surrogateescape` has them."""
        if self.next[:1] not in ("'", '"'):
            self.refuse("expected a string in quotes")
        parts = []
        while self.next[:1] in ("'", '"') and self.next:
            token = self.next
            if len(token) < 2 or token[-1] != token[0]:
                self.refuse("a string without an end")
            parts.append(token[1:-1])
            self._at += 1
        if not any("\\" in part for part in parts):
            return "".join(parts)
        return b"".join(map(unescaped, parts)).decode("utf-8", "surrogateescape")

    def text(self) -> str:
        """A string that is one of characters."""
        string = self.string()
        if not is_text(string):
            self.refuse("the string before this is no UTF-8")
        return string

    def refuse(self, reason: str) -> NoReturn:
        found = self.next
        seen = f", found {shortened(found)}" if found else ""
        raise InvalidSchema(f"line {self._line()}: {reason}{seen if reason.startswith('expected') else ''}")

    def _line(self) -> int:
        """Counted only when somebody wants to know."""
        for count, found in enumerate(_SCAN.finditer(self._text)):
            if count == self._at:
                return self._text.count("\n", 0, found.start(1)) + 1
        return self._text.count("\n") + 1


def quoted(text: str) -> str:
    """As a string of a .proto file."""
    return f'"{text.translate(_WRITTEN)}"'


def shortened(text: str) -> str:
    """For one line of an error."""
    shown = "".join(each if each.isprintable() else "?" for each in text[:60])
    return f"'{shown}…'" if len(text) > 60 else f"'{shown}'"


def is_text(string: str) -> bool:
    """Whether a string has characters only, and no bytes that are none."""
    try:
        string.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_path(token: str) -> bool:
    first = token[1:2] if token[:1] == "." else token[:1]
    return first.isalpha() or first == "_"


def _is_octal(token: str) -> bool:
    return len(token) > 1 and token[0] == "0" and token.isdigit()


def unescaped(text: str) -> bytes:
    pieces = []
    at = 0
    for found in _ESCAPE.finditer(text):
        pieces.append(text[at : found.start()].encode("utf-8", "surrogatepass"))
        at = found.end()
        octal, hexadecimal, short, long, letter = found.groups()
        if octal:
            pieces.append(bytes([int(octal, 8) & 0xFF]))
        elif hexadecimal:
            pieces.append(bytes([int(hexadecimal, 16)]))
        elif short or long:
            pieces.append(_encoded(int(short or long, 16)))
        else:
            code = _LETTERS.get(letter)
            pieces.append(letter.encode("utf-8", "surrogatepass") if code is None else bytes([code]))
    pieces.append(text[at:].encode("utf-8", "surrogatepass"))
    return b"".join(pieces)


def _encoded(code_point: int) -> bytes:
    if code_point > 0x10FFFF or 0xD800 <= code_point <= 0xDFFF:
        raise InvalidSchema(f"\\U{code_point:08x} is no character")
    return chr(code_point).encode()
