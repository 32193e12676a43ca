"""Rules for Kerberos names, and where tickets come from."""

import pytest

from penstock.security.kerberos import BadRule, LocalNames, TicketSource, parse_rules


def short(rules: str, name: str) -> str:
    return LocalNames(parse_rules(rules), "ACME").of(name)


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("DEFAULT", "ana@ACME", "ana"),
        ("", "kafka/host@ACME", "kafka"),
        ("DEFAULT", "ana", "ana"),
        ("RULE:[1:$1]", "ana@OTHER", "ana"),
        ("RULE:[1:$1]/U", "ana@ACME", "ANA"),
        ("RULE:[1:$1@$0](.*@OTHER)s/@.*//", "ana@OTHER", "ana"),
        ("RULE:[2:$1](kafka)s/.*/broker/,DEFAULT", "kafka/host@ACME", "broker"),
        ("RULE:[2:$1](kafka)s/.*/broker/,DEFAULT", "ana@ACME", "ana"),
        ("RULE:[2:$1;$2](^.*;admin$)s/;admin$//", "ana/admin@ACME", "ana"),
        ("RULE:[1:$1]s/a/o/g", "banana@X", "bonono"),
        ("RULE:[1:$1]s/a/o/", "banana@X", "bonana"),
        ("RULE:[1:$1@$0](^.*@ACME$)s/^(.*)@.*$/$1/g/L", "ANA@ACME", "ana"),
        ("RULE:[1:x](none), RULE:[1:$1]", "ana@X", "ana"),
    ],
)
def test_names_are_shortened_by_the_first_rule_that_fits(rules: str, name: str, expected: str) -> None:
    assert short(rules, name) == expected


@pytest.mark.parametrize(
    ("rules", "name", "says"),
    [
        ("DEFAULT", "ana@OTHER", "no rule of sasl.kerberos.principal.to.local.rules applies to ana@OTHER"),
        ("RULE:[2:$1]", "ana@ACME", "no rule"),
        ("RULE:[1:$1@$0]", "ana@ACME", "no simple name"),
        ("RULE:[1:$2]", "ana@ACME", "no simple name"),
        ("DEFAULT", "a/b/c@ACME", "cannot be read"),
        ("DEFAULT", "", "cannot be read"),
        ("RULE:[1:$1", "ana@ACME", "cannot read 'RULE"),
        ("RULE:[1:$1](+)", "ana@ACME", "no regular expression"),
        ("RULE:[3:$1]", "ana@ACME", "names have 1 or 2"),
        ("DEFAULT DEFAULT", "ana@ACME", "expected a comma"),
    ],
)
def test_other_names_and_rules_are_refused(rules: str, name: str, says: str) -> None:
    with pytest.raises(BadRule, match=says.replace(".", r"\.")):
        short(rules, name)


def test_tickets_come_from_a_keytab_or_from_a_cache() -> None:
    keytab = {"useKeyTab": "true", "keyTab": "FILE:/etc/k", "principal": "kafka/host"}
    assert TicketSource.of(keytab, "") == TicketSource("kafka", "kafka/host", "/etc/k")
    assert TicketSource.of({**keytab, "principal": "*"}, "broker") == TicketSource("broker", "", "/etc/k")
    cache = {"useTicketCache": "true", "ticketCache": "/tmp/c", "serviceName": "svc"}
    assert TicketSource.of(cache, "") == TicketSource("svc", "", "", "/tmp/c")
    with pytest.raises(ValueError, match="keyTab"):
        TicketSource.of({"useKeyTab": "true", "keyTab": "/etc/k"}, "")
