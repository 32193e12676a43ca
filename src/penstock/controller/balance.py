"""Returns leadership to preferred replicas, when too many partitions of a broker are led by others."""

from collections.abc import Container, Iterable

from penstock.controller.decision import Decision, change_state
from penstock.controller.elections import alive_for, elect_preferred
from penstock.metadata.image import ClusterImage, PartitionRegistration
from penstock.model.ids import TopicPartition


def imbalanced(
    image: ClusterImage, *, threshold_percent: int, leaving: Container[int] = ()
) -> list[TopicPartition]:
    """For each broker, of the partitions that prefer it (it is the first of their replicas), those that others lead; all of them
    that it could lead now, if they are more than `threshold_percent` (leader.imbalance.per.broker.percentage)."""
    preferring: dict[int, int] = {}
    elsewhere: dict[int, list[TopicPartition]] = {}
    for name, topic in image.topics.items():
        for index, partition in enumerate(topic.partitions):
            preferred = partition.replicas[0]
            preferring[preferred] = preferring.get(preferred, 0) + 1
            if partition.leader != preferred:
                elsewhere.setdefault(preferred, []).append(TopicPartition(name, index))
    found = []
    for broker_id, partitions in elsewhere.items():
        if len(partitions) * 100 > threshold_percent * preferring[broker_id]:
            found += [which for which in partitions if _preferred(image, which, leaving) is not None]
    return found


def preferred_leaders(
    image: ClusterImage, partitions: Iterable[tuple[str, int]], *, leaving: Container[int] = ()
) -> Decision[None]:
    """Those whose preferred leader cannot lead, or leads already, stay as they are."""
    decision: Decision[None] = Decision([], [], [])
    for name, index in dict.fromkeys(partitions):
        elected = _preferred(image, (name, index), leaving)
        if elected is not None:
            change_state(decision, image, name, index, elected)
    return decision


def _preferred(
    image: ClusterImage, which: tuple[str, int], leaving: Container[int]
) -> PartitionRegistration | None:
    name, index = which
    partition = image.partition(name, index)
    if partition is None or partition.leader == partition.replicas[0]:
        return None
    able = alive_for(image, name, index, image.brokers)
    return elect_preferred(partition, able, leaving)
