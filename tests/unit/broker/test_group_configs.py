"""Configs of groups and of client metrics in a cluster: changed by the controller, in force on every broker."""

from asyncio import sleep

from penstock.model.errors import ErrorCode
from penstock.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from penstock.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.unit.broker.simulated_cluster import SimulatedCluster

GROUP, CLIENT_METRICS = 32, 16
SET, DELETE = 0, 1


async def alter(
    cluster: SimulatedCluster, kind: int, name: str, *operations: tuple[str, int, str | None]
) -> int:
    configs = [AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in operations]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    asked = next(each for each in cluster.machines if each is not cluster.controller)  # which passes it on
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = await cluster.client.ask(asked.address, request, IncrementalAlterConfigsResponse, 1)
    return int(answer.responses[0].error_code)


async def values(cluster: SimulatedCluster, kind: int, name: str, key: str) -> set[str | None]:
    """What all brokers say of one config."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
    found = set()
    for machine in cluster.machines:
        request = DescribeConfigsRequest(resources=[resource])
        answer = await cluster.client.ask(machine.address, request, DescribeConfigsResponse, 4)
        found.add(answer.results[0].configs[0].value)
    return found


async def listed(cluster: SimulatedCluster, kind: int) -> list[list[str]]:
    found = []
    for machine in cluster.machines:
        request = ListConfigResourcesRequest(resource_types=[kind])
        answer = await cluster.client.ask(machine.address, request, ListConfigResourcesResponse, 1)
        found.append([resource.resource_name for resource in answer.config_resources])
    return found


def known(cluster: SimulatedCluster, group: str) -> list[dict[str, str] | None]:
    """What each broker's image holds for a group."""
    nodes = [machine.node for machine in cluster.machines if machine.node is not None]
    return [node.image.configs.get("groups", {}).get(group) for node in nodes]


def subscriptions(cluster: SimulatedCluster) -> list[list[str]]:
    nodes = [machine.node for machine in cluster.machines if machine.node is not None]
    return [list(node.image.configs.get("client-metrics", {})) for node in nodes]


def test_a_groups_config_is_in_force_at_its_coordinator_and_known_to_all() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        heartbeat = ConsumerGroupHeartbeatRequest(
            group_id="a/b", member_id="m1", member_epoch=0, rebalance_timeout_ms=10_000,
            subscribed_topic_names=["orders"], topic_partitions=[],
        )  # fmt: skip
        key = "consumer.heartbeat.interval.ms"
        assert await alter(cluster, GROUP, "a/b", (key, SET, "9000")) == ErrorCode.NONE
        assert await alter(cluster, GROUP, "a/b", (key, SET, "1")) == ErrorCode.INVALID_CONFIG
        await cluster.until(lambda: known(cluster, "a/b") == [{key: "9000"}] * 3)
        assert await values(cluster, GROUP, "a/b", key) == {"9000"}
        assert await values(cluster, GROUP, "other", key) == {"5000"}
        assert await listed(cluster, GROUP) == [["a/b"]] * 3
        while True:
            answer = await cluster.client.ask_coordinator(
                0, "a/b", heartbeat, ConsumerGroupHeartbeatResponse, 1
            )
            if answer.error_code == ErrorCode.NONE:
                break
            cluster.client.forget_coordinator(0, "a/b")
            await sleep(0.1)
        assert answer.heartbeat_interval_ms == 9000
        assert await alter(cluster, GROUP, "a/b", (key, DELETE, None)) == ErrorCode.NONE
        await cluster.until(lambda: known(cluster, "a/b") == [None] * 3)  # its node is gone
        assert await listed(cluster, GROUP) == [[]] * 3

    SimulatedCluster().run(main)


def test_every_broker_gives_a_client_the_same_subscription() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        settings = (("metrics", SET, "a.,b."), ("interval.ms", SET, "1000"))
        assert await alter(cluster, CLIENT_METRICS, "all", *settings) == ErrorCode.NONE
        await cluster.until(lambda: subscriptions(cluster) == [["all"]] * 3)
        told = set()
        for machine in cluster.machines:
            request = GetTelemetrySubscriptionsRequest(client_instance_id=b"c" * 16)
            answer = await cluster.client.ask(machine.address, request, GetTelemetrySubscriptionsResponse, 0)
            told.add((answer.subscription_id, answer.push_interval_ms, *answer.requested_metrics))
        assert len(told) == 1
        assert told.pop()[1:] == (1000, "a.", "b.")

    SimulatedCluster().run(main)
