"""The file of access rules: a line for each, in the words that Kafka's rules have.

    # who may do what to which subjects
    allow User:orders    Read,Write  prefixed orders-
    allow User:*         Describe    any
    deny  User:mallory   All         literal  orders-value
    allow User:auditor   Read        any                     host=10.0.0.7
    allow User:admin     AlterConfigs,DescribeConfigs  global

What has spaces is put into quotes. `literal NAME` is one subject, `prefixed NAME` all that begin with it, `any` all of them, and
`global` the config and mode of everything.
"""

from __future__ import annotations

import shlex
from typing import Final

from penstock.model.acl import (
    ANY_NAME,
    CLUSTER_NAME,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
)
from penstock.security.acls import AclRules

SUBJECT: Final = ResourceType.TOPIC
"""Subjects stand where the rules of brokers have topics."""
GLOBAL: Final = ResourceType.CLUSTER
MAX_LINE_CHARACTERS: Final = 10_000

_OPERATIONS: Final = {
    operation.name.replace("_", "").lower(): operation
    for operation in (
        Operation.ALL, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    )
}  # fmt: skip


class BadRules(ValueError):
    """With the number of the line."""


def parse_rules(text: str, *, super_users: frozenset[str]) -> AclRules:
    found: dict[Pattern, list[Rule]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            if len(line) > MAX_LINE_CHARACTERS:
                raise ValueError("it is too long")
            words = shlex.split(line, comments=True)
            if words:
                pattern, rules = _parsed(words)
                found.setdefault(pattern, []).extend(rules)
        except ValueError as error:
            raise BadRules(f"line {number}: {error}") from None
    acls = AclRules(super_users=super_users)
    for pattern, rules in found.items():
        acls.set(pattern, rules)
    return acls


def _parsed(words: list[str]) -> tuple[Pattern, list[Rule]]:
    host = ANY_NAME
    if words[-1].startswith("host="):
        host = words.pop().removeprefix("host=")
    if len(words) < 4:
        raise ValueError(
            "write: allow|deny PRINCIPAL OPERATIONS literal|prefixed|any|global [NAME] [host=ADDRESS]"
        )
    permission_word, principal, operations, kind, *names = words
    if permission_word.lower() not in ("allow", "deny"):
        raise ValueError(f"'{permission_word}' is not allow or deny")
    permission = Permission.ALLOW if permission_word.lower() == "allow" else Permission.DENY
    if ":" not in principal:
        raise ValueError(f"'{principal}' is not a principal such as User:alice")
    pattern = _pattern(kind.lower(), names)
    rules = []
    for word in operations.split(","):
        operation = _OPERATIONS.get(word.replace("_", "").lower())
        if operation is None:
            known = "All, Read, Write, Delete, Describe, DescribeConfigs, AlterConfigs"
            raise ValueError(f"'{word}' is not one of {known}")
        rules.append(Rule(principal, host, operation, permission))
    return pattern, rules


def _pattern(kind: str, names: list[str]) -> Pattern:
    if kind in ("any", "global"):
        if names:
            raise ValueError(f"nothing stands behind {kind}")
        return Pattern(SUBJECT, ANY_NAME) if kind == "any" else Pattern(GLOBAL, CLUSTER_NAME)
    if kind not in ("literal", "prefixed"):
        raise ValueError(f"'{kind}' is not literal, prefixed, any or global")
    if len(names) != 1:
        raise ValueError(f"one name stands behind {kind}; put one that has spaces into quotes")
    return Pattern(SUBJECT, names[0], PatternType.LITERAL if kind == "literal" else PatternType.PREFIXED)
