"""Characters and their classes in Java's regular expressions, in the spelling of the engine that is to run them."""

from __future__ import annotations

import re
from typing import Final

from penstock.streams.functions.refusals import FunctionFailed

_POSIX: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7F",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1F\x7F",
    "XDigit": "0-9a-fA-F",
    "Space": r"\t-\r ",
}
_CLASSES: Final = {
    "d": "0-9",
    "w": "a-zA-Z_0-9",
    "s": r"\t-\r ",
    "h": r"\t \u00A0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n-\r\u0085\u2028\u2029",
}
_INVERTED: Final = {
    "D": r"\x00-/:-\U0010FFFF",
    "W": r"\x00-/:-@\[-\^`{-\U0010FFFF",
    "S": r"\x00-\x08\x0E-\x1F!-\U0010FFFF",
}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}


class OnlyBacktracking(Exception):
    """Syntax that only Python's engine has."""


class ClassReader:
    """Reads a pattern from `at` on. `for_backtracking`: for Python's engine, not for RE2."""

    def __init__(self, pattern: str, *, for_backtracking: bool) -> None:
        self.pattern = pattern
        self.at = 0
        self.for_backtracking = for_backtracking

    def bad(self, problem: str) -> FunctionFailed:
        return FunctionFailed(f"Invalid regular expression pattern: {self.pattern[:200]} ({problem})")

    def needs(self, what: str) -> None:
        if not self.for_backtracking:
            raise OnlyBacktracking(what)

    def peek(self, ahead: int = 0) -> str:
        return self.pattern[self.at + ahead : self.at + ahead + 1]

    def code(self, character: str) -> str:
        """One character, in a spelling that both engines take."""
        if character.isascii() and character.isalnum():
            return character
        number = ord(character)
        if self.for_backtracking:
            return f"\\U{number:08X}"
        return f"\\x{{{number:X}}}"

    def ranges(self, text: str) -> str:
        """The inside of a class, as it stands in the tables above, for the engine."""
        if self.for_backtracking:
            return text
        return re.sub(
            r"\\[uU](0010FFFF|[0-9A-Fa-f]{4})",
            lambda found: f"\\x{{{found.group(1).lstrip('0') or '0'}}}",
            text,
        )

    def class_escape(self) -> tuple[str, str]:
        """After a backslash: the inside of a class, or a single character."""
        letter = self.peek()
        self.at += 1
        if letter in _CLASSES:
            return self.ranges(_CLASSES[letter]), ""
        if letter in _INVERTED:
            return self.ranges(_INVERTED[letter]), ""
        if letter in ("H", "V"):
            return f"^{self.ranges(_CLASSES[letter.lower()])}", ""
        if letter in _CONTROLS:
            return "", self.code(_CONTROLS[letter])
        if letter in "pP":
            return self._property(letter == "P"), ""
        if letter == "x":
            found = re.compile(r"\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2})").match(self.pattern, self.at)
        elif letter == "u":
            found = re.compile(r"([0-9A-Fa-f]{4})").match(self.pattern, self.at)
        elif letter == "0":
            found = re.compile(r"([0-3]?[0-7]{1,2})").match(self.pattern, self.at)
            if found is not None:
                self.at = found.end()
                return "", self.code(chr(int(found.group(1), 8)))
        elif letter == "c" and self.peek():
            self.at += 1
            return "", self.code(chr(ord(self.pattern[self.at - 1]) ^ 64))
        elif letter.isalpha() and letter.isascii():
            raise self.bad("Illegal/unsupported escape sequence")
        else:
            return "", self.code(letter)
        if found is None or int(found.group(found.lastindex or 0), 16) > 0x10FFFF:
            raise self.bad("Illegal hexadecimal escape sequence")
        self.at = found.end()
        return "", self.code(chr(int(found.group(found.lastindex or 0), 16)))

    def _property(self, is_inverted: bool) -> str:
        found = re.compile(r"\{(\w+)\}|(\w)").match(self.pattern, self.at)
        if found is None:
            raise self.bad("Unknown character property")
        self.at = found.end()
        name = found.group(1) or found.group(2)
        ranges = _POSIX.get(name.removeprefix("Is") if name not in _POSIX else name)
        if ranges is not None:
            return ("^" if is_inverted else "") + self.ranges(ranges)
        if self.for_backtracking:
            raise self.bad(f"\\p{{{name}}} is not taken together with syntax that only Java has")
        name = name[2:] if name.startswith("Is") and name != "Is" else name
        return f"\\{'P' if is_inverted else 'p'}{{{name}}}"

    def character_class(self) -> str:
        """[…]; with && it is what all of its parts have."""
        self.at += 1
        inverted = self.peek() == "^"
        self.at += inverted
        parts: list[str] = [""]
        others: list[str] = []  # classes in this class that cannot be written into it
        is_first = True
        while True:
            character = self.peek()
            if not character:
                raise self.bad("Unclosed character class")
            if character == "]" and not is_first:
                self.at += 1
                break
            is_first = False
            if self.pattern.startswith("&&", self.at):
                self.at += 2
                parts.append("")
            elif character == "[":
                inner = self.character_class()
                if inner.startswith("[^") or not inner.startswith("["):
                    others.append(inner)
                    parts[-1] += "\0" + str(len(others) - 1) + "\0"
                else:
                    parts[-1] += inner[1:-1]
            elif character == "\\":
                parts[-1] += self._class_item(others)
            else:
                self.at += 1
                parts[-1] += self._class_character(character)
        return self._class_text(inverted, parts, others)

    def _class_item(self, others: list[str]) -> str:
        self.at += 1
        if self.peek() == "Q":
            end = self.pattern.find("\\E", self.at)
            quoted = self.pattern[self.at + 1 : end if end >= 0 else None]
            self.at = end + 2 if end >= 0 else len(self.pattern)
            return "".join(self.code(each) for each in quoted)
        inside, single = self.class_escape()
        if inside.startswith("^"):
            others.append(f"[{inside}]")
            return "\0" + str(len(others) - 1) + "\0"
        return self._range(single) if single else inside

    def _class_character(self, character: str) -> str:
        return self._range(self.code(character))

    def _range(self, first: str) -> str:
        """A character, or the range that begins with it."""
        if self.peek() != "-" or self.peek(1) in ("]", "[", "") or self.pattern.startswith("-&&", self.at):
            return first
        self.at += 1
        last = self.peek()
        self.at += 1
        if last == "\\":
            inside, single = self.class_escape()
            if inside:
                return first + self.code("-") + inside
            return f"{first}-{single}"
        return f"{first}-{self.code(last)}"

    def _class_text(self, inverted: bool, parts: list[str], others: list[str]) -> str:
        if len(parts) == 1 and "\0" not in parts[0]:
            if not parts[0]:
                raise self.bad("Unclosed character class")
            return f"[{'^' if inverted else ''}{parts[0]}]"
        texts: list[str] = []
        for part in parts:
            pieces = re.split("\0(\\d+)\0", part)
            plain = "".join(pieces[::2])
            choices = [f"[{plain}]"] if plain else []
            choices += [others[int(number)] for number in pieces[1::2]]
            if choices:
                texts.append(choices[0] if len(choices) == 1 else f"(?:{'|'.join(choices)})")
        if len(texts) == 1 and not inverted:
            return texts[0]
        self.needs("intersections")
        ahead = "".join(f"(?={text})" for text in texts)
        return f"(?:(?!{ahead})[\\x00-\\U0010FFFF])" if inverted else f"(?:{ahead}[\\x00-\\U0010FFFF])"
