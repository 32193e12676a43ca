"""A broker is about to stop: other brokers take over its leaderships first."""

from collections.abc import Collection, Set

from penstock.controller.decision import Decision, change_state
from penstock.controller.elections import alive_for, elect, led_by
from penstock.controller.standing import Standing
from penstock.metadata.image import NO_BROKER_EPOCH, NO_LEADER, ClusterImage
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.controlled_shutdown import RemainingPartition


def controlled_shutdown(
    image: ClusterImage,
    broker_id: int,
    shutting_down: Set[int],
    *,
    broker_epoch: int = NO_BROKER_EPOCH,
    silent: Collection[int] = (),
) -> Decision[RemainingPartition]:
    """What it leads is led by others, and it leaves every ISR in which somebody stays; the results are the partitions that
    it still leads, as no other member of the ISR is there and stays (`shutting_down` do not), but another replica is, and may
    catch up; and those where whoever would stay in the ISR is `silent`, and may have lost its power. The broker waits and asks
    again while there are any; where nobody could take over there is nothing to wait for.

    The caller keeps `shutting_down`, adds the broker after this decision and takes it out when the broker is gone: until then it
    is neither elected nor let into an ISR.
    """
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker_id} does not exist.")
    if broker_epoch != NO_BROKER_EPOCH and broker_epoch < broker.epoch:
        raise ApiError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {broker_id} asks with the epoch {broker_epoch}, but is registered with {broker.epoch}.",
        )
    leaving = shutting_down | {broker_id}
    alive = image.brokers.keys()
    standing = Standing(silent=silent)
    decision: Decision[RemainingPartition] = Decision([], [], [])
    for name, topic in image.topics.items():
        for index, partition in enumerate(topic.partitions):
            if broker_id not in partition.isr or len(partition.replicas) == 1:
                continue
            if partition.leader == broker_id:
                able = alive_for(image, name, index, alive)
                changed = elect(partition, able, leaving=leaving, standing=standing)
                if changed is None:
                    if any(id in able and id not in leaving for id in partition.replicas):
                        decision.results.append(RemainingPartition(topic_name=name, partition_index=index))
                    continue
            elif partition.leader == NO_LEADER:
                continue
            else:
                isr = tuple(id for id in partition.isr if id != broker_id)
                if all(id in silent or id not in alive for id in isr):
                    decision.results.append(RemainingPartition(topic_name=name, partition_index=index))
                    continue
                changed = led_by(partition, partition.leader, isr)
            change_state(decision, image, name, index, changed)
    return decision
