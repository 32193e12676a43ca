"""Apache Kafka's own kafka-acls, and librdkafka's AdminClient, make and see access rules at our broker."""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from penstock.testing.penstock_broker import PenstockBroker
from simulation.apache.resident_tools import resident_tool
from tests.cli.conftest import run_command
from tests.clients.driver import WAIT_S
from tests.conftest import StartBroker
from tests.tools.conftest import TOOL_TIMEOUT_S, TOOLS, Output

OPTIONS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ANA = ("--allow-principal", "User:ana")


@pytest.fixture
def guarded(start_broker: StartBroker) -> PenstockBroker:
    return start_broker(options=OPTIONS)


def java(broker: PenstockBroker, *words: str, check: bool = True) -> Output:
    address = ("--bootstrap-server", broker.bootstrap)
    return resident_tool(f"{TOOLS}.AclCommand", *address, *words, check=check, timeout_s=TOOL_TIMEOUT_S)


def test_javas_tool_and_ours_say_the_same(guarded: PenstockBroker) -> None:
    def both(*words: str) -> None:
        """Sets have no order in Java."""
        theirs = java(guarded, *words).stdout
        ours = run_command("kafka-acls", "--bootstrap-server", guarded.bootstrap, *words)
        assert sorted(ours.out.splitlines()) == sorted(theirs.splitlines())
        assert ours.code == 0

    made = java(guarded, "--add", *ANA, "--producer", "--topic", "orders", "--transactional-id", "tx")
    assert "Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders" in made.stdout
    java(
        guarded,
        "--add",
        *ANA,
        "--consumer",
        "--topic",
        "ord",
        "--group",
        "a/b",
        "--resource-pattern-type",
        "prefixed",
    )
    java(guarded, "--add", "--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--cluster")
    both("--list")
    both("--list", "--topic", "orders", "--resource-pattern-type", "match")
    both("--list", "--principal", "User:ana", "--principal", "User:eve")
    both("--add", *ANA, "--producer", "--topic", "orders")  # all there already
    java(guarded, "--remove", *ANA, "--operation", "Write", "--topic", "orders", "--force")
    java(guarded, "--remove", "--cluster", "--force")
    both("--list")
    assert "CLUSTER" not in java(guarded, "--list").stdout
    refused = java(guarded, "--add", *ANA, "--topic", "", check=False)
    assert "InvalidRequestException: Invalid empty resource name" in refused.stdout
    java(guarded, "--remove", "--group", "a/b", "--resource-pattern-type", "any", "--force")
    both("--list", "--group", "a/b", "--resource-pattern-type", "any")


def test_javas_tool_is_told_that_there_is_no_authorizer(broker: PenstockBroker) -> None:
    for words in (("--list",), ("--remove", "--topic", "t", "--force")):
        done = java(broker, *words, check=False)
        assert "SecurityDisabledException: No Authorizer is configured" in done.stdout
        assert done.returncode == 1


def test_librdkafka_makes_finds_and_removes_rules(guarded: PenstockBroker) -> None:
    admin = AdminClient({"bootstrap.servers": guarded.bootstrap})

    def binding(name: str, pattern: ResourcePatternType = ResourcePatternType.LITERAL) -> AclBinding:
        return AclBinding(
            ResourceType.TOPIC, name, pattern, "User:ana", "*", AclOperation.READ, AclPermissionType.ALLOW
        )

    def find(kind: ResourceType, name: str | None, pattern: ResourcePatternType) -> set[AclBinding]:
        wanted = AclBindingFilter(kind, name, pattern, None, None, AclOperation.ANY, AclPermissionType.ANY)
        return set(admin.describe_acls(wanted).result(WAIT_S))

    wanted = [binding("orders"), binding("ord", ResourcePatternType.PREFIXED), binding("other")]
    for future in admin.create_acls(wanted).values():
        future.result(WAIT_S)
    assert find(ResourceType.ANY, None, ResourcePatternType.ANY) == set(wanted)
    assert find(ResourceType.TOPIC, "orders", ResourcePatternType.MATCH) == set(wanted[:2])
    assert find(ResourceType.GROUP, None, ResourcePatternType.ANY) == set()
    refused = AclBinding(
        ResourceType.BROKER, "other", ResourcePatternType.LITERAL, "User:ana", "*", AclOperation.READ,
        AclPermissionType.ALLOW,
    )  # fmt: skip
    (future,) = admin.create_acls([refused]).values()
    with pytest.raises(KafkaException, match="The only valid name for the CLUSTER resource is kafka-cluster"):
        future.result(WAIT_S)
    filters = [
        AclBindingFilter(
            ResourceType.TOPIC,
            name,
            ResourcePatternType.MATCH,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for name in ("orders", "other")
    ]
    removed = [set(future.result(WAIT_S)) for future in admin.delete_acls(filters).values()]
    assert removed == [set(wanted[:2]), {wanted[2]}]
    assert find(ResourceType.ANY, None, ResourcePatternType.ANY) == set()
