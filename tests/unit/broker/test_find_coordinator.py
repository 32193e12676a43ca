"""FindCoordinator in a cluster whose brokers come and go."""

import asyncio
from typing import Any

from penstock.broker.handlers import find_coordinator
from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import CONSUMER_OFFSETS
from penstock.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest


class FakeNode:
    """A cluster of brokers 1 and 2; the only partition of `__consumer_offsets` has a leader, or none."""

    def __init__(self, leader: int) -> None:
        self.image = image.ClusterImage()
        for broker_id in (1, 2):
            self.image.add_broker(image.BrokerRegistration(broker_id, {}))
        placed = image.PartitionRegistration((1, 2, 3), (1, 2, 3), leader)
        self.image.apply(image.TopicCreated(CONSUMER_OFFSETS, bytes(15) + b"\x01", (placed,)))
        self.groups = self
        self.addresses = self
        self.refusal: ApiError | None = None

    async def ensure_topic(self) -> image.Topic | None:
        if self.refusal is not None:
            raise self.refusal
        return self.image.topic(CONSUMER_OFFSETS)

    def for_clients(self, connection: object) -> list[tuple[int, str, int, str | None]]:
        return [(broker_id, f"host-{broker_id}", 9092, None) for broker_id in self.image.brokers]


class FakeCall:
    api_version = 4
    connection = None


def find(node: Any) -> Coordinator:
    call: Any = FakeCall()
    request = FindCoordinatorRequest(coordinator_keys=["g"])
    (found,) = asyncio.run(find_coordinator.handle(node, call, request)).coordinators
    return found


def test_the_leader_of_the_partition_coordinates_wherever_one_asks() -> None:
    found = find(FakeNode(leader=2))
    assert (found.error_code, found.node_id, found.host) == (ErrorCode.NONE, 2, "host-2")


def test_a_leader_that_is_not_alive_coordinates_nothing() -> None:
    assert find(FakeNode(leader=3)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_partition_without_a_leader_has_no_coordinator() -> None:
    found = find(FakeNode(leader=image.NO_LEADER))
    assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


def test_a_topic_that_cannot_be_made_is_told_with_its_reason() -> None:
    node = FakeNode(leader=1)
    node.refusal = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "3 replicas need 3 brokers")
    found = find(node)
    assert (found.error_code, found.error_message) == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "3 replicas need 3 brokers",
    )
