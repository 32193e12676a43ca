"""Brokers join and leave: which replicas lead then, and which are in sync."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping

from penstock.controller.decision import Decision, change_state
from penstock.controller.elections import alive_for, elect, elect_uncleanly, led_by
from penstock.controller.standing import NOTHING_KNOWN, Standing
from penstock.metadata import znodes
from penstock.metadata.image import (
    NO_LEADER,
    NO_STATE,
    BrokerRegistration,
    ClusterImage,
    PartitionChanged,
    PartitionRegistration,
)
from penstock.metadata.tree import Create, Set
from penstock.metadata.znodes import EpochsSeen
from penstock.model.ids import TopicPartition

IsUncleanAllowed = Callable[[str], bool]


def broker_lost(
    image: ClusterImage,
    broker_ids: Collection[int],
    *,
    is_unclean_allowed: IsUncleanAllowed,
    leaving: Container[int] = (),
    intact: Collection[int] = (),
    returned: Collection[int] = (),
    standing: Standing = NOTHING_KNOWN,
) -> Decision[TopicPartition]:
    """What they led gets other leaders, and they leave every ISR in which somebody stays. The image may still hold them.

    `intact` were started again and have lost nothing: they stay in sync, and may lead, but what they led has to begin a new
    epoch. Else a broker that forgot could be the only one left in a set from which they had to go. `returned` are those of the
    lost that are there again and have lost something.

    Where nobody can lead there is NO_LEADER and the ISR stays as it was: its members, and no others, have all that was
    acknowledged. A broker that is `leaving` is elected only where there is no other, as it still serves.

    The results are partitions that stay as they are for now: who would stay in their ISR has not answered (`Standing`).

    A new controller calls this with `missing_brokers`. The same broker with another epoch was started again: lost first, then
    arrived.
    """
    lost = frozenset(broker_ids)
    gone = lost.difference(returned)
    alive = (image.brokers.keys() | set(intact)) - lost
    decision: Decision[TopicPartition] = Decision([], [], [])
    for name, topic in image.topics.items():
        for index, partition in enumerate(topic.partitions):
            isr = partition.isr
            if partition.leader in lost or partition.leader in intact:
                able = alive_for(image, name, index, alive)
                unclean = is_unclean_allowed(name)
                changed = _led_anew(partition, able, leaving, standing, unclean=unclean, worthless=returned)
                if changed is None and any(id in able for id in isr):
                    decision.results.append(TopicPartition(name, index))
                    if set(isr).isdisjoint(returned):
                        continue
                    isr = tuple(id for id in isr if id not in returned)
                changed = changed or led_by(partition, NO_LEADER, isr, standing.epochs_of(isr))
            elif partition.leader == NO_LEADER or lost.isdisjoint(isr):
                continue
            else:
                leave = lost
                if not gone.isdisjoint(isr) and all(id in standing.silent for id in isr if id not in lost):
                    decision.results.append(TopicPartition(name, index))
                    leave = lost - gone
                    if leave.isdisjoint(isr):
                        continue
                changed = led_by(partition, partition.leader, tuple(id for id in isr if id not in leave))
            change_state(decision, image, name, index, changed)
    return decision


def replicas_failed(
    image: ClusterImage,
    broker_id: int,
    partitions: Iterable[tuple[str, int]],
    *,
    is_unclean_allowed: IsUncleanAllowed,
    leaving: Container[int] = (),
    standing: Standing = NOTHING_KNOWN,
) -> Decision[None]:
    """A log directory of a broker that is alive failed: for its partitions (which the image holds as failed by now) the broker is
    lost."""
    decision: Decision[None] = Decision([], [], [])
    for name, index in partitions:
        partition = image.partition(name, index)
        if partition is None or broker_id not in partition.isr:
            continue
        if partition.leader == broker_id:
            able = set(alive_for(image, name, index, image.brokers.keys())) - {broker_id}
            unclean = is_unclean_allowed(name)
            changed = _led_anew(partition, able, leaving, standing, unclean=unclean, worthless={broker_id})
            epochs = standing.epochs_of(partition.isr)
            changed = changed or led_by(partition, NO_LEADER, partition.isr, epochs)
        elif partition.leader == NO_LEADER:
            continue
        else:
            isr = tuple(id for id in partition.isr if id != broker_id)
            changed = led_by(partition, partition.leader, isr)
        change_state(decision, image, name, index, changed)
    return decision


def broker_arrived(
    image: ClusterImage,
    broker_ids: Collection[int],
    *,
    is_unclean_allowed: IsUncleanAllowed,
    leaving: Container[int] = (),
    standing: Standing = NOTHING_KNOWN,
) -> Decision[TopicPartition]:
    """Partitions without a leader get one, if these brokers (which the image holds by now) make it possible. A new controller
    calls this with all that are there. The results are partitions that wait for more of their ISR (`Standing`)."""
    arrived = frozenset(broker_ids)
    alive = image.brokers.keys()
    decision: Decision[TopicPartition] = Decision([], [], [])
    for name, topic in image.topics.items():
        for index, partition in enumerate(topic.partitions):
            if partition.leader in alive or arrived.isdisjoint(partition.replicas):
                continue
            able = alive_for(image, name, index, alive)
            elected = _led_anew(partition, able, leaving, standing, unclean=is_unclean_allowed(name))
            if elected is not None:
                change_state(decision, image, name, index, elected)
            elif any(id in able for id in partition.isr):
                decision.results.append(TopicPartition(name, index))
    return decision


def led_on_after_unclean_stop(
    image: ClusterImage, is_closed: Callable[[TopicPartition], bool]
) -> Decision[None]:
    """A lone broker is back. Where a log was not closed by a clean stop, it leads on in a new epoch. What the log has lost was
    written in the old one, so a client that was further can see that it was cut (KIP-320). In a cluster the broker counts as
    lost, and its leaders get new epochs by that.
    """
    decision: Decision[None] = Decision([], [], [])
    for name, topic in image.topics.items():
        for index, partition in enumerate(topic.partitions):
            if partition.partition_epoch != NO_STATE and not is_closed(TopicPartition(name, index)):
                change_state(decision, image, name, index, led_by(partition, partition.leader, partition.isr))
    return decision


def partitions_without_state(
    image: ClusterImage, *, existing: Container[str], leaving: Container[int] = ()
) -> Decision[None]:
    """Partitions that were assigned and never got a state (the controller died in between, or a tool of Kafka's wrote the topic's
    node) get their first. `existing` are the paths that the tree has under /brokers/topics.

    No state was ever there, so no record: all replicas are in sync. Kafka leaves a partition without any replica alive as it is;
    here it gets a state without a leader, so that after a controller's start every partition has one.
    """
    decision: Decision[None] = Decision([], [], [])
    for name, topic in image.topics.items():
        parent_exists = znodes.partitions_path(name) in existing
        for index, partition in enumerate(topic.partitions):
            if partition.partition_epoch != NO_STATE:
                parent_exists = True
                continue
            alive = tuple(id for id in partition.replicas if id in image.brokers)
            staying = tuple(id for id in alive if id not in leaving) or alive
            first = partition._replace(
                leader=staying[0] if staying else NO_LEADER,
                isr=staying or partition.replicas,
                leader_epoch=0,
                partition_epoch=0,
            )
            if not parent_exists:
                decision.ops.append(Create(znodes.partitions_path(name)))
                parent_exists = True
            if znodes.partition_path(name, index) not in existing:
                decision.ops.append(Create(znodes.partition_path(name, index)))
            state = znodes.encode_partition_state(first, controller_epoch=image.controller_epoch)
            decision.ops.append(Create(znodes.partition_state_path(name, index), state))
            decision.changes.append(PartitionChanged(name, index, first))
    return decision


def seen_now(image: ClusterImage, before: EpochsSeen, intact: Container[int] = ()) -> EpochsSeen:
    """The registrations in the image, and the last ones of brokers that are gone while an ISR counts on them. `intact` have lost
    nothing since their last one before."""
    last = {broker.id: broker.epoch for broker in image.brokers.values()}
    last.update({id: before.last[id] for id in missing_brokers(image) if id in before.last})
    goes_on = {id for id, epoch in last.items() if id in intact or before.last.get(id) == epoch}
    return EpochsSeen(
        last, {id: before.intact_since.get(id, last[id]) if id in goes_on else last[id] for id in last}
    )


def epochs_seen(seen: EpochsSeen) -> Decision[None]:
    """To be written when everything is that follows from the brokers in the image.

    A broker that was started again may have lost what its disk had not kept, and is still in its ISRs: it has to be declared
    lost, although it is there. If the controller died at the same time, nobody but the tree remembers which
    registration was the last that was acted upon. Kafka's tree does not.
    """
    return Decision([], [Set(znodes.BROKER_EPOCHS, znodes.encode_broker_epochs(seen))], [])


def started_again(image: ClusterImage, seen: Mapping[int, int]) -> set[int]:
    """Of the brokers that are there, those with another epoch than was seen last: lost first, then arrived."""
    return {id for id, broker in image.brokers.items() if seen.get(id) != broker.epoch}


def started_again_intact(seen: Mapping[int, int], found: Mapping[int, BrokerRegistration]) -> frozenset[int]:
    """Of the brokers that are there, those with another epoch than was seen last that have lost nothing since that one."""
    return frozenset(
        id
        for id, broker in found.items()
        if id in seen and broker.epoch != seen[id] and broker.intact_since == seen[id]
    )


def missing_brokers(image: ClusterImage) -> set[int]:
    """Brokers that lead or are in sync somewhere and are not there: what a new controller declares lost."""
    named: set[int] = set()
    for topic in image.topics.values():
        for partition in topic.partitions:
            named.update(partition.isr)
            named.add(partition.leader)
    named.discard(NO_LEADER)
    return named - image.brokers.keys()


def _led_anew(
    partition: PartitionRegistration,
    alive: Collection[int],
    leaving: Container[int],
    standing: Standing,
    *,
    unclean: bool,
    worthless: Container[int] = (),
) -> PartitionRegistration | None:
    """One that is leaving leads only where nobody else can; where that is allowed, anybody at once."""
    return (
        elect(partition, alive, leaving=leaving, standing=standing, worthless=worthless)
        or elect(partition, alive, standing=standing, worthless=worthless)
        or (elect_uncleanly(partition, alive) if unclean else None)
    )
