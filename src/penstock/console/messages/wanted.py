"""What a search looks for ◇: all conditions that are given must hold. Checked when it is made, before any broker is asked."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from penstock.client.errors import UserError
from penstock.console.messages import json_path
from penstock.console.messages.patterns import Pattern, compiled, quoted

MAX_TEXT: Final = 500


class Part(enum.Enum):
    ANYWHERE = "anywhere"
    """In the key, the value, or the name or value of a header."""
    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Empty means that everything is wanted. UserError for a pattern or a path that is none."""

    text: str = ""
    is_pattern: bool = False
    """`text` is a regular expression of RE2."""
    ignores_case: bool = False
    part: Part = Part.ANYWHERE
    key: str = ""
    """The whole key: its text, or a number of four or eight bytes; `*` stands for anything."""
    header: str = ""
    """`name`, or `name=value` for the whole value."""
    path: str = ""
    """A condition on values that are JSON, or that the registry can read: see `json_path`."""
    only_nulls: bool = False
    """Records without a value: tombstones."""

    def __post_init__(self) -> None:
        for name, text in (("text", self.text), ("key", self.key), ("header", self.header)):
            if len(text) > MAX_TEXT and not (name == "text" and self.is_pattern):
                raise UserError(f"what is looked for has {MAX_TEXT} characters at most")
        _ = self.pattern, self.expression, self.key_pattern

    @property
    def is_everything(self) -> bool:
        return not (self.text or self.key or self.header or self.path or self.only_nulls)

    @cached_property
    def pattern(self) -> Pattern | None:
        """Of `text`. RE2 finds plain text faster than Arrow's own search for it."""
        if not self.text:
            return None
        text = self.text if self.is_pattern else quoted(self.text)
        return compiled(text, ignores_case=self.ignores_case)

    @cached_property
    def expression(self) -> json_path.Expression | None:
        return json_path.parse(self.path) if self.path.strip() else None

    @cached_property
    def key_pattern(self) -> Pattern | None:
        """Where the key has a `*` in it."""
        if "*" not in self.key:
            return None
        return compiled("(?s)^" + ".*".join(quoted(each) for each in self.key.split("*")) + "$")

    @cached_property
    def keys(self) -> tuple[bytes, ...]:
        """What the whole key may be."""
        found = [self.key.encode("utf-8", "surrogateescape")]
        digits = self.key.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= 19:
            number = int(self.key)
            found += [
                number.to_bytes(size, "big", signed=True)
                for size in (4, 8)
                if -(1 << size * 8 - 1) <= number < 1 << size * 8 - 1
            ]
        return tuple(found)

    @property
    def header_name(self) -> str:
        return self.header.partition("=")[0].strip()

    @property
    def header_value(self) -> bytes | None:
        """None: whatever it is."""
        _, is_given, value = self.header.partition("=")
        return value.strip().encode("utf-8", "surrogateescape") if is_given else None
