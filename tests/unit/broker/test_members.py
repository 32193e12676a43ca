"""What a cluster can do by its members, and in which versions they are asked."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from penstock.broker.cluster.members import common_levels, is_penstock
from penstock.broker.cluster.spoken import PAGE, common_version, missing_versions
from penstock.controller.features import FEATURES
from penstock.metadata import znodes
from penstock.metadata.image import BrokerRegistration
from penstock.model.api_keys import ApiKey
from penstock.model.endpoints import Endpoint
from penstock.net.peer_connection import PeerUnavailable
from penstock.wire.apis import APIS
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.unit.broker.simulated_cluster import SimulatedCluster, in_cluster, node_of

# What a broker of Apache Kafka 3.9.1 offers between brokers, and what one of 3.4 did.
KAFKA_3_9 = {
    ApiKey.UPDATE_METADATA: (0, 8), ApiKey.LEADER_AND_ISR: (0, 7), ApiKey.STOP_REPLICA: (0, 4),
    ApiKey.ALTER_PARTITION: (0, 3), ApiKey.CONTROLLED_SHUTDOWN: (0, 3), ApiKey.CREATE_TOPICS: (0, 7),
    ApiKey.FETCH: (0, 17), ApiKey.LIST_OFFSETS: (0, 9), ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.WRITE_TXN_MARKERS: (0, 1),
}  # fmt: skip
KAFKA_3_4 = {
    **KAFKA_3_9,
    ApiKey.FETCH: (0, 14),
    ApiKey.ALTER_PARTITION: (0, 2),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),
}
ADDRESS = Endpoint("PLAINTEXT", "one", 9092, "PLAINTEXT")
OURS = BrokerRegistration(1, {}, features=FEATURES)
KAFKAS = BrokerRegistration(2, {})


def versions(of: Mapping[ApiKey, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    return {int(key): both for key, both in of.items()}


def test_a_cluster_of_ours_has_all_features() -> None:
    assert common_levels([OURS, OURS._replace(id=2)]) == FEATURES


def test_beside_a_broker_of_apache_kafka_no_feature_has_a_level() -> None:
    assert set(common_levels([OURS, KAFKAS]).values()) == {0}


def test_the_lowest_of_the_members_levels_counts() -> None:
    other = OURS._replace(id=2, features={**FEATURES, "transaction.version": 1, "new.version": 3})
    assert common_levels([OURS, other]) == {**FEATURES, "transaction.version": 1}


def test_one_of_ours_that_registered_no_features_yet_has_them() -> None:
    earlier = BrokerRegistration(3, {}, intact_since=17)
    assert is_penstock(earlier)
    assert not is_penstock(KAFKAS)
    assert common_levels([OURS, earlier]) == FEATURES


def test_features_are_in_the_registration_in_kafkas_form() -> None:
    data = znodes.encode_broker(OURS._replace(endpoints={"PLAINTEXT": ADDRESS}), now_ms=1)
    assert b'"transaction.version":{"min_version":1,"max_version":2}' in data
    assert znodes.decode_broker(1, data).features == FEATURES


def test_what_apache_kafka_3_9_knows_is_enough() -> None:
    assert missing_versions(2, versions(KAFKA_3_9)) == []
    assert common_version(2, ApiKey.WRITE_TXN_MARKERS, versions(KAFKA_3_9)) == 1
    assert common_version(2, ApiKey.LIST_OFFSETS, versions(KAFKA_3_9)) == 7


def test_of_an_older_broker_it_is_said_what_is_missing() -> None:
    found = missing_versions(2, versions(KAFKA_3_4))
    assert len(found) == 3
    assert found[1] == (
        "broker 2 knows versions 0–14 of FETCH, this broker 15–17: upgrade the older of the two"
    )


def test_we_serve_everything_that_we_ask() -> None:
    for key, row in PAGE.items():
        assert APIS[int(key)].min_version <= row.highest <= APIS[int(key)].max_version
        assert row.lowest <= row.highest


def test_a_broker_is_asked_for_its_versions_once_for_each_registration() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        await cluster.create("orders")
        one, other = cluster.machines[:2]
        node = node_of(one)
        asked: list[int] = []
        ask: Any = node.peers.ask

        async def note(broker_id: int, request: Any, response: Any, **how: Any) -> Any:
            if isinstance(request, ApiVersionsRequest):
                asked.append(broker_id)
            return await ask(broker_id, request, response, **how)

        node.peers.ask = note  # type: ignore[method-assign]
        node.spoken._known.clear()
        assert await cluster.on(one, node.spoken.version(other.broker_id, ApiKey.FETCH)) == 17
        assert other.broker_id in asked
        asked.clear()
        assert await cluster.on(one, node.spoken.version(other.broker_id, ApiKey.LIST_OFFSETS)) == 7
        assert other.broker_id not in asked
        epoch = node.membership.members.epoch(other.broker_id)
        asked.clear()
        other.kill()
        other.start()
        await cluster.until(lambda: node.membership.members.epoch(other.broker_id) > epoch)
        await cluster.until(lambda: other.node is not None)
        assert await cluster.on(one, node.spoken.version(other.broker_id, ApiKey.FETCH)) == 17
        assert other.broker_id in asked

    in_cluster(main)


def test_a_broker_that_refuses_to_say_its_versions_is_not_asked_for_more() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        one, other = cluster.machines[:2]
        node = node_of(one)

        async def refuse(*_: Any, **__: Any) -> ApiVersionsResponse:
            return ApiVersionsResponse(error_code=35)

        node.peers.ask = refuse  # type: ignore[method-assign]
        node.spoken._known.clear()
        with pytest.raises(PeerUnavailable, match="does not say its versions: UNSUPPORTED_VERSION"):
            await cluster.on(one, node.spoken.version(other.broker_id, ApiKey.FETCH))

    in_cluster(main)


def test_a_member_that_has_less_lowers_the_levels_and_leaves_them_when_it_goes() -> None:
    async def main(cluster: SimulatedCluster) -> None:
        one = cluster.machines[0]
        node = node_of(one)
        members = node.membership.members
        before, levels = members.features
        assert levels == FEATURES
        tree: Any = node.tree
        path = znodes.broker_path(9)
        data = znodes.encode_broker(BrokerRegistration(9, {"PLAINTEXT": ADDRESS}), now_ms=1)
        await cluster.on(one, tree.create(path, data))
        await cluster.until(lambda: members.features[1]["transaction.version"] == 0)
        assert members.features[0] > before
        await cluster.on(one, tree.delete(path))
        await cluster.until(lambda: members.features[1] == FEATURES)
        await asyncio.sleep(0)

    in_cluster(main)
