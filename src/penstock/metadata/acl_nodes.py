"""The nodes of access rules: all rules of one pattern in one node, as Kafka 3.9 writes them.

    /kafka-acl/Topic/orders                     rules on the topic `orders`, or on all (`*`)
    /kafka-acl-extended/prefixed/Topic/ord      rules on topics whose names begin with `ord`
    /kafka-acl-changes/acl_changes_0000000000   `TOPIC:orders`: that these changed
    /penstock-acl/literal%3AGroup%3Aa%2Fb       rules on what cannot be a node's name: ours, not Kafka's, which refuses such names

A node with anything in it that cannot be read is a `BadNode` as a whole: a rule that denies may be what is missing.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from penstock.metadata.znodes import BadNode, desanitize, sanitize
from penstock.model.acl import (
    ALL_OPERATIONS,
    PERMISSIONS,
    TYPES,
    Pattern,
    PatternType,
    Rule,
    shown,
)

ACL_ROOTS: Final = {PatternType.LITERAL: "/kafka-acl", PatternType.PREFIXED: "/kafka-acl-extended/prefixed"}
OWN_ROOT: Final = "/penstock-acl"
WATCHED_ROOTS: Final = (*ACL_ROOTS.values(), OWN_ROOT)
CHANGES: Final = {
    PatternType.LITERAL: "/kafka-acl-changes",
    PatternType.PREFIXED: "/kafka-acl-extended-changes",
}
CHANGE_PREFIX: Final = "acl_changes_"
TYPE_NAMES: Final = {each: shown(each) for each in TYPES}
PERSISTENT_PATHS: Final = (
    ACL_ROOTS[PatternType.LITERAL],
    *(f"{ACL_ROOTS[PatternType.LITERAL]}/{name}" for name in TYPE_NAMES.values()),
    "/kafka-acl-extended",
    ACL_ROOTS[PatternType.PREFIXED],
    *(f"{ACL_ROOTS[PatternType.PREFIXED]}/{name}" for name in TYPE_NAMES.values()),
    *CHANGES.values(),
    OWN_ROOT,
)

_TYPES: Final = {name: resource_type for resource_type, name in TYPE_NAMES.items()}
_PATTERN_NAMES: Final = {PatternType.LITERAL: "literal", PatternType.PREFIXED: "prefixed"}
_PATTERNS: Final = {name: pattern_type for pattern_type, name in _PATTERN_NAMES.items()}
VERSION: Final = 1

_OPERATIONS: Final = {shown(each).lower(): each for each in ALL_OPERATIONS}
_PERMISSIONS: Final = {shown(each).lower(): each for each in PERMISSIONS}

# What ZooKeeper takes for no name of a node; beyond the basic plane it sees two surrogates.
_NO_NODE_NAME: Final = re.compile(
    "[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]|\\A\\.{0,2}\\Z"
)


def acl_path(pattern: Pattern) -> str:
    type_name = TYPE_NAMES[pattern.resource_type]
    if _NO_NODE_NAME.search(pattern.name):
        whole = f"{_PATTERN_NAMES[pattern.pattern_type]}:{type_name}:{pattern.name}"
        return f"{OWN_ROOT}/{sanitize(whole)}"
    return f"{ACL_ROOTS[pattern.pattern_type]}/{type_name}/{pattern.name}"


def pattern_of(path: str) -> Pattern | None:
    """None of a path that is not a pattern's. ValueError of one that is nobody's: neither Kafka nor we made it."""
    if path in PERSISTENT_PATHS:
        return None
    for pattern_type, root in ACL_ROOTS.items():
        if path.startswith(root + "/"):
            type_name, _, name = path[len(root) + 1 :].partition("/")
            return _pattern(pattern_type, type_name, name, path)
    pattern_name, _, rest = desanitize(path.removeprefix(OWN_ROOT + "/")).partition(":")
    type_name, _, name = rest.partition(":")
    return _pattern(_PATTERNS.get(pattern_name), type_name, name, path)


def _pattern(pattern_type: PatternType | None, type_name: str, name: str, path: str) -> Pattern:
    if pattern_type is not None and type_name in _TYPES:
        pattern = Pattern(_TYPES[type_name], name, pattern_type)
        if acl_path(pattern) == path:
            return pattern
    raise ValueError(f"{path} is not the node of access rules")


def encode_rules(rules: Iterable[Rule]) -> bytes:
    node = {
        "acls": [
            {
                "principal": rule.principal,
                "permissionType": shown(rule.permission),
                "host": rule.host,
                "operation": shown(rule.operation),
            }
            for rule in rules
        ],
        "version": VERSION,
    }
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False).encode()


def decode_rules(path: str, data: bytes) -> tuple[Rule, ...]:
    """Each rule once; none of an empty node, which Kafka takes for that too."""
    if not data:
        return ()
    try:
        node = json.loads(data)
        if node["version"] != VERSION:
            raise ValueError(f"its version is {node['version']!r}")
        return tuple(dict.fromkeys(map(_rule, node["acls"])))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadNode(f"the metadata node {path} cannot be read: {error!r}") from error


def _rule(entry: dict[str, Any]) -> Rule:
    principal, host = entry["principal"], entry["host"]
    if not isinstance(principal, str) or not isinstance(host, str):
        raise TypeError("a principal and a host are texts")
    # Older releases wrote `READ` and `Read`.
    operation = _OPERATIONS[entry["operation"].replace("_", "").lower()]
    return Rule(principal, host, operation, _PERMISSIONS[entry["permissionType"].lower()])


def change_prefix(pattern: Pattern) -> str:
    """The path of the notification that a pattern's rules changed, without its number."""
    return f"{CHANGES[pattern.pattern_type]}/{CHANGE_PREFIX}"


def encode_change(pattern: Pattern) -> bytes:
    if pattern.pattern_type == PatternType.LITERAL:
        return f"{pattern.resource_type.name}:{pattern.name}".encode()
    node = {
        "version": VERSION,
        "resourceType": pattern.resource_type.name,
        "name": pattern.name,
        "patternType": pattern.pattern_type.name,
    }
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False).encode()
