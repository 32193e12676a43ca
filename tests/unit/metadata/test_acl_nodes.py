"""The nodes of access rules, byte for byte as Kafka 3.9.1's AclAuthorizer wrote them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metadata.acl_nodes import (
    PERSISTENT_PATHS,
    acl_path,
    change_prefix,
    decode_rules,
    encode_change,
    encode_rules,
    pattern_of,
)
from penstock.metadata.tree import check_path
from penstock.metadata.znodes import BadNode
from penstock.model.acl import (
    ALL_OPERATIONS,
    PERMISSIONS,
    TYPES,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
)

ORDERS = Pattern(ResourceType.TOPIC, "orders")
ORD = Pattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED)
READ = Rule("User:alice", "*", Operation.READ, Permission.ALLOW)
SPECIFIC = st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])


@pytest.mark.parametrize(
    ("rules", "node"),
    [
        (
            (READ,),
            '{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*","operation":"Read"}],"version":1}',
        ),
        (
            (
                Rule('User:CN=grün,O="x"', "10.0.0.1", Operation.IDEMPOTENT_WRITE, Permission.ALLOW),
                Rule('User:CN=grün,O="x"', "10.0.0.1", Operation.ALL, Permission.ALLOW),
            ),
            '{"acls":[{"principal":"User:CN=grün,O=\\"x\\"","permissionType":"Allow","host":"10.0.0.1",'
            '"operation":"IdempotentWrite"},{"principal":"User:CN=grün,O=\\"x\\"","permissionType":"Allow",'
            '"host":"10.0.0.1","operation":"All"}],"version":1}',
        ),
        (
            (Rule("User:*", "*", Operation.DESCRIBE_CONFIGS, Permission.DENY),),
            '{"acls":[{"principal":"User:*","permissionType":"Deny","host":"*","operation":"DescribeConfigs"}],"version":1}',
        ),
    ],
)
def test_rules_are_written_as_kafka_does(rules: tuple[Rule, ...], node: str) -> None:
    assert encode_rules(rules) == node.encode()
    assert decode_rules("/x", node.encode()) == rules


def test_changes_are_told_as_kafka_does() -> None:
    assert change_prefix(ORDERS) == "/kafka-acl-changes/acl_changes_"
    assert encode_change(ORDERS) == b"TOPIC:orders"
    assert encode_change(Pattern(ResourceType.TRANSACTIONAL_ID, "tx")) == b"TRANSACTIONAL_ID:tx"
    assert encode_change(Pattern(ResourceType.USER, "User:bob")) == b"USER:User:bob"
    assert change_prefix(ORD) == "/kafka-acl-extended-changes/acl_changes_"
    assert encode_change(ORD) == b'{"version":1,"resourceType":"TOPIC","name":"ord","patternType":"PREFIXED"}'


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (ORDERS, "/kafka-acl/Topic/orders"),
        (Pattern(ResourceType.TOPIC, "*"), "/kafka-acl/Topic/*"),
        (Pattern(ResourceType.CLUSTER, "kafka-cluster"), "/kafka-acl/Cluster/kafka-cluster"),
        (Pattern(ResourceType.USER, "User:bob"), "/kafka-acl/User/User:bob"),
        (Pattern(ResourceType.GROUP, "grüße x"), "/kafka-acl/Group/grüße x"),
        (ORD, "/kafka-acl-extended/prefixed/Topic/ord"),
        (Pattern(ResourceType.GROUP, "a/b"), "/penstock-acl/literal%3AGroup%3Aa%2Fb"),
        (Pattern(ResourceType.GROUP, "..", PatternType.PREFIXED), "/penstock-acl/prefixed%3AGroup%3A.."),
    ],
)
def test_a_pattern_has_kafkas_path_or_where_there_is_none_ours(pattern: Pattern, path: str) -> None:
    assert acl_path(pattern) == path
    assert pattern_of(path) == pattern


@given(st.sampled_from(TYPES), st.text(min_size=1, max_size=20), SPECIFIC)
def test_any_name_has_a_path_and_comes_back(
    resource_type: ResourceType, name: str, pattern_type: PatternType
) -> None:
    pattern = Pattern(resource_type, name, pattern_type)
    path = acl_path(pattern)
    check_path(path)
    assert pattern_of(path) == pattern


@given(
    st.lists(
        st.builds(Rule, st.text(), st.text(), st.sampled_from(ALL_OPERATIONS), st.sampled_from(PERMISSIONS)),
        unique=True,
    )
)
def test_rules_come_back(rules: list[Rule]) -> None:
    assert decode_rules("/x", encode_rules(rules)) == tuple(rules)


def test_parents_come_before_their_children_and_are_no_patterns() -> None:
    for number, path in enumerate(PERSISTENT_PATHS):
        parent = path.rpartition("/")[0]
        assert not parent or parent in PERSISTENT_PATHS[:number]
        assert pattern_of(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "/kafka-acl/Planet/mars",
        "/kafka-acl/Topic/a/b",
        "/kafka-acl/topic",
        "/penstock-acl/literal%3ATopic%3Aorders",
        "/penstock-acl/%zz",
        "/penstock-acl/%ff",
    ],
)
def test_nodes_that_nobody_made_are_told_apart(path: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        pattern_of(path)


def test_a_node_without_data_has_no_rules() -> None:
    assert decode_rules("/x", b"") == ()


def test_older_spellings_are_read_and_a_rule_counts_once() -> None:
    entries = [
        {"principal": "User:a", "permissionType": "ALLOW", "host": "*", "operation": "CLUSTER_ACTION"},
        {"principal": "User:a", "permissionType": "Allow", "host": "*", "operation": "ClusterAction"},
    ]
    node = json.dumps({"version": 1, "acls": entries, "more": 1}).encode()
    assert decode_rules("/x", node) == (Rule("User:a", "*", Operation.CLUSTER_ACTION, Permission.ALLOW),)


GOOD = {"principal": "User:a", "permissionType": "Deny", "host": "*", "operation": "Read"}


@pytest.mark.parametrize(
    "node",
    [
        b"\xff",
        b"[]",
        b"7",
        b"{}",
        b'{"version":2,"acls":[]}',
        b'{"version":1}',
        b'{"version":1,"acls":{"a":1}}',
        b"[" * 100_000,
        *(
            json.dumps({"version": 1, "acls": [GOOD, bad]}).encode()
            for bad in (
                {},
                [],
                "x",
                GOOD | {"operation": "Fly"},
                GOOD | {"operation": "Any"},
                GOOD | {"operation": 3},
                GOOD | {"permissionType": "Unknown"},
                GOOD | {"principal": None},
                GOOD | {"host": 5},
            )
        ),
    ],
    ids=lambda node: node[:40].decode(errors="replace"),
)
def test_a_node_with_anything_unknown_in_it_is_no_node(node: bytes) -> None:
    """A rule that denies may be what was not understood."""
    with pytest.raises(BadNode, match=r"/kafka-acl/Topic/x cannot be read"):
        decode_rules("/kafka-acl/Topic/x", node)
