"""The file of access rules."""

import pytest

from penstock.model.acl import CLUSTER_NAME, Operation
from penstock.registry.acl_file import GLOBAL, SUBJECT, BadRules, parse_rules

TEXT = """
# who may do what
allow User:orders    Read,Write  prefixed orders-
deny  User:orders    Write       literal  orders-secret
allow User:*         Describe    any
allow User:admin     AlterConfigs global
allow "User:CN=a b"  All         literal "with space"  host=10.0.0.7
"""


def test_rules_are_decided_as_the_brokers_are() -> None:
    rules = parse_rules(TEXT, super_users=frozenset({"User:root"}))

    def may(who: str, operation: Operation, name: str | None, host: str = "10.0.0.1") -> bool:
        resource = (GLOBAL, CLUSTER_NAME) if name is None else (SUBJECT, name)
        return rules.decide(who, host, operation, *resource).is_allowed

    assert may("User:orders", Operation.WRITE, "orders-value")
    assert not may("User:orders", Operation.WRITE, "orders-secret")
    assert may("User:orders", Operation.READ, "orders-secret")
    assert not may("User:orders", Operation.DELETE, "orders-value")
    assert may("User:x", Operation.DESCRIBE, "anything")
    assert not may("User:x", Operation.READ, "anything")
    assert may("User:admin", Operation.DESCRIBE_CONFIGS, None)
    assert may("User:CN=a b", Operation.DELETE, "with space", "10.0.0.7")
    assert not may("User:CN=a b", Operation.DELETE, "with space")
    assert may("User:root", Operation.DELETE, "x")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("allow", "line 1: write: allow"),
        ("permit User:a Read any", "'permit' is not allow or deny"),
        ("allow a Read any", "'a' is not a principal"),
        ("allow User:a Fly any", "'Fly' is not one of"),
        ("allow User:a Read some x", "'some' is not literal"),
        ("allow User:a Read any x", "nothing stands behind any"),
        ("allow User:a Read literal a b", "one name stands behind literal"),
        ('allow "User:a Read any', "line 1"),
    ],
)
def test_a_line_that_is_wrong_is_told_with_its_number(line: str, complaint: str) -> None:
    with pytest.raises(BadRules, match=complaint):
        parse_rules(line, super_users=frozenset())
