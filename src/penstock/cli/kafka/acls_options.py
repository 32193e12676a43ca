"""The options of kafka-acls, and what they ask for: on which resources which rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable, usage
from penstock.model.acl import (
    ALL_OPERATIONS,
    ANY_NAME,
    CLUSTER_NAME,
    OPERATIONS,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
    shown,
)

TABLE = OptionTable(
    "kafka-acls",
    "This tool helps to manage acls on kafka.",
    [
        Option("bootstrap-server", "REQUIRED: where to connect: one or more brokers.", "HOST:PORT[,HOST:PORT…]"),
        Option("bootstrap-controller", "Controllers of KRaft; Penstock has none. Use --bootstrap-server.", "HOST:PORT"),
        Option("add", "Add rules."),
        Option("remove", "Remove rules: those described by principals, hosts and operations, or all of the resources."),
        Option("list", "List the rules of these resources, or all."),
        Option("topic", "A topic; '*' means all. May be repeated.", "NAME"),
        Option("group", "A group; '*' means all. May be repeated.", "NAME"),
        Option("transactional-id", "A transactional id; '*' means all. May be repeated.", "ID"),
        Option("delegation-token", "A delegation token; '*' means all. May be repeated.", "ID"),
        Option("user-principal", "A user as the resource: for CreateTokens and DescribeTokens.", "PRINCIPAL"),
        Option("cluster", "The cluster itself."),
        Option(
            "resource-pattern-type",
            "How names are meant. literal: the resource of that name. prefixed: all whose names begin so. To list and remove "
            "also any: rules of both kinds on exactly that name, and match: all rules that count for a resource of that name. "
            "Be careful with match and --remove.",
            "ANY|MATCH|LITERAL|PREFIXED",
            "LITERAL",
        ),
        Option(
            "operation",
            "What is allowed or denied; may be repeated: " + ", ".join(map(shown, ALL_OPERATIONS)) + ".",
            "OPERATION",
            "All",
        ),
        Option("allow-principal", "Who is allowed: TYPE:NAME, such as User:ana; 'User:*' is everybody.", "PRINCIPAL"),
        Option("deny-principal", "Who is denied. A rule that denies wins over all that allow.", "PRINCIPAL"),
        Option("allow-host", "From where --allow-principal is allowed. Everywhere, where it is left out.", "HOST"),
        Option("deny-host", "From where --deny-principal is denied. Everywhere, where it is left out.", "HOST"),
        Option("principal", "With --list: only the rules of this one. May be repeated.", "PRINCIPAL", value_is_optional=True),
        Option(
            "producer",
            "What a producer needs: Write, Describe and Create on the topics, Write and Describe on the transactional ids.",
        ),
        Option("idempotent", "With --producer: IdempotentWrite on the cluster, too."),
        Option("consumer", "What a consumer needs: Read and Describe on the topics, Read on the groups."),
        Option("force", "Do not ask."),
    ],
    examples=[
        "kafka-acls --bootstrap-server localhost:9092 --add --allow-principal User:ana --operation Read --topic orders",
        "kafka-acls --bootstrap-server localhost:9092 --list",
    ],
)  # fmt: skip

ACTIONS = ("list", "add", "remove")
PRODUCER_ON_TOPICS = (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE)
PRODUCER_ON_IDS = (Operation.WRITE, Operation.DESCRIBE)
CONSUMER_ON_TOPICS = (Operation.READ, Operation.DESCRIBE)
CONSUMER_ON_GROUPS = (Operation.READ,)
NAMED = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
CLUSTER = Pattern(ResourceType.CLUSTER, CLUSTER_NAME)
_OPERATIONS = {shown(each).lower(): each for each in ALL_OPERATIONS}
_PATTERN_TYPES = {each.name: each for each in PatternType if each != PatternType.UNKNOWN}


class Asked(NamedTuple):
    pattern_type: PatternType
    patterns: list[Pattern]
    principals: list[str]
    """Of --list --principal."""
    rules: dict[Pattern, list[Rule]]
    """Of --add and --remove. None on a pattern: all that are there."""


def check(given: Options) -> None:
    if given.has("bootstrap-server") and given.has("bootstrap-controller"):
        usage("Only one of --bootstrap-server or --bootstrap-controller must be specified")
    if not given.has("bootstrap-server") and not given.has("bootstrap-controller"):
        usage("One of --bootstrap-server or --bootstrap-controller must be specified")
    if sum(given.has(action) for action in ACTIONS) != 1:
        usage("Command must include exactly one action: --list, --add, --remove. ")
    of_rules = ["allow-host", "allow-principal", "deny-host", "deny-principal"]
    given.refuse_with("list", ["producer", "consumer", *of_rules])
    for role in ("producer", "consumer"):
        given.refuse_with(role, ["operation", "deny-principal", "deny-host"])
    if given.has("principal") and not given.has("list"):
        usage("The --principal option is only available if --list is set")
    if given.has("producer") and not given.has("topic"):
        usage("With --producer you must specify a --topic")
    if given.has("idempotent") and not given.has("producer"):
        usage("The --idempotent option is only available if --producer is set")
    if given.has("consumer"):
        is_more = given.has("cluster") or given.has("transactional-id")
        if not given.has("topic") or not given.has("group") or (is_more and not given.has("producer")):
            usage(
                "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id "
                "option should be specified."
            )
    if given.has("bootstrap-controller"):
        raise OptionError("Penstock has no KRaft controllers: use --bootstrap-server")


def asked_for(given: Options) -> Asked:
    pattern_type = _pattern_type(given)
    patterns = _patterns(given, pattern_type)
    if given.has("list"):
        return Asked(pattern_type, patterns, list(map(_principal, given.values("principal"))), {})
    if not patterns:
        usage(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    rules: dict[Pattern, list[Rule]] = {}

    def want(pattern: Pattern, operations: Iterable[Operation]) -> None:
        rules[pattern] = list(dict.fromkeys([*rules.get(pattern, ()), *_rules(given, operations)]))

    if not given.has("producer") and not given.has("consumer"):
        for pattern in patterns:
            want(pattern, map(_operation, given.values("operation") or ["All"]))
    for pattern in patterns:
        kind = pattern.resource_type
        if given.has("producer") and kind == ResourceType.TOPIC:
            want(pattern, PRODUCER_ON_TOPICS)
        if given.has("producer") and kind == ResourceType.TRANSACTIONAL_ID:
            want(pattern, PRODUCER_ON_IDS)
        if given.has("consumer") and kind == ResourceType.TOPIC:
            want(pattern, CONSUMER_ON_TOPICS)
        if given.has("consumer") and kind == ResourceType.GROUP:
            want(pattern, CONSUMER_ON_GROUPS)
    if given.has("idempotent"):
        want(CLUSTER, [Operation.IDEMPOTENT_WRITE])
    for pattern, on_pattern in rules.items():
        _check_supported(pattern.resource_type, on_pattern)
    return Asked(pattern_type, patterns, [], rules)


def _pattern_type(given: Options) -> PatternType:
    word = given.value("resource-pattern-type") or ""
    if word.upper() not in _PATTERN_TYPES:
        raise OptionError(f"Cannot parse argument '{word}' of option resource-pattern-type")
    return _PATTERN_TYPES[word.upper()]


def _patterns(given: Options, pattern_type: PatternType) -> list[Pattern]:
    found = [
        Pattern(resource_type, name.strip(), pattern_type)
        for option, resource_type in NAMED.items()
        for name in given.values(option)
    ]
    if pattern_type == PatternType.LITERAL and (given.has("cluster") or given.has("idempotent")):
        found.append(CLUSTER)
    return list(dict.fromkeys(found))


def _rules(given: Options, operations: Iterable[Operation]) -> list[Rule]:
    wanted = list(dict.fromkeys(operations))
    found = []
    for word, permission in (("allow", Permission.ALLOW), ("deny", Permission.DENY)):
        hosts = [host.strip() for host in given.values(f"{word}-host")] or [ANY_NAME]
        for principal in map(_principal, given.values(f"{word}-principal")):
            found += [Rule(principal, host, each, permission) for each in wanted for host in hosts]
    return found


def _principal(word: str) -> str:
    principal = word.strip()
    if ":" not in principal:
        raise OptionError(f"expected a string in format principalType:principalName but got {principal}")
    return principal


def _operation(word: str) -> Operation:
    """One that there is not is UNKNOWN, which no resource supports."""
    return _OPERATIONS.get(word.strip().replace("_", "").lower(), Operation.UNKNOWN)


def _check_supported(resource_type: ResourceType, rules: Iterable[Rule]) -> None:
    supported = (*OPERATIONS[resource_type], Operation.ALL)
    if any(rule.operation not in supported for rule in rules):
        names = ", ".join(each.name for each in supported)
        usage(f"ResourceType {resource_type.name} only supports operations [{names}]")
