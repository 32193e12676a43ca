"""Rules are made and removed as Kafka's controller does it. What is decided agrees with what is read from the tree."""

import asyncio
import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.controller import acls
from penstock.controller.acls import create_acls, delete_acls, deletion_filter
from penstock.controller.decision import Decision
from penstock.metadata.image import AclsChanged, ClusterImage
from penstock.metadata.load import load_image, prepare_tree
from penstock.metadata.tree import Create, Delete, MetadataTree, Set
from penstock.model.acl import Operation, Pattern, PatternType, Permission, ResourceType, Rule
from penstock.model.errors import ApiError, ErrorCode
from penstock.security.acl_filters import AclFilter
from penstock.stores.embedded import open_store
from penstock.wire.messages.create_acls import AclCreation
from penstock.wire.messages.delete_acls import DeleteAclsFilter

ORDERS = Pattern(ResourceType.TOPIC, "orders")
READ = Rule("User:alice", "*", Operation.READ, Permission.ALLOW)
WRITE = READ._replace(operation=Operation.WRITE)


def creation(pattern: Pattern = ORDERS, rule: Rule = READ, **changes: Any) -> AclCreation:
    fields: dict[str, Any] = {
        "resource_type": pattern.resource_type,
        "resource_name": pattern.name,
        "resource_pattern_type": pattern.pattern_type,
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation,
        "permission_type": rule.permission,
    }
    return AclCreation(**fields | changes)


def after(image: ClusterImage, decision: Decision[Any]) -> list[int]:
    image.apply_all(decision.changes)
    return [result.error_code for result in decision.results]


def with_rules(*rules: Rule, pattern: Pattern = ORDERS, version: int = 3) -> ClusterImage:
    image = ClusterImage()
    image.apply(AclsChanged(pattern, rules, version))
    return image


def delete(image: ClusterImage, *filters: AclFilter) -> Decision[Any]:
    return delete_acls(image, [list(each.find(image.acls)) for each in filters], notify=False)


def test_the_rules_of_one_pattern_are_one_node() -> None:
    image = ClusterImage()
    decision = create_acls(image, [creation(), creation(rule=WRITE), creation()], notify=True)
    first, second = decision.ops
    assert isinstance(first, Create)
    assert first.path == "/kafka-acl/Topic/orders"
    assert second == Create("/kafka-acl-changes/acl_changes_", b"TOPIC:orders", sequence=True)
    assert after(image, decision) == [0, 0, 0]
    assert image.acls == {ORDERS: (READ, WRITE)}
    assert image.acl_versions == {ORDERS: 0}


def test_a_rule_that_is_there_changes_nothing() -> None:
    decision = create_acls(with_rules(READ), [creation()], notify=True)
    assert decision == ([decision.results[0]], [], [])
    assert decision.results[0].error_code == 0


def test_a_write_names_the_version_that_was_seen() -> None:
    image = with_rules(READ)
    decision = create_acls(image, [creation(rule=WRITE)], notify=False)
    (op,) = decision.ops
    assert isinstance(op, Set)
    assert op.version == 3
    after(image, decision)
    assert image.acl_versions == {ORDERS: 4}
    (op,) = delete(image, AclFilter()).ops
    assert op == Delete("/kafka-acl/Topic/orders", 4)


def test_an_empty_node_that_is_there_is_written_to() -> None:
    (op,) = create_acls(with_rules(version=0), [creation()], notify=False).ops
    assert isinstance(op, Set)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"resource_type": 0}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_pattern_type": 1}, "Invalid patternType ANY"),
        ({"resource_pattern_type": 2}, "Invalid patternType MATCH"),
        ({"resource_pattern_type": -3}, "Invalid patternType UNKNOWN"),
        ({"operation": 0}, "Invalid operation UNKNOWN"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"operation": 100}, "Invalid operation UNKNOWN"),
        ({"permission_type": 1}, "Invalid permissionType ANY"),
        ({"permission_type": 9}, "Invalid permissionType UNKNOWN"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        (
            {"resource_type": 4, "resource_name": "other"},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal type from the principal name)",
        ),
        (
            {"principal": ""},
            "Could not parse principal from `` (no colon is present separating the principal type from the principal name)",
        ),
    ],
)
def test_what_kafka_refuses_is_refused_and_the_others_are_made(wrong: dict[str, Any], message: str) -> None:
    image = ClusterImage()
    decision = create_acls(image, [creation(), creation(**wrong), creation(rule=WRITE)], notify=False)
    refused = decision.results[1]
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert after(image, decision) == [0, ErrorCode.INVALID_REQUEST, 0]
    assert image.acls == {ORDERS: (READ, WRITE)}


@pytest.mark.parametrize(
    "allowed",
    [
        {"host": ""},
        {"host": "no host"},
        {"principal": ":"},
        {"principal": "Group:x"},
        {"resource_name": "no topic's name!"},
        {"operation": Operation.CLUSTER_ACTION},
        {"resource_type": 7, "resource_name": "bob"},
        {"resource_name": "*", "resource_pattern_type": 4},
    ],
)
def test_what_kafka_takes_is_taken(allowed: dict[str, Any]) -> None:
    assert after(ClusterImage(), create_acls(ClusterImage(), [creation(**allowed)], notify=False)) == [0]


