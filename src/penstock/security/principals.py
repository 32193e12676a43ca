"""Principals, and the rules that shorten the names in certificates.

A rule of `ssl.principal.mapping.rules` is `RULE:pattern/replacement/[LU]` or `DEFAULT`. The first rule whose pattern matches the
whole distinguished name decides:

    RULE:^CN=([^,]+),.*$/$1/L,DEFAULT     CN=Alice,O=Acme  →  alice
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

USER: Final = "User"


class Principal(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")


class BadRule(ValueError):
    """A mapping rule that cannot be read, or that names nobody; the text names it."""


class NameRule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None: the name stays as it is."""
    replacement: str
    letter_case: str
    """L, U, or nothing."""


class NameRules:
    """`ssl.principal.mapping.rules`. Kafka's default is the one rule DEFAULT."""

    def __init__(self, rules: Sequence[NameRule]) -> None:
        self._rules = rules

    def apply(self, distinguished_name: str) -> str:
        """The name itself where no rule matches; BadRule then, as in Kafka: a client nobody knows is not let in."""
        for rule in self._rules:
            if rule.pattern is None:
                return distinguished_name
            if rule.pattern.fullmatch(distinguished_name):
                return _cased(
                    rule.pattern.sub(rule.replacement, distinguished_name, count=1), rule.letter_case
                )
        raise BadRule(f"no rule of ssl.principal.mapping.rules applies to {distinguished_name}")


_NAME_RULE = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")


def parse_name_rules(text: str) -> NameRules:
    """Rules are separated by commas, but a pattern may hold commas too: a rule ends behind its last slash."""
    rules: list[NameRule] = []
    rest = text.strip()
    while rest:
        if re.match(r"DEFAULT\s*(?:,|$)", rest):
            rules.append(NameRule(None, "", ""))
            end = len("DEFAULT")
        else:
            found = _NAME_RULE.match(rest)
            if found is None:
                raise BadRule(f"ssl.principal.mapping.rules: cannot read '{rest}'")
            pattern, replacement, letter_case = (part.strip() for part in found.groups())
            rules.append(NameRule(_compiled(pattern, rest), _python_groups(replacement), letter_case))
            end = found.end()
        rest = rest[end:].lstrip()
        if rest and not rest.startswith(","):
            raise BadRule(f"ssl.principal.mapping.rules: expected a comma before '{rest}'")
        rest = rest[1:].lstrip()
    return NameRules(rules or [NameRule(None, "", "")])


def _compiled(pattern: str, rule: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern.replace("\\/", "/"))
    except re.error as error:
        raise BadRule(f"'{pattern}' in the rule '{rule}' is no regular expression: {error}") from None


def _python_groups(replacement: str) -> str:
    """Java writes $1 where Python writes \\g<1>."""
    escaped = replacement.replace("\\/", "/").replace("\\", "\\\\")
    return re.sub(r"\$(\d+)", r"\\g<\1>", escaped)


def _cased(name: str, letter_case: str) -> str:
    return {"L": name.lower(), "U": name.upper()}.get(letter_case, name)
