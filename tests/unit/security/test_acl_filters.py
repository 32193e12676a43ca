import pytest

from penstock.model.acl import Operation, Pattern, PatternType, Permission, ResourceType, Rule
from penstock.security.acl_filters import AclFilter

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ = Rule("User:ana", "*", Operation.READ, Permission.ALLOW)
WRITE = Rule("User:bob", "10.0.0.1", Operation.WRITE, Permission.DENY)
ACLS = {
    Pattern(TOPIC, "orders"): (READ, WRITE),
    Pattern(TOPIC, "ord", PREFIXED): (READ,),
    Pattern(TOPIC, "orders", PREFIXED): (WRITE,),
    Pattern(TOPIC, "*"): (WRITE,),
    Pattern(TOPIC, "other"): (READ,),
    Pattern(GROUP, "orders"): (READ,),
}


def named(wanted: AclFilter) -> set[str]:
    return {
        f"{pattern.resource_type.name} {pattern.pattern_type.name} {pattern.name}"
        for pattern, _ in wanted.find(ACLS)
    }


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(TOPIC, "orders", LITERAL), {"TOPIC LITERAL orders"}),
        (AclFilter(TOPIC, "orders", PREFIXED), {"TOPIC PREFIXED orders"}),
        (AclFilter(TOPIC, "orders", PatternType.ANY), {"TOPIC LITERAL orders", "TOPIC PREFIXED orders"}),
        (
            AclFilter(TOPIC, "orders", PatternType.MATCH),
            {"TOPIC LITERAL orders", "TOPIC PREFIXED ord", "TOPIC PREFIXED orders", "TOPIC LITERAL *"},
        ),
        (AclFilter(TOPIC, "ordinary", PatternType.MATCH), {"TOPIC PREFIXED ord", "TOPIC LITERAL *"}),
        (AclFilter(TOPIC, "*", PatternType.MATCH), {"TOPIC LITERAL *"}),
        (AclFilter(TOPIC, "*", LITERAL), {"TOPIC LITERAL *"}),
        (AclFilter(TOPIC, "absent", LITERAL), set()),
        (AclFilter(GROUP), {"GROUP LITERAL orders"}),
        (AclFilter(name="orders", pattern_type=LITERAL), {"TOPIC LITERAL orders", "GROUP LITERAL orders"}),
        (AclFilter(TOPIC, pattern_type=PREFIXED), {"TOPIC PREFIXED ord", "TOPIC PREFIXED orders"}),
        (AclFilter(TOPIC, "", LITERAL), set()),
        (AclFilter(ResourceType.UNKNOWN), set()),
        (AclFilter(TOPIC, "orders", PatternType.UNKNOWN), set()),
        (AclFilter(operation=Operation.UNKNOWN), set()),
        (AclFilter(permission=Permission.UNKNOWN), set()),
    ],
)
def test_a_filter_finds_patterns(wanted: AclFilter, found: set[str]) -> None:
    assert named(wanted) == found


def test_nothing_asked_for_is_everything() -> None:
    assert dict(AclFilter().find(ACLS)) == ACLS


@pytest.mark.parametrize(
    "wanted",
    [
        AclFilter(principal="User:bob"),
        AclFilter(host="10.0.0.1"),
        AclFilter(operation=Operation.WRITE),
        AclFilter(permission=Permission.DENY),
    ],
)
def test_a_filter_finds_rules(wanted: AclFilter) -> None:
    found = dict(wanted.find(ACLS))
    assert {rule for rules in found.values() for rule in rules} == {WRITE}
    assert len(found) == 3


def test_a_filter_means_all_operations_by_name_only() -> None:
    """ALL is an operation that a rule names; it is not every operation."""
    assert not named(AclFilter(operation=Operation.ALL))


def test_what_is_not_known_is_noticed() -> None:
    assert AclFilter(ResourceType.UNKNOWN).names_unknown_patterns
    assert AclFilter(pattern_type=PatternType.UNKNOWN).names_unknown_patterns
    assert AclFilter(operation=Operation.UNKNOWN).names_unknown_rules
    assert AclFilter(permission=Permission.UNKNOWN).names_unknown_rules
    assert not AclFilter().names_unknown_patterns
    assert not AclFilter().names_unknown_rules