def test_a_node_that_cannot_be_read_is_left_alone() -> None:
    image = ClusterImage()
    image.apply(AclsChanged(ORDERS, (), 3, "the metadata node cannot be read"))
    decision = create_acls(image, [creation()], notify=False)
    assert decision.ops == []
    assert decision.results[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "cannot be read" in str(decision.results[0].error_message)
    assert delete(image, AclFilter()).ops == []


def test_a_node_does_not_grow_beyond_what_a_store_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "MAX_NODE_BYTES", 1000)
    image = ClusterImage()
    many = [creation(rule=READ._replace(host=str(number))) for number in range(20)]
    decision = create_acls(image, many, notify=False)
    codes = after(image, decision)
    made = codes.count(0)
    assert 0 < made < 20
    assert codes == [0] * made + [ErrorCode.INVALID_REQUEST] * (20 - made)
    assert len(image.acls[ORDERS]) == made
    (op,) = decision.ops
    assert isinstance(op, Create)
    assert len(op.data) <= 1000


def test_what_two_filters_match_is_told_to_both_and_removed_once() -> None:
    image = with_rules(READ, WRITE)
    decision = delete(image, AclFilter(operation=Operation.READ), AclFilter(principal="User:alice"))
    assert [len(result.matching_acls) for result in decision.results] == [1, 2]
    assert decision.ops == [Delete("/kafka-acl/Topic/orders", 3)]
    after(image, decision)
    assert (image.acls, image.acl_versions) == ({}, {})


def test_what_is_not_matched_stays() -> None:
    image = with_rules(READ, WRITE)
    decision = delete(image, AclFilter(operation=Operation.READ))
    (op,) = decision.ops
    assert isinstance(op, Set)
    after(image, decision)
    assert image.acls == {ORDERS: (WRITE,)}


def test_rules_made_since_the_search_stay() -> None:
    image = with_rules(READ)
    found = list(AclFilter().find(image.acls))
    image.apply(AclsChanged(ORDERS, (READ, WRITE), 4))
    after(image, delete_acls(image, [found], notify=False))
    assert image.acls == {ORDERS: (WRITE,)}


def test_a_refused_filter_does_not_keep_others_from_their_work() -> None:
    image = with_rules(READ)
    refusal = ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    decision = delete_acls(image, [refusal, list(AclFilter().find(image.acls))], notify=False)
    assert after(image, decision) == [ErrorCode.INVALID_REQUEST, 0]
    assert image.acls == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"resource_type_filter": 99}, "Unknown patternFilter."),
        ({"pattern_type_filter": 0}, "Unknown patternFilter."),
        ({"operation": 77}, "Unknown entryFilter."),
        ({"permission_type": -1}, "Unknown entryFilter."),
    ],
)
def test_a_filter_with_unknown_codes_is_refused(wrong: dict[str, int], message: str) -> None:
    fields: dict[str, int] = {
        "resource_type_filter": 1,
        "pattern_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
    }
    with pytest.raises(ApiError) as refused:
        deletion_filter(DeleteAclsFilter(**fields | wrong))  # type: ignore[arg-type]
    assert (refused.value.code, refused.value.detail) == (ErrorCode.INVALID_REQUEST, message)


NAMES = st.sampled_from(["orders", "*", "a/b", "..", "ord", "ü"])
PATTERNS = st.builds(
    Pattern,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    NAMES,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)
RULES = st.builds(
    Rule,
    st.sampled_from(["User:a", "User:*", 'User:"ü"\n']),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from([Operation.READ, Operation.ALL]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)
FILTERS = st.builds(
    AclFilter,
    st.sampled_from([ResourceType.ANY, ResourceType.TOPIC]),
    st.none() | NAMES,
    st.sampled_from([PatternType.ANY, PatternType.MATCH, PatternType.LITERAL]),
    st.none() | st.just("User:a"),
)
STEPS = st.lists(
    st.lists(st.tuples(PATTERNS, RULES), max_size=4) | st.lists(FILTERS, min_size=1, max_size=2), max_size=8
)


@settings(max_examples=30)
@given(STEPS)
def test_the_rules_kept_are_the_rules_read_again(steps: list[list[Any]]) -> None:
    async def go(tree: MetadataTree) -> None:
        await prepare_tree(tree, new_cluster_id="id")
        image = await load_image(tree)
        for step in steps:
            if step and isinstance(step[0], AclFilter):
                decision = delete(image, *step)
            else:
                decision = create_acls(image, [creation(*each) for each in step], notify=True)
            await tree.multi(decision.ops)
            image.apply_all(decision.changes)
            assert image.differences(await load_image(tree)) == []
        await tree.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(go(open_store(directory)))
