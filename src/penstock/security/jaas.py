"""Java's login lines, as `sasl.jaas.config` and JAAS files hold them.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin" password="s3cret" user_admin="s3cret" user_alice="alice-secret";

Values may be quoted, with backslashes before quotes and backslashes, or not. Every mistake names its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r'\s+|//[^\n]*|/\*.*?\*/|#[^\n]*|("(?:[^"\\]|\\.)*")|([{};=])|([^\s{};="]+)|(.)', re.DOTALL
)


class BadJaas(ValueError):
    """The text cannot be read. The message names the line, and never shows a value."""


@dataclass(frozen=True)
class LoginModule:
    name: str
    options: Mapping[str, str] = field(repr=False)

    def users(self) -> dict[str, str]:
        """The passwords of PLAIN's users, which are options of the form user_NAME."""
        return {key[len("user_") :]: value for key, value in self.options.items() if key.startswith("user_")}

    def text(self) -> str:
        """As `sasl.jaas.config` takes it."""
        options = "".join(f" {_quoted(key)}={_quoted(value)}" for key, value in self.options.items())
        return f"{_quoted(self.name)} required{options};"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, bool, int]] = []  # what it says, whether it was quoted, its line
        position, line = 0, 1
        while position < len(text):
            found = _TOKEN.match(text, position)
            assert found is not None
            quoted, sign, word, stray = found.groups()
            if quoted is not None:
                self._tokens.append((re.sub(r"\\(.)", r"\1", quoted[1:-1], flags=re.DOTALL), True, line))
            elif sign is not None or word is not None:
                self._tokens.append((sign or word, False, line))
            elif stray is not None:
                raise BadJaas(f"line {line}: a quote is opened and not closed")
            line += found[0].count("\n")
            position = found.end()
        self._last_line = line
        self._next = 0

    def is_at_end(self) -> bool:
        return self._next >= len(self._tokens)

    def peek(self) -> str:
        return "" if self.is_at_end() else self._tokens[self._next][0]

    def take(self, what: str) -> str:
        if self.is_at_end():
            raise BadJaas(f"line {self._last_line}: {what} is missing")
        self._next += 1
        return self._tokens[self._next - 1][0]

    def take_sign(self, sign: str) -> None:
        line = self._last_line if self.is_at_end() else self._tokens[self._next][2]
        if self.is_at_end() or self._tokens[self._next][:2] != (sign, False):
            raise BadJaas(f"line {line}: '{sign}' is missing")
        self._next += 1

    def take_module(self) -> LoginModule:
        line = self._last_line if self.is_at_end() else self._tokens[self._next][2]
        name = self.take(
            "the login module's class"
        )  # which is never shown: a password may stand in its place
        flag = self.take("the flag behind the class, such as required,")
        if flag.lower() not in FLAGS:
            flags = f"{', '.join(FLAGS[:-1])} or {FLAGS[-1]}"
            raise BadJaas(f"line {line}: behind the login module's class must stand {flags}")
        options: dict[str, str] = {}
        while self.peek() != ";":
            key = self.take("';'")
            self.take_sign("=")
            options[key] = self.take("the value of an option")
        self.take_sign(";")
        return LoginModule(name, options)


def parse_login(text: str) -> LoginModule:
    """The value of `sasl.jaas.config`: one module."""
    reader = _Reader(text)
    module = reader.take_module()
    if not reader.is_at_end():
        raise BadJaas("there is more than one login module; sasl.jaas.config takes one")
    return module


def parse_file(text: str) -> dict[str, list[LoginModule]]:
    """A JAAS file: `KafkaServer { … };`, by the names of its sections."""
    reader = _Reader(text)
    sections: dict[str, list[LoginModule]] = {}
    while not reader.is_at_end():
        name = reader.take("a section's name")
        reader.take_sign("{")
        modules = []
        while reader.peek() != "}":
            modules.append(reader.take_module())
        reader.take_sign("}")
        reader.take_sign(";")
        sections[name] = modules
    return sections
