"""Access rules, decided as Kafka's StandardAuthorizer decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.acl import (
    ANY_NAME,
    ANY_PRINCIPAL,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
)
from penstock.security.acls import AclRules

HOST = "10.0.0.7"
ORDERS = Pattern(ResourceType.TOPIC, "orders")
ORD = Pattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED)
EVERY_TOPIC = Pattern(ResourceType.TOPIC, ANY_NAME)


def allow(operation: Operation, *, principal: str = "User:ana", host: str = ANY_NAME) -> Rule:
    return Rule(principal, host, operation, Permission.ALLOW)


def deny(operation: Operation, *, principal: str = "User:ana", host: str = ANY_NAME) -> Rule:
    return Rule(principal, host, operation, Permission.DENY)


def rules(*given_rules: tuple[Pattern, Rule], default: bool = False) -> AclRules:
    made = AclRules(super_users=["User:admin"], allow_if_no_acl_found=default)
    by_pattern: dict[Pattern, list[Rule]] = {}
    for pattern, rule in given_rules:
        by_pattern.setdefault(pattern, []).append(rule)
    for pattern, of_pattern in by_pattern.items():
        made.set(pattern, of_pattern)
    return made


def may(of: AclRules, operation: Operation, topic: str = "orders", principal: str = "User:ana") -> bool:
    return of.decide(principal, HOST, operation, ResourceType.TOPIC, topic).is_allowed


def test_nobody_but_a_super_user_may_do_what_no_rule_is_about() -> None:
    assert not may(rules(), Operation.READ)
    assert may(rules(), Operation.READ, principal="User:admin")
    assert may(rules(default=True), Operation.READ)


def test_a_rule_on_a_topic_ends_the_default_for_all_others() -> None:
    of = rules((ORDERS, allow(Operation.READ)), default=True)
    assert may(of, Operation.READ)
    assert not may(of, Operation.WRITE)
    assert not may(of, Operation.READ, principal="User:bob")
    assert may(of, Operation.READ, "other", principal="User:bob")


def test_a_rule_on_all_topics_ends_the_default_for_every_topic() -> None:
    of = rules((EVERY_TOPIC, allow(Operation.READ)), default=True)
    assert not may(of, Operation.READ, "other", principal="User:bob")


@pytest.mark.parametrize("pattern", [ORDERS, ORD, EVERY_TOPIC])
def test_a_denial_wins_wherever_it_stands(pattern: Pattern) -> None:
    of = rules((ORDERS, allow(Operation.ALL)), (ORD, allow(Operation.READ)), (pattern, deny(Operation.READ)))
    decision = of.decide("User:ana", HOST, Operation.READ, ResourceType.TOPIC, "orders")
    assert not decision.is_allowed
    assert (decision.pattern, decision.rule) == (pattern, deny(Operation.READ))
    assert may(of, Operation.WRITE)


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_reading_writing_deleting_and_altering_bring_describe(operation: Operation) -> None:
    assert may(rules((ORDERS, allow(operation))), Operation.DESCRIBE)
    assert not may(rules((ORDERS, allow(operation)), (ORDERS, deny(Operation.DESCRIBE))), Operation.DESCRIBE)


def test_denying_an_operation_denies_nothing_that_it_would_bring() -> None:
    assert may(rules((ORDERS, deny(Operation.READ)), (ORDERS, allow(Operation.DESCRIBE))), Operation.DESCRIBE)
    assert may(rules((ORDERS, allow(Operation.ALTER_CONFIGS))), Operation.DESCRIBE_CONFIGS)


def test_hosts_and_principals_are_matched_whole() -> None:
    of = rules((ORDERS, allow(Operation.READ, host="10.0.0.8")), (ORDERS, allow(Operation.WRITE, host=HOST)))
    assert not may(of, Operation.READ)
    assert may(of, Operation.WRITE)
    assert may(rules((ORDERS, allow(Operation.READ, principal=ANY_PRINCIPAL))), Operation.READ)
    assert not may(rules((ORDERS, allow(Operation.READ, principal="User:an"))), Operation.READ)


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("0:0:0:0:0:0:0:1", "::1"),  # as Kafka's brokers know it, and as ours do
        ("2001:DB8:0::7", "2001:db8::7"),
        ("2001:db8::7", "2001:db8:0:0:0:0:0:7"),
        ("fe80:0:0:0:0:0:0:7%eth0", "fe80::7%eth0"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
    ],
)
def test_an_address_is_the_same_however_it_is_written(written: str, host: str) -> None:
    of = rules((ORDERS, allow(Operation.READ)), (ORDERS, deny(Operation.READ, host=written)))

    def may_from(host: str) -> bool:
        return of.decide("User:ana", host, Operation.READ, ResourceType.TOPIC, "orders").is_allowed

    assert not may_from(host)
    assert may_from("10.0.0.8")
    assert may_from("2001:db8::8")
    denied = rules((EVERY_TOPIC, allow(Operation.READ)), (EVERY_TOPIC, deny(Operation.READ, host=written)))
    assert not denied.decide_any("User:ana", host, Operation.READ, ResourceType.TOPIC)
    assert denied.decide_any("User:ana", "10.0.0.8", Operation.READ, ResourceType.TOPIC)


def test_a_prefix_is_no_literal_and_a_star_is_no_prefix() -> None:
    assert may(rules((ORD, allow(Operation.READ))), Operation.READ, "ord")
    assert not may(rules((ORDERS, allow(Operation.READ))), Operation.READ, "orders-2")
    star = Pattern(ResourceType.TOPIC, ANY_NAME, PatternType.PREFIXED)
    assert not may(rules((star, allow(Operation.READ))), Operation.READ)


def test_rules_that_are_taken_away_are_gone() -> None:
    of = rules((ORD, allow(Operation.READ)), (ORDERS, allow(Operation.WRITE)))
    of.set(ORD, ())
    assert not may(of, Operation.READ)
    of.set(ORDERS, [allow(Operation.READ)])
    assert may(of, Operation.READ)
    assert not may(of, Operation.WRITE)
    assert list(of) == [(ORDERS, (allow(Operation.READ),))]


def some(of: AclRules) -> bool:
    return of.decide_any("User:ana", HOST, Operation.WRITE, ResourceType.TOPIC)


def test_some_resource_is_enough_to_write_somewhere() -> None:
    assert not some(rules())
    assert some(rules(default=True))
    assert some(rules((ORDERS, deny(Operation.WRITE)), default=True))
    # a rule on everything closes every topic, whomever it is about
    assert not some(rules((EVERY_TOPIC, allow(Operation.READ, principal="User:bob")), default=True))
    assert some(rules((ORDERS, allow(Operation.WRITE))))
    assert some(rules((ORD, allow(Operation.ALL))))
    assert not some(rules((ORDERS, allow(Operation.READ))))
    assert not some(rules((ORDERS, allow(Operation.WRITE)), (ORDERS, deny(Operation.WRITE))))
    assert not some(rules((ORDERS, allow(Operation.WRITE)), (ORD, deny(Operation.WRITE))))
    assert some(rules((ORD, allow(Operation.WRITE)), (ORDERS, deny(Operation.WRITE))))
    assert not some(rules((ORDERS, allow(Operation.WRITE)), (EVERY_TOPIC, deny(Operation.ALL))))
    assert some(rules((EVERY_TOPIC, allow(Operation.WRITE)), (ORD, deny(Operation.WRITE))))


names = st.text("ab", max_size=3).map(lambda text: text or ANY_NAME)
patterns = st.builds(
    Pattern, st.just(ResourceType.TOPIC), names, st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
)
some_rules = st.lists(
    st.builds(
        Rule,
        st.sampled_from(["User:ana", "User:bob", ANY_PRINCIPAL]),
        st.sampled_from([HOST, "10.0.0.8", ANY_NAME]),
        st.sampled_from([Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL]),
        st.sampled_from([Permission.ALLOW, Permission.DENY]),
    ),
    max_size=3,
)


@given(st.lists(st.tuples(patterns, some_rules), max_size=12), st.text("ab", min_size=1, max_size=4))
def test_looking_up_by_name_finds_what_looking_at_all_patterns_finds(
    changes: list[tuple[Pattern, list[Rule]]], name: str
) -> None:
    of = AclRules()
    now: dict[Pattern, tuple[Rule, ...]] = {}
    for pattern, of_pattern in changes:
        of.set(pattern, of_pattern)
        now.pop(pattern, None)
        if of_pattern:
            now[pattern] = tuple(of_pattern)
    matching = {
        pattern: of_pattern
        for pattern, of_pattern in now.items()
        if (pattern.pattern_type == PatternType.PREFIXED and name.startswith(pattern.name))
        or (pattern.pattern_type == PatternType.LITERAL and pattern.name in (name, ANY_NAME))
    }
    assert dict(of.of_resource(ResourceType.TOPIC, name)) == matching
    assert dict(of) == now
