"""Names in certificates, shortened by Kafka's rules."""

import pytest

from penstock.security.principals import BadRule, parse_name_rules


@pytest.mark.parametrize(
    ("rules", "name", "short"),
    [
        ("DEFAULT", "CN=Alice,O=Acme", "CN=Alice,O=Acme"),
        ("", "CN=Alice", "CN=Alice"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=serviceuser,OU=ServiceUsers,O=Acme", "serviceuser"),
        (
            "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,DEFAULT",
            "CN=Admin,OU=Ops,O=Acme,L=X,ST=Y,C=Z",
            "admin@ops",
        ),
        ("RULE:^CN=([^,]+).*$/$1/U , DEFAULT", "CN=alice,O=Acme", "ALICE"),
        ("RULE:^never$/x/,DEFAULT", "CN=alice", "CN=alice"),
    ],
)
def test_the_first_rule_that_matches_names_the_client(rules: str, name: str, short: str) -> None:
    assert parse_name_rules(rules).apply(name) == short


def test_a_name_that_no_rule_matches_is_refused() -> None:
    with pytest.raises(BadRule, match="CN=alice"):
        parse_name_rules("RULE:^never$/x/").apply("CN=alice")


@pytest.mark.parametrize("rules", ["RULE:broken", "RULE:(/x/", "DEFAULT x", "NOPE"])
def test_rules_that_cannot_be_read_are_named(rules: str) -> None:
    with pytest.raises(BadRule):
        parse_name_rules(rules)
