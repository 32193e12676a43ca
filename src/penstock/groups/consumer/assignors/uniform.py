"""The uniform assignor: loads that differ by one at most where subscriptions allow it, and few moves.

All members subscribe to the same topics: each may have ⌊partitions / members⌋, and as many as there are left over may have
one more; those who have one more already come first. What is above that is taken away, what is free goes to who is below.

Subscriptions differ: what a member has and still subscribes to stays; free partitions go to the least loaded subscriber,
topics with few subscribers for their size first; then partitions move, topic by topic, from the most to the least loaded
subscriber of a topic while that helps by two or more. As in Kafka this ends after a number of rounds, balanced or not.
"""

from collections.abc import Mapping
from heapq import heapify, heapreplace
from typing import Final

from penstock.groups.consumer.assignors.spec import MemberSpec

ROUNDS_MAX: Final = 16

TopicIdPartition = tuple[bytes, int]
"""Topic id and partition."""


def assign_uniform(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> dict[str, dict[bytes, frozenset[int]]]:
    names = sorted(members)
    held = _kept(names, members, partition_counts)
    if len({members[name].topic_ids for name in names}) > 1:
        _assign_mixed(names, members, partition_counts, held)
    elif names:
        _assign_alike(names, partition_counts, held)
    return {name: _by_topic(held[name]) for name in names}


def _kept(
    names: list[str], members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> dict[str, list[TopicIdPartition]]:
    """What each has so far and may keep: the topic is there and subscribed to, and nobody has it twice."""
    taken: set[TopicIdPartition] = set()
    held: dict[str, list[TopicIdPartition]] = {}
    for name in names:
        spec = members[name]
        held[name] = mine = []
        for topic_id in sorted(spec.target.keys() & spec.topic_ids):
            for partition in sorted(spec.target[topic_id]):
                if partition < partition_counts[topic_id] and (topic_id, partition) not in taken:
                    taken.add((topic_id, partition))
                    mine.append((topic_id, partition))
    return held


def _free(
    partition_counts: Mapping[bytes, int], held: Mapping[str, list[TopicIdPartition]]
) -> list[TopicIdPartition]:
    taken = {partition for partitions in held.values() for partition in partitions}
    every = ((topic, index) for topic in sorted(partition_counts) for index in range(partition_counts[topic]))
    return [partition for partition in every if partition not in taken]


def _by_topic(partitions: list[TopicIdPartition]) -> dict[bytes, frozenset[int]]:
    indexes: dict[bytes, set[int]] = {}
    for topic_id, index in partitions:
        indexes.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(of_topic) for topic_id, of_topic in indexes.items()}


def _assign_alike(
    names: list[str], partition_counts: Mapping[bytes, int], held: dict[str, list[TopicIdPartition]]
) -> None:
    share, extra = divmod(sum(partition_counts.values()), len(names))
    richest_first = sorted(names, key=lambda name: (-len(held[name]), name))
    quotas = {name: share + (rank < extra) for rank, name in enumerate(richest_first)}
    for name in names:
        del held[name][quotas[name] :]
    free = iter(_free(partition_counts, held))
    for name in names:
        while len(held[name]) < quotas[name]:
            held[name].append(next(free))


def _assign_mixed(
    names: list[str],
    members: Mapping[str, MemberSpec],
    partition_counts: Mapping[bytes, int],
    held: dict[str, list[TopicIdPartition]],
) -> None:
    subscribers: dict[bytes, list[str]] = {}
    for name in names:
        for topic_id in members[name].topic_ids:
            subscribers.setdefault(topic_id, []).append(name)
    tightest_first = sorted(
        subscribers,
        key=lambda topic: (
            -partition_counts[topic] / len(subscribers[topic]),
            len(subscribers[topic]),
            topic,
        ),
    )
    free: dict[bytes, list[int]] = {}
    for topic_id, partition in _free(partition_counts, held):
        free.setdefault(topic_id, []).append(partition)
    for topic_id in tightest_first:
        _hand_out(topic_id, free.get(topic_id, []), subscribers[topic_id], held)
    shared = [topic_id for topic_id in tightest_first if len(subscribers[topic_id]) > 1]
    for _ in range(ROUNDS_MAX):
        moves = [_balance(topic_id, subscribers[topic_id], held) for topic_id in shared]
        if not any(moves):
            break


def _hand_out(
    topic_id: bytes, partitions: list[int], subscribers: list[str], held: dict[str, list[TopicIdPartition]]
) -> None:
    loads = [(len(held[name]), name) for name in subscribers]
    heapify(loads)
    for partition in partitions:
        load, name = loads[0]
        held[name].append((topic_id, partition))
        heapreplace(loads, (load + 1, name))


def _balance(topic_id: bytes, subscribers: list[str], held: dict[str, list[TopicIdPartition]]) -> bool:
    """Move partitions of one topic; whether any was moved."""
    loads = {name: len(held[name]) for name in subscribers}
    if max(loads.values()) - min(loads.values()) < 2:
        return False
    movable = {
        name: [partition for partition in held[name] if partition[0] == topic_id] for name in subscribers
    }
    is_moved = False
    while True:
        givers = [name for name in subscribers if movable[name]]
        if not givers:
            return is_moved
        giver = max(givers, key=lambda name: (loads[name], name))
        taker = min(subscribers, key=lambda name: (loads[name], name))
        if loads[giver] - loads[taker] < 2:
            return is_moved
        partition = movable[giver].pop()
        held[giver].remove(partition)
        held[taker].append(partition)
        movable[taker].append(partition)
        loads[giver] -= 1
        loads[taker] += 1
        is_moved = True
