"""Access rules at a broker: made, listed and removed by clients, kept in the tree, followed by every broker of a cluster."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from penstock.broker import serving
from penstock.broker.cluster import notifications
from penstock.broker.metadata import acls
from penstock.metadata.acl_nodes import CHANGES, encode_rules
from penstock.metadata.tree import MetadataTree
from penstock.model.acl import Operation, Pattern, PatternType, Permission, ResourceType, Rule
from penstock.model.errors import ErrorCode
from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from penstock.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from penstock.wire.messages.describe_acls import DescribeAclsRequest
from tests.unit.broker.lone_broker import Client, lone_broker
from tests.unit.broker.simulated_cluster import SimulatedCluster, in_cluster, node_of, others

ON = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
LONE = {name.replace(".", "_"): value for name, value in ON.items()}
READ = Rule("User:ana", "*", Operation.READ, Permission.ALLOW)
ORDERS = Pattern(ResourceType.TOPIC, "orders")
EVERYTHING: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
ALL = DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)])


def creation(name: str = "orders", **changes: Any) -> AclCreation:
    fields: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": name,
        "principal": READ.principal,
        "host": READ.host,
        "operation": READ.operation,
        "permission_type": READ.permission,
    }
    return AclCreation(**fields | changes)


async def listed(client: Client, version: int = 3, **changes: Any) -> list[tuple[str, int]]:
    """The names of patterns, each with how many rules it has."""
    answer = await client.ask(DescribeAclsRequest(**EVERYTHING | changes), version)
    assert answer.error_code == 0, answer.error_message
    return sorted((resource.resource_name, len(resource.acls)) for resource in answer.resources)


def test_without_an_authorizer_there_are_no_rules(tmp_path: Path) -> None:
    async def run() -> None:
        async with lone_broker(tmp_path) as broker, await broker.client() as client:
            described = await client.ask(DescribeAclsRequest(**EVERYTHING), 3)
            assert described.error_code == ErrorCode.SECURITY_DISABLED
            assert described.error_message == "No Authorizer is configured on the broker"
            created = await client.ask(CreateAclsRequest(creations=[creation(), creation("x")]), 3)
            deleted = await client.ask(ALL, 3)
            for each in [*created.results, *deleted.filter_results]:
                assert each.error_code == ErrorCode.SECURITY_DISABLED
                assert each.error_message == "No Authorizer is configured."
            assert (len(created.results), len(deleted.filter_results)) == (2, 1)

    asyncio.run(run())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rules_are_made_listed_and_removed(tmp_path: Path, version: int) -> None:
    async def run() -> None:
        async with lone_broker(tmp_path, **LONE) as broker, await broker.client() as client:
            wanted = [creation(), creation("ord", resource_pattern_type=4), creation("a/b", resource_type=3)]
            created = await client.ask(CreateAclsRequest(creations=[*wanted, creation()]), version)
            assert [each.error_code for each in created.results] == [0] * 4
            assert await listed(client, version) == [("a/b", 1), ("ord", 1), ("orders", 1)]
            assert await listed(client, version, resource_type_filter=99) == []
            assert await listed(
                client, version, resource_type_filter=2, resource_name_filter="orders", pattern_type_filter=2
            ) == [("ord", 1), ("orders", 1)]
            node = broker.node
            assert (
                node.authorizer.rules.decide("User:ana", "1.2.3.4", Operation.READ, *ORDERS[:2]).rule == READ
            )
            assert (await node.tree.get("/kafka-acl/Topic/orders")).version == 0
            assert (
                await node.tree.children(CHANGES[PatternType.LITERAL]) == []
            )  # nobody else is there to hear
            deleted = await client.ask(ALL, version)
            assert len(deleted.filter_results[0].matching_acls) == 3
            assert await listed(client, version) == []
            assert await node.tree.children("/kafka-acl/Topic") == []

    asyncio.run(run())


def test_rules_last(tmp_path: Path) -> None:
    async def run() -> None:
        async with lone_broker(tmp_path, **LONE) as broker, await broker.client() as client:
            await client.ask(CreateAclsRequest(creations=[creation(), creation("a/b", resource_type=3)]), 3)
        async with lone_broker(tmp_path, **LONE) as broker, await broker.client() as client:
            assert await listed(client) == [("a/b", 1), ("orders", 1)]
            assert set(broker.node.authorizer.rules) == {
                (ORDERS, (READ,)),
                (Pattern(ResourceType.GROUP, "a/b"), (READ,)),
            }

    asyncio.run(run())


def test_thousands_of_rules_in_one_request(tmp_path: Path) -> None:
    """In portions: the law of this room fails on a step that is too long, and others are answered meanwhile."""

    async def run() -> None:
        async with (
            lone_broker(tmp_path, **LONE) as broker,
            await broker.client() as client,
            await broker.client() as other,
        ):
            many = [creation(f"topic-{number % 500}", host=f"10.0.0.{number}") for number in range(5000)]
            client.send(CreateAclsRequest(creations=many), 3)
            while not broker.node.image.acls:
                await listed(other)
            created = await client.receive(CreateAclsRequest(), 3)
            assert [each.error_code for each in created.results] == [0] * 5000
            assert sum(count for _, count in await listed(client)) == 5000
            one = DeleteAclsFilter(
                **EVERYTHING | {"resource_name_filter": "topic-0", "pattern_type_filter": 2}
            )
            others_ = [
                DeleteAclsFilter(**EVERYTHING | {"host_filter": f"10.0.0.{number}"}) for number in range(600)
            ]
            deleted = await client.ask(DeleteAclsRequest(filters=[one, *others_]), 3)
            counts = [len(each.matching_acls) for each in deleted.filter_results]
            assert counts[0] == 10
            assert sum(counts[1:]) in (
                598,
                599,
                600,
            )  # the next portion does not see what the first has removed
            assert sum(count for _, count in await listed(client)) == 5000 - 600 - 8

    asyncio.run(run())


def test_a_request_does_not_match_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "MAX_MATCHES", 25)

    async def run() -> None:
        async with lone_broker(tmp_path, **LONE) as broker, await broker.client() as client:
            await client.ask(
                CreateAclsRequest(creations=[creation(f"topic-{number}") for number in range(10)]), 3
            )
            answer = await client.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)] * 4), 3)
            codes = [each.error_code for each in answer.filter_results]
            assert codes == [0, 0, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
            assert "send fewer at a time" in answer.filter_results[2].error_message

    asyncio.run(run())


GARBAGE = (
    b'{"version":1,"acls":[{"principal":"User:ana","permissionType":"Deny","host":"*","operation":"Fly"}]}'
)


def test_what_cannot_be_read_is_kept_reported_and_denied(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with lone_broker(tmp_path, **LONE) as broker:
            tree: MetadataTree = broker.node.tree
            await tree.create("/kafka-acl/Topic/orders", GARBAGE)
            await tree.create("/kafka-acl/Planet", b"")
            await tree.create("/kafka-acl/Planet/mars", b"x")
        caplog.set_level(logging.WARNING)
        everybody = LONE | {"allow_everyone_if_no_acl_found": "true"}
        async with lone_broker(tmp_path, **everybody) as broker, await broker.client() as client:
            rules = broker.node.authorizer.rules
            assert not rules.decide("User:ana", "*", Operation.READ, ResourceType.TOPIC, "orders").is_allowed
            assert rules.decide("User:ana", "*", Operation.READ, ResourceType.TOPIC, "else").is_allowed
            assert "/kafka-acl/Topic/orders cannot be read" in caplog.text
            assert (
                "/kafka-acl/Planet/mars is not the node of access rules; it is left as it is" in caplog.text
            )
            assert await listed(client) == []
            (refused,) = (await client.ask(CreateAclsRequest(creations=[creation()]), 3)).results
            assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert "cannot be read" in refused.error_message
            await client.ask(ALL, 3)
            assert (await broker.node.tree.get("/kafka-acl/Topic/orders")).data == GARBAGE
            assert (await broker.node.tree.get("/kafka-acl/Planet/mars")).data == b"x"

    asyncio.run(run())


async def make(cluster: SimulatedCluster, address: Any, *creations: AclCreation) -> list[int]:
    request = CreateAclsRequest(creations=creations)
    answer = await cluster.client.ask(address, request, CreateAclsResponse, 3, answer_seconds=20)
    return [each.error_code for each in answer.results]


def rules_of(cluster: SimulatedCluster) -> list[dict[Pattern, tuple[Rule, ...]]]:
    """At each broker that is there, as its authorizer has them."""
    return [dict(node_of(each).authorizer.rules) for each in cluster.machines if each.node is not None]


async def until_all_have(cluster: SimulatedCluster, wanted: dict[Pattern, tuple[Rule, ...]]) -> None:
    await cluster.until(lambda: all(rules == wanted for rules in rules_of(cluster)))
    kept = [node_of(each).image.acls for each in cluster.machines if each.node is not None]
    assert all(each == wanted for each in kept)


def test_a_rule_made_at_one_broker_is_in_force_at_all_and_after_restarts() -> None:
    prefixed = Pattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED)
    slashed = Pattern(ResourceType.GROUP, "a/b")

    async def main(cluster: SimulatedCluster) -> None:
        first, second = others(cluster, cluster.controller)
        made = await make(
            cluster,
            first.address,
            creation(),
            creation("ord", resource_pattern_type=4),
            creation("a/b", resource_type=3),
        )
        assert made == [0, 0, 0]
        await until_all_have(cluster, {ORDERS: (READ,), prefixed: (READ,), slashed: (READ,)})
        second.kill()
        one = DeleteAclsFilter(**EVERYTHING | {"resource_name_filter": "ord"})
        answer = await cluster.client.ask(
            first.address, DeleteAclsRequest(filters=[one]), DeleteAclsResponse, 3, answer_seconds=20
        )
        assert len(answer.filter_results[0].matching_acls) == 1
        second.start()
        cluster.controller.kill()
        await cluster.until(lambda: cluster.controllers == 1)
        await until_all_have(cluster, {ORDERS: (READ,), slashed: (READ,)})

    in_cluster(main, options=ON)


def test_what_others_write_into_the_tree_is_followed() -> None:
    """Kafka's brokers and tools; and somebody whose hand slips."""
    node = b'{"acls":[{"principal":"User:ana","permissionType":"Allow","host":"*","operation":"Read"}],"version":1}'

    async def main(cluster: SimulatedCluster) -> None:
        machine = cluster.controller
        tree = node_of(machine).tree
        await cluster.on(machine, tree.create("/kafka-acl/Topic/orders", node))
        await until_all_have(cluster, {ORDERS: (READ,)})
        await cluster.on(machine, tree.set("/kafka-acl/Topic/orders", GARBAGE))
        await cluster.until(
            lambda: all(node_of(each).image.acl_faults.keys() == {ORDERS} for each in cluster.machines)
        )
        for rules in rules_of(cluster):
            assert [rule.permission for rule in rules[ORDERS]] == [Permission.DENY]
        await cluster.on(machine, tree.set("/kafka-acl/Topic/orders", node))
        await until_all_have(cluster, {ORDERS: (READ,)})
        await cluster.on(machine, tree.delete("/kafka-acl/Topic/orders"))
        await until_all_have(cluster, {})

    in_cluster(main, options=ON)


