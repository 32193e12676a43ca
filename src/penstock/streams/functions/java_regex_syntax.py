"""Java's regular expressions, written as RE2 or as Python's engine takes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from penstock.streams.functions.java_regex_classes import ClassReader

_QUANTIFIER: Final = re.compile(r"\{(\d{1,9})(?:(,)(\d{1,9})?)?\}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")


@dataclass(slots=True)
class Group:
    """What stands inside of a bracket: may it match in several ways?"""

    unbounded: int = 0
    alternatives: bool = False


class Translator(ClassReader):
    """`names` and `count` are of the groups. `degree`: the time of an engine that tries all ways grows with this power of the
    text's length."""

    def __init__(self, pattern: str, *, for_backtracking: bool) -> None:
        super().__init__(pattern, for_backtracking=for_backtracking)
        self.output: list[str] = []
        self.names: dict[str, int] = {}
        self.count = 0
        self.open: list[Group] = [Group()]
        self.last: Group | None = None  # the group that has just been closed
        self.degree = 1

    def translated(self) -> str:
        while self.at < len(self.pattern):
            character = self.pattern[self.at]
            handler = _HANDLERS.get(character)
            if handler is None:
                self.at += 1
                self._put(self.code(character))
            else:
                handler(self)
        if len(self.open) != 1:
            raise self.bad("Unclosed group")
        return "".join(self.output)

    def _put(self, text: str) -> None:
        self.output.append(text)
        self.last = None

    def dot(self) -> None:
        self.at += 1
        self._put(self.ranges(r"[^\n\r\u0085\u2028\u2029]"))

    def dollar(self) -> None:
        """Also before the last end of a line."""
        self.at += 1
        if self.for_backtracking:
            self._put(r"(?=(?:\r\n|[\n\r\u0085\u2028\u2029])?\Z)")
        elif self.at == len(self.pattern) or self.peek() in ")|":
            self._put(r"\z")
        else:
            self.needs("$")

    def caret(self) -> None:
        self.at += 1
        self._put(r"\A")

    def bar(self) -> None:
        self.at += 1
        self.open[-1].alternatives = True
        self._put("|")

    def opened(self) -> None:
        self.at += 1
        self.open.append(Group())
        if self.peek() != "?":
            self.count += 1
            self._put("(")
            return
        self.at += 1
        rest = self.pattern[self.at :]
        if rest.startswith(":"):
            self.at += 1
            self._put("(?:")
        elif rest.startswith(("=", "!", "<=", "<!", ">")):
            self.needs("looking around")
            mark = rest[:2] if rest[0] == "<" else rest[0]
            self.at += len(mark)
            self._put(f"(?{mark}")
        elif rest.startswith("<"):
            name = _NAME.match(rest, 1)
            if name is None or rest[name.end() : name.end() + 1] != ">":
                raise self.bad("Unknown look-behind group")
            self.at += name.end() + 1
            self.count += 1
            self.names[name.group()] = self.count
            self._put(f"(?P<{name.group()}>")
        else:
            self._flags(rest)

    def _flags(self, rest: str) -> None:
        found = re.match(r"([idmsuxU]*)(-[idmsuxU]+)?([:)])", rest)
        if found is None or not found.end() > 1:
            raise self.bad("Unknown inline modifier")
        on, off = found.group(1), found.group(2) or ""
        if set(on) - set("iu") or off:
            raise self.bad(f"The flags {on}{off} are not taken")
        self.at += found.end()
        if found.group(3) == ":":
            self._put("(?i:" if "i" in on else "(?:")
            return
        self.open.pop()
        if "i" in on:
            if self.for_backtracking and self.output:
                raise self.bad("The flag i stands at the beginning")
            self._put("(?i)")

    def closed(self) -> None:
        self.at += 1
        if len(self.open) == 1:
            raise self.bad("Unmatched closing ')'")
        group = self.open.pop()
        self.open[-1].unbounded += group.unbounded
        self.open[-1].alternatives |= group.alternatives
        self.output.append(")")
        self.last = group

    def quantifier(self) -> None:
        character = self.peek()
        if character == "{":
            found = _QUANTIFIER.match(self.pattern, self.at)
            if found is None:
                raise self.bad("Illegal repetition")
            self.at = found.end()
            text, most = found.group(), found.group(3) if found.group(2) else found.group(1)
            is_unbounded = most is None
            if int(most or 0) > 1000 or int(found.group(1)) > 1000:
                raise self.bad("Repetitions are limited to 1000")
        else:
            self.at += 1
            text, is_unbounded = character, character != "?"
        if not self.output:
            raise self.bad(f"Dangling meta character '{character}'")
        self._count(is_unbounded, text)
        self.output.append(text)
        if self.peek() in ("?", "+") and self.peek():
            if self.peek() == "+":
                self.needs("possessive quantifiers")
            self.output.append(self.peek())
            self.at += 1
        self.last = None

    def _count(self, is_unbounded: bool, text: str) -> None:
        """How the time of a backtracking engine grows with the length of the text."""
        inner = self.last
        if (
            inner is not None
            and text != "?"
            and (inner.unbounded or inner.alternatives)
            and self.for_backtracking
        ):
            raise self.bad(
                "repeating what can itself match in several ways is not taken together with syntax that only Java has"
            )
        if is_unbounded:
            self.open[-1].unbounded += 1
            self.degree += 1

    def escape(self) -> None:
        self.at += 1
        letter = self.peek()
        if not letter:
            raise self.bad("Unexpected internal error")
        if letter == "Q":
            end = self.pattern.find("\\E", self.at)
            quoted = self.pattern[self.at + 1 : end if end >= 0 else None]
            self.at = end + 2 if end >= 0 else len(self.pattern)
            for each in quoted:
                self._put(self.code(each))
            return
        if letter in _ANCHORS:
            self.at += 1
            self._put(r"\Z" if letter == "z" and self.for_backtracking else _ANCHORS[letter])
            return
        if letter == "Z":
            self.at += 1
            self.needs("\\Z")
            self._put(r"(?=(?:\r\n|[\n\r\u0085\u2028\u2029])?\Z)")
            return
        if letter == "R":
            self.at += 1
            self._put(self.ranges(r"(?:\r\n|[\n-\r\u0085\u2028\u2029])"))
            return
        if letter in "123456789" or letter == "k":
            self._back_reference()
            return
        inside, single = self.class_escape()
        self._put(single if single else f"[{inside}]")

    def _back_reference(self) -> None:
        self.needs("references back")
        if self.peek() == "k":
            found = re.compile(r"k<([A-Za-z][A-Za-z0-9]*)>").match(self.pattern, self.at)
            if found is None or found.group(1) not in self.names:
                raise self.bad("unknown group")
            self.at = found.end()
            self._put(f"(?P={found.group(1)})")
            return
        number = int(self.peek())
        self.at += 1
        while self.peek().isdigit() and number * 10 + int(self.peek()) <= self.count:
            number = number * 10 + int(self.peek())
            self.at += 1
        if number > self.count:
            self._put(r"(?!)")
            return
        self._put(f"(?:\\{number})")

    def square(self) -> None:
        self._put(self.character_class())


_ANCHORS: Final = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\z"}
_HANDLERS: Final = {
    ".": Translator.dot,
    "$": Translator.dollar,
    "^": Translator.caret,
    "|": Translator.bar,
    "(": Translator.opened,
    ")": Translator.closed,
    "*": Translator.quantifier,
    "+": Translator.quantifier,
    "?": Translator.quantifier,
    "{": Translator.quantifier,
    "\\": Translator.escape,
    "[": Translator.square,
}
