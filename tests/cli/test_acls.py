"""Access rules from the command line: kafka-acls, whose output is Apache Kafka 4.3.1's, and `penstock acls`."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import Finished, run_command

OPTIONS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
}
ANA = ("--allow-principal", "User:ana")
Run = Callable[..., Finished]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockBroker]:
    with PenstockBroker(tmp_path_factory.mktemp("guarded"), options=OPTIONS) as broker:
        yield broker
    assert "Traceback" not in broker.log_path.read_text()


@pytest.fixture
def tool(guarded: PenstockBroker) -> Iterator[Run]:
    def run(*words: str, stdin: str = "") -> Finished:
        return run_command("kafka-acls.sh", "--bootstrap-server", guarded.bootstrap, *words, stdin=stdin)

    yield run
    run_command("penstock", "acls", "remove", "--principal", "User:ana", "--yes", "-b", guarded.bootstrap)


@pytest.fixture
def verb(guarded: PenstockBroker) -> Run:
    return lambda *words: run_command("penstock", "acls", *words, "-b", guarded.bootstrap)


def lines(*operations: str, principal: str = "User:ana", host: str = "*", permission: str = "ALLOW") -> str:
    return "\n".join(
        f"\t(principal={principal}, host={host}, operation={operation}, permissionType={permission})"
        for operation in operations
    )


def resource(kind: str, name: str, pattern: str = "LITERAL") -> str:
    return f"ResourcePattern(resourceType={kind}, name={name}, patternType={pattern})"


def test_rules_are_added_once_listed_and_removed(tool: Run) -> None:
    orders = resource("TOPIC", "orders")
    words = ("--add", *ANA, "--operation", "Read", "--operation", "Write", "--topic", "orders")
    done = tool(*words)
    assert done == (f"Adding ACLs for resource `{orders}`: \n {lines('READ', 'WRITE')}\n\n", "", 0)
    done = tool(*words, "--operation", "describe")
    assert (
        done.out
        == "".join(
            f"Acl (pattern={orders}, entry={lines(one).strip()}) already exists.\n"
            for one in ("READ", "WRITE")
        )
        + f"Adding ACLs for resource `{orders}`: \n {lines('DESCRIBE')}\n\n"
    )
    listed = f"Current ACLs for resource `{orders}`:\n{lines('READ', 'WRITE', 'DESCRIBE')}\n\n"
    assert tool("--list", "--topic", "orders") == (listed, "", 0)
    assert tool("--list", "--principal", "User:ana").out == f"ACLs for principal `User:ana`\n{listed}"
    assert tool("--list", "--principal", "User:eve").out == "ACLs for principal `User:eve`\n"
    assert tool("--list", "--topic", "order") == ("", "", 0)
    question = f"Are you sure you want to remove ACLs: \n {lines('WRITE')}\n from resource filter `{orders}`? (y/n)\n"
    write = ("--remove", *ANA, "--operation", "Write", "--topic", "orders")
    assert tool(*write, stdin="n\n") == (question, "", 0)
    assert "WRITE" in tool("--list").out
    assert tool(*write, stdin="Y\n") == (question, "", 0)
    assert "WRITE" not in tool("--list").out
    done = tool("--remove", "--topic", "orders", stdin="")
    assert done.out == f"Are you sure you want to delete all ACLs for resource filter `{orders}`? (y/n)\n"
    assert "READ" in tool("--list").out
    assert tool("--remove", "--topic", "orders", "--force") == ("", "", 0)
    assert tool("--list") == ("", "", 0)


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (
            ("--producer", "--topic", "t", "--transactional-id", "x", "--idempotent"),
            {
                resource("TOPIC", "t"): ["WRITE", "DESCRIBE", "CREATE"],
                resource("TRANSACTIONAL_ID", "x"): ["WRITE", "DESCRIBE"],
                resource("CLUSTER", "kafka-cluster"): ["IDEMPOTENT_WRITE"],
            },
        ),
        (
            ("--consumer", "--topic", "t", "--group", "g", "--resource-pattern-type", "prefixed"),
            {
                resource("TOPIC", "t", "PREFIXED"): ["READ", "DESCRIBE"],
                resource("GROUP", "g", "PREFIXED"): ["READ"],
            },
        ),
        (
            ("--producer", "--consumer", "--topic", "t", "--group", "g"),
            {
                resource("TOPIC", "t"): ["WRITE", "DESCRIBE", "CREATE", "READ"],
                resource("GROUP", "g"): ["READ"],
            },
        ),
        (("--cluster",), {resource("CLUSTER", "kafka-cluster"): ["ALL"]}),
        (
            ("--operation", "CreateTokens", "--user-principal", "User:b"),
            {resource("USER", "User:b"): ["CREATE_TOKENS"]},
        ),
        (
            ("--operation", "Describe", "--delegation-token", "d"),
            {resource("DELEGATION_TOKEN", "d"): ["DESCRIBE"]},
        ),
    ],
)
def test_conveniences_make_the_rules_that_kafkas_make(
    tool: Run, words: tuple[str, ...], made: dict[str, list[str]]
) -> None:
    done = tool("--add", *ANA, *words)
    assert done == (
        "".join(f"Adding ACLs for resource `{on}`: \n {lines(*what)}\n\n" for on, what in made.items()),
        "",
        0,
    )
    listed = tool("--list").out
    for on, what in made.items():
        assert f"Current ACLs for resource `{on}`:\n{lines(*what)}\n\n" in listed


def test_hosts_denials_and_patterns(tool: Run) -> None:
    prefixed, literal = resource("TOPIC", "ord", "PREFIXED"), resource("TOPIC", "orders")
    done = tool(
        "--add", *ANA, "--allow-host", "10.0.0.1", "--deny-principal", "User:ana", "--deny-host", "10.0.0.2",
        "--topic", "ord", "--resource-pattern-type", "prefixed",
    )  # fmt: skip
    both = f"{lines('ALL', host='10.0.0.1')}\n{lines('ALL', host='10.0.0.2', permission='DENY')}\n"
    assert done.out == f"Adding ACLs for resource `{prefixed}`: \n {both}\n"
    tool("--add", *ANA, "--topic", "orders")
    match = tool("--list", "--topic", "orders", "--resource-pattern-type", "match").out
    assert prefixed in match
    assert literal in match
    anything = tool("--list", "--topic", "orders", "--resource-pattern-type", "any").out
    assert prefixed not in anything
    assert literal in anything


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--add", "--list"), "Command must include exactly one action: --list, --add, --remove. "),
        ((), "Command must include exactly one action: --list, --add, --remove. "),
        (("--list", *ANA), 'Option "[list]" can\'t be used with option "[allow-principal]"'),
        (("--list", "--producer"), 'Option "[list]" can\'t be used with option "[producer]"'),
        (
            ("--add", "--producer", "--operation", "Read", "--topic", "t"),
            'Option "[producer]" can\'t be used with option "[operation]"',
        ),
        (
            ("--add", "--principal", "User:a", "--topic", "t"),
            "The --principal option is only available if --list is set",
        ),
        (("--add", "--producer", *ANA), "With --producer you must specify a --topic"),
        (("--add", "--idempotent", *ANA), "The --idempotent option is only available if --producer is set"),
        (
            ("--add", "--consumer", *ANA, "--topic", "t"),
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified.",
        ),
        (
            ("--add", "--topic", "t"),
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.",
        ),
        (
            ("--add", *ANA),
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>",
        ),
        (
            ("--add", *ANA, "--topic", "t", "--resource-pattern-type", "match"),
            "A '--resource-pattern-type' value of 'MATCH' is not valid when adding acls.",
        ),
        (("--list", "--authorizer-properties", "x=y"), "authorizer-properties is not a recognized option"),
        (("--list", "--authorizer", "x"), "authorizer is not a recognized option"),
        (
            ("--list", "--bootstrap-controller", "localhost:1"),
            "Only one of --bootstrap-server or --bootstrap-controller must be specified",
        ),
    ],
)
def test_wrong_options_are_told_in_kafkas_words(tool: Run, words: tuple[str, ...], complaint: str) -> None:
    done = tool(*words)
    assert done.err.splitlines()[0] == complaint
    assert (done.out, done.code) == ("", 1)


def test_an_operation_that_a_resource_does_not_have(tool: Run) -> None:
    done = tool("--add", *ANA, "--cluster", "--operation", "Read")
    first = done.err.splitlines()[0]
    assert first.startswith("ResourceType CLUSTER only supports operations [")
    names = set(first.partition("[")[2].rstrip("]").split(", "))
    assert names == {
        "CLUSTER_ACTION", "ALTER", "DESCRIBE_CONFIGS", "IDEMPOTENT_WRITE", "ALL", "CREATE", "DESCRIBE",
        "ALTER_CONFIGS",
    }  # fmt: skip
    assert tool("--add", *ANA, "--topic", "t", "--operation", "Fly").code == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--allow-principal", "ana", "--topic", "t"),
            "expected a string in format principalType:principalName but got ana",
        ),
        (
            (*ANA, "--topic", "t", "--resource-pattern-type", "bogus"),
            "Cannot parse argument 'bogus' of option resource-pattern-type",
        ),
        (
            (*ANA, "--topic", ""),
            "org.apache.kafka.common.errors.InvalidRequestException: Invalid empty resource name",
        ),
    ],
)
def test_what_fails_is_told_where_kafka_tells_it(tool: Run, words: tuple[str, ...], told: str) -> None:
    done = tool("--add", *words)
    assert done.out.splitlines()[-1] == f"Error while executing ACL command: {told}"
    assert (done.err, done.code) == ("", 1)


def test_a_broker_without_an_authorizer_says_so(broker: PenstockBroker) -> None:
    done = run_command("kafka-acls", "--bootstrap-server", broker.bootstrap, "--list")
    assert done == (
        "Error while executing ACL command: org.apache.kafka.common.errors.SecurityDisabledException: "
        "No Authorizer is configured on the broker\n",
        "",
        1,
    )
    done = run_command("penstock", "acls", "list", "-b", broker.bootstrap)
    assert "No Authorizer is configured on the broker" in done.err
    assert done.code == 1


def test_rules_for_people(tool: Run, verb: Run) -> None:
    assert "There are no rules." in verb("list").err
    done = verb(
        "add", "--principal", "User:ana", "--allow", "read", "--topic", "ord", "--prefixed", "-o", "json"
    )
    (made,) = json.loads(done.out)
    assert made == {
        "principal": "User:ana", "permission": "Allow", "operation": "Read", "resource_type": "Topic",
        "resource_name": "ord", "pattern": "Prefixed", "host": "*",
    }  # fmt: skip
    verb("add", "--principal", "User:ana", "--deny", "All", "--topic", "orders", "--host", "10.0.0.9")
    made_ = json.loads(
        verb(
            "add", "--principal", "User:ana", "--consumer", "--topic", "t", "--group", "g/1", "-o", "json"
        ).out
    )
    assert [(one["resource_type"], one["operation"]) for one in made_] == [
        ("Topic", "Read"),
        ("Topic", "Describe"),
        ("Group", "Read"),
    ]
    for_orders = json.loads(verb("list", "--topic", "orders", "-o", "json").out)
    assert [(one["permission"], one["resource_name"]) for one in for_orders] == [
        ("Allow", "ord"),
        ("Deny", "orders"),
    ]
    table = verb("list", "--principal", "User:ana").out
    assert "principal" in table
    assert "g/1" in table
    gone = json.loads(
        verb("remove", "--principal", "User:ana", "--topic", "ord", "--prefixed", "--yes", "-o", "json").out
    )
    assert gone == [made]
    assert "There was no such rule." in verb("remove", "--topic", "absent", "--yes").err
    assert len(json.loads(verb("remove", "--principal", "User:ana", "--yes", "-o", "json").out)) == 4


def test_a_check_says_yes_or_no_and_which_rule_decides(tool: Run, verb: Run) -> None:
    verb("add", "--principal", "User:ana", "--allow", "Read", "--topic", "ord", "--prefixed")
    verb("add", "--principal", "User:*", "--deny", "Read", "--topic", "orders", "--host", "10.0.0.9")
    try:
        asked = ("check", "--principal", "User:ana", "--topic", "orders")
        done = verb(*asked, "--operation", "Read")
        assert done.code == 0
        assert done.out.startswith("yes: a rule allows it\n")
        assert "Prefixed" in done.out
        implied = json.loads(verb(*asked, "--operation", "Describe", "-o", "json").out)
        assert implied["allowed"] is True
        assert implied["rule"]["operation"] == "Read"
        done = verb(*asked, "--operation", "Read", "--host", "10.0.0.9", "-o", "json")
        assert done.code == 1
        assert json.loads(done.out)["rule"]["permission"] == "Deny"
        done = verb(*asked, "--operation", "Write")
        assert (done.out, done.code) == ("no: no rule allows it\n", 1)
        done = verb("check", "--principal", "User:ana", "--operation", "Read", "--group", "g")
        assert (done.out, done.code) == ("no: there is no rule for this resource\n", 1)
        done = verb("check", "--principal", "User:admin", "--operation", "Alter", "--cluster")
        assert (done.out, done.code) == ("yes: it is one of the brokers' super.users\n", 0)
    finally:
        verb("remove", "--topic", "orders", "--yes")


def test_a_check_tells_of_describe_that_is_denied(verb: Run) -> None:
    ana = ("--principal", "User:ana", "--topic", "orders")
    verb("add", *ana, "--allow", "Write", "--deny", "Describe")
    try:
        done = verb("check", *ana, "--operation", "Write")
        assert done.code == 0
        assert done.out.startswith("yes: a rule allows it; but Describe is denied, and clients need it too\n")
    finally:
        verb("remove", "--topic", "orders", "--yes")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("add", "--principal", "ana", "--allow", "Read", "--topic", "t"), "must be written as TYPE:NAME"),
        (("add", "--principal", "User:a", "--allow", "Fly", "--topic", "t"), "there is no operation 'Fly'"),
        (
            ("add", "--principal", "User:a", "--allow", "Write", "--group", "g"),
            "Write cannot be done to a resource",
        ),
        (("add", "--principal", "User:a", "--allow", "Read"), "say for what"),
        (("add", "--principal", "User:a", "--topic", "t"), "say what"),
        (("add", "--principal", "User:a", "--allow", "Read", "--topic", ""), "must not be empty"),
        (("remove", "--yes"), "say which rules"),
        (("check", "--principal", "User:a", "--operation", "Read"), "say for what, one of"),
        (("check", "--principal", "User:a", "--operation", "Read", "--topic", "a", "--group", "b"), "one of"),
    ],
)
def test_mistakes_are_told_in_one_line(verb: Run, words: tuple[str, ...], complaint: str) -> None:
    done = verb(*words)
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1
    assert done.code == 1


def test_a_properties_file_that_is_not_there(tool: Run, tmp_path: Path) -> None:
    done = tool("--list", "--command-config", str(tmp_path / "none"))
    assert done.code == 1
    assert str(tmp_path / "none") in done.out + done.err