def test_a_rule_that_the_controller_has_not_heard_of_is_not_lost() -> None:
    """A Kafka broker writes at the same moment: the node's version tells."""

    async def main(cluster: SimulatedCluster) -> None:
        machine = cluster.controller
        assert await make(cluster, machine.address, creation()) == [0]
        node = node_of(machine)
        both = (
            b'{"acls":[{"principal":"User:ana","permissionType":"Allow","host":"*","operation":"Read"},'
            b'{"principal":"User:eve","permissionType":"Deny","host":"*","operation":"All"}],"version":1}'
        )
        deny = Rule("User:eve", "*", Operation.ALL, Permission.DENY)

        async def at_once() -> None:
            await node.tree.set("/kafka-acl/Topic/orders", both)
            results = await acls.create(node, [creation(operation=Operation.WRITE)])
            assert [each.error_code for each in results] == [0]

        await cluster.on(machine, at_once())
        await until_all_have(cluster, {ORDERS: (READ, deny, READ._replace(operation=Operation.WRITE))})

    in_cluster(main, options=ON)


def test_a_rule_that_changes_while_a_broker_starts_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: SimulatedCluster) -> None:
        machine = others(cluster, cluster.controller)[0]
        assert await make(cluster, cluster.controller.address, creation(), creation("gone")) == [0, 0]
        machine.kill()
        load_image = serving.load_image

        async def load_and_change(tree: MetadataTree, **more: Any) -> Any:
            image = await load_image(tree, **more)
            await tree.delete("/kafka-acl/Topic/gone")
            await tree.create("/kafka-acl/Topic/late", encode_rules([READ]))
            return image

        monkeypatch.setattr(serving, "load_image", load_and_change)
        machine.start()
        late = ORDERS._replace(name="late")
        await cluster.until(lambda: cluster.cluster.is_whole)
        await until_all_have(cluster, {ORDERS: (READ,), late: (READ,)})

    in_cluster(main, options=ON)


def test_notifications_of_changed_rules_go_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "LOOK_SECONDS", 2.0)
    monkeypatch.setattr(notifications, "MAX_AGE_SECONDS", 5.0)

    async def main(cluster: SimulatedCluster) -> None:
        machine = cluster.controller
        made = await make(cluster, machine.address, creation(), creation("ord", resource_pattern_type=4))
        assert made == [0, 0]

        async def left() -> list[list[str]]:
            return [await node_of(machine).tree.children(root) for root in CHANGES.values()]

        assert await cluster.on(machine, left()) == [["acl_changes_0000000000"]] * 2
        await asyncio.sleep(12.0)
        assert await cluster.on(machine, left()) == [[], []]

    in_cluster(main, options=ON)
