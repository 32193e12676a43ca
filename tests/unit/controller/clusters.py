"""Small clusters for the tests of the controller's decisions."""

from typing import Any

from penstock.controller.decision import Decision
from penstock.metadata.image import BrokerRegistration, ClusterImage, PartitionRegistration, TopicCreated
from penstock.model.endpoints import Endpoint

ORDERS_ID = bytes([1] * 16)


def broker(id: int, *, epoch: int = 10) -> BrokerRegistration:
    return BrokerRegistration(
        id, {"PLAINTEXT": Endpoint("PLAINTEXT", f"host-{id}", 9090 + id)}, f"rack-{id}", epoch
    )


def cluster(*partitions: PartitionRegistration, brokers: tuple[int, ...] = (1, 2, 3)) -> ClusterImage:
    """Brokers with the epoch 10 and a topic `orders` of these partitions, under the controller's epoch 4."""
    image = ClusterImage()
    image.set_controller(1, epoch=4)
    for id in brokers:
        image.add_broker(broker(id))
    image.apply(TopicCreated("orders", ORDERS_ID, partitions))
    return image


def after(image: ClusterImage, decision: Decision[Any]) -> list[PartitionRegistration]:
    """The partitions of `orders` once the decision is applied."""
    image.apply_all(decision.changes)
    return image.topics["orders"].partitions
