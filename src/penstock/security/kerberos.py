"""Kerberos names, and the rules of `sasl.kerberos.principal.to.local.rules` that shorten them.

    RULE:[n:format](pattern)s/from/to/g/L

A rule is for names with `n` parts before the @. `$0` in the format is the realm, `$1` and `$2` are the parts. The text must match
the pattern, where there is one; then what matches `from` is replaced, once or (g) each time; L and U change the case.
DEFAULT is for names of our own realm: their first part. The first rule that fits decides.

    RULE:[2:$1](kafka)s/.*/broker/,DEFAULT      kafka/host@ACME  →  broker        ana@ACME  →  ana
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

GSSAPI: Final = "GSSAPI"
RULES: Final = "sasl.kerberos.principal.to.local.rules"
SERVICE: Final = "sasl.kerberos.service.name"
_NAME: Final = re.compile(r"([^/@]+)(?:/([^/@]+))?(?:@([^/@]+))?")
_RULE: Final = re.compile(
    r"(DEFAULT)|RULE:\[(\d+):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g?))?/?([LU]?)"
)


class BadRule(ValueError):
    """A rule that cannot be read, or a name that no rule fits; the text names it."""


class Rule(NamedTuple):
    parts: int
    """0: this is DEFAULT."""
    format: str = ""
    pattern: re.Pattern[str] | None = None
    wanted: re.Pattern[str] | None = None
    replacement: str = ""
    is_global: bool = False
    letter_case: str = ""

    def apply(self, realm: str, parts: Sequence[str], own_realm: str) -> str | None:
        """None: the rule is not for this name."""
        if not self.parts:
            return parts[0] if realm == own_realm else None
        if len(parts) != self.parts:
            return None
        values = (realm, *parts)
        text = re.sub(
            r"\$(\d)", lambda found: values[int(found[1])] if int(found[1]) < len(values) else "", self.format
        )
        if self.pattern is not None and not self.pattern.fullmatch(text):
            return None
        if self.wanted is not None:
            text = self.wanted.sub(self.replacement, text, count=0 if self.is_global else 1)
        return {"L": text.lower(), "U": text.upper()}.get(self.letter_case, text)


class LocalNames:
    def __init__(self, rules: Sequence[Rule], own_realm: str) -> None:
        self._rules = rules
        self._own_realm = own_realm

    def of(self, name: str) -> str:
        """BadRule where no rule fits: a client nobody knows is not let in."""
        found = _NAME.fullmatch(name)
        if found is None:
            raise BadRule("the client's Kerberos name cannot be read")
        first, host, realm = found.groups()
        if realm is None and host is None:
            return first
        for rule in self._rules:
            short = rule.apply(realm or "", [first, host] if host else [first], self._own_realm)
            if short is None:
                continue
            if not short or "/" in short or "@" in short:
                raise BadRule(f"a rule of {RULES} makes '{short}' of {name}, which is no simple name")
            return short
        raise BadRule(f"no rule of {RULES} applies to {name}")


def parse_rules(text: str) -> list[Rule]:
    """Rules are separated by commas."""
    rules = []
    rest = text.strip() or "DEFAULT"
    while rest:
        found = _RULE.match(rest)
        if found is None:
            raise BadRule(f"{RULES}: cannot read '{rest}'")
        rules.append(_rule(found))
        rest = rest[found.end() :].lstrip()
        if rest and not rest.startswith(","):
            raise BadRule(f"{RULES}: expected a comma before '{rest}'")
        rest = rest[1:].lstrip()
    return rules


def _rule(found: re.Match[str]) -> Rule:
    default, parts, form, pattern, wanted, replacement, repeat, letter_case = found.groups()
    if default:
        return Rule(0)
    if int(parts) not in (1, 2):
        raise BadRule(f"{RULES}: '{found[0]}' is for names of {parts} parts; names have 1 or 2")
    try:
        return Rule(
            int(parts),
            form,
            None if pattern is None else re.compile(pattern),
            None if wanted is None else re.compile(wanted),
            re.sub(r"\$(\d)", r"\\g<\1>", (replacement or "").replace("\\", "\\\\")),
            repeat == "g",
            letter_case,
        )
    except re.error as error:
        raise BadRule(f"{RULES}: '{found[0]}' has no regular expression: {error}") from None


@dataclass(frozen=True)
class TicketSource:
    """From where tickets come, and for which service: a keytab, or the cache that `kinit` fills."""

    service: str = "kafka"
    principal: str = ""
    """Empty: whoever the cache or the keytab is of."""
    keytab: str = ""
    cache: str = ""
    """Empty: the usual one."""

    @classmethod
    def of(cls, options: Mapping[str, str], service: str) -> TicketSource:
        """From the options of a line with Krb5LoginModule. ValueError."""
        keytab = options.get("keyTab", "").removeprefix("FILE:")
        principal = options.get("principal", "")
        if options.get("useKeyTab", "").lower() == "true":
            if not keytab or not principal:
                raise ValueError('must hold keyTab="…" and principal="…" with useKeyTab=true')
        else:
            keytab = ""
        return cls(
            service or options.get("serviceName", "") or "kafka",
            "" if principal == "*" else principal,
            keytab,
            options.get("ticketCache", ""),
        )
