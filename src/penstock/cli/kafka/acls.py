"""kafka-acls: who may do what to topics, groups, transactional ids and the cluster."""

from __future__ import annotations

import sys

from penstock.admin.acls import Binding, create, delete, described
from penstock.cli.kafka.acls_options import TABLE as TABLE
from penstock.cli.kafka.acls_options import Asked, asked_for, check
from penstock.cli.kafka.address import cluster_client
from penstock.cli.kafka.options import OptionError, Options, usage
from penstock.client.cluster_client import ClusterClient
from penstock.client.errors import Refused
from penstock.model.acl import Pattern, PatternType, Rule
from penstock.security.acl_filters import AclFilter


def execute(given: Options) -> int:
    check(given)
    try:
        asked = asked_for(given)
        if given.has("add"):
            _check_addable(asked)
        with cluster_client(given) as client:
            if given.has("add"):
                _add(client, asked)
            elif given.has("remove"):
                _remove(client, asked, is_forced=given.has("force"))
            else:
                _list(client, asked)
    except Refused as error:
        return _failed(f"{error.exception_name}: {error}")
    except OptionError as error:
        return _failed(str(error))
    return 0


def _failed(reason: str) -> int:
    print(f"Error while executing ACL command: {reason}", flush=True)
    return 1


def _check_addable(asked: Asked) -> None:
    if asked.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        usage(
            f"A '--resource-pattern-type' value of '{asked.pattern_type.name}' is not valid when adding acls."
        )
    if not all(asked.rules.values()):
        usage("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")


def _add(client: ClusterClient, asked: Asked) -> None:
    for pattern, rules in asked.rules.items():
        there = set(described(client, AclFilter(*pattern)))
        wanted = []
        for rule in rules:
            if Binding(pattern, rule) in there:
                print(f"Acl (pattern={_of(pattern)}, entry={_entry(rule)}) already exists.")
            else:
                wanted.append(Binding(pattern, rule))
        if wanted:
            lines = "\n".join(f"\t{_entry(rule)}" for _, rule in wanted)
            print(f"Adding ACLs for resource `{_of(pattern)}`: \n {lines}\n", flush=True)
            create(client, wanted)


def _remove(client: ClusterClient, asked: Asked, *, is_forced: bool) -> None:
    for pattern, rules in asked.rules.items():
        if rules:
            lines = "\n".join(f"\t{_entry(rule)}" for rule in rules)
            question = (
                f"Are you sure you want to remove ACLs: \n {lines}\n"
                f" from resource filter `{_of(pattern)}`? (y/n)"
            )
        else:
            question = f"Are you sure you want to delete all ACLs for resource filter `{_of(pattern)}`? (y/n)"
        if is_forced or _agrees(question):
            everything = AclFilter(*pattern)
            delete(client, [_only(everything, rule) for rule in rules] or [everything])


def _only(wanted: AclFilter, rule: Rule) -> AclFilter:
    return wanted._replace(
        principal=rule.principal, host=rule.host, operation=rule.operation, permission=rule.permission
    )


def _agrees(question: str) -> bool:
    """Kafka's tool fails where it has no terminal; an answer through a pipe is an answer, too."""
    print(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"


def _list(client: ClusterClient, asked: Asked) -> None:
    found: dict[Pattern, dict[Rule, None]] = {}
    for wanted in [AclFilter(*pattern) for pattern in asked.patterns] or [AclFilter()]:
        for pattern, rule in described(client, wanted):
            found.setdefault(pattern, {})[rule] = None
    if not asked.principals:
        _print(found)
    for principal in asked.principals:
        print(f"ACLs for principal `{principal}`")
        theirs = {
            pattern: dict.fromkeys(rule for rule in rules if rule.principal == principal)
            for pattern, rules in found.items()
        }
        _print({pattern: rules for pattern, rules in theirs.items() if rules})


def _print(found: dict[Pattern, dict[Rule, None]]) -> None:
    for pattern, rules in found.items():
        lines = "\n".join(f"\t{_entry(rule)}" for rule in rules)
        print(f"Current ACLs for resource `{_of(pattern)}`:\n{lines}\n")


def _of(pattern: Pattern) -> str:
    return (
        f"ResourcePattern(resourceType={pattern.resource_type.name}, name={pattern.name}, "
        f"patternType={pattern.pattern_type.name})"
    )


def _entry(rule: Rule) -> str:
    return (
        f"(principal={rule.principal}, host={rule.host}, operation={rule.operation.name}, "
        f"permissionType={rule.permission.name})"
    )
