"""Which replicas a throttle of a reassignment slows down, as Kafka writes it into the topics' configs.

Sources send: `leader.replication.throttled.replicas` names them; destinations fetch: `follower.…` does. Each entry is
`partition:broker`. The rates are configs of the brokers that take part.
"""

from collections.abc import Mapping
from typing import NamedTuple

from penstock.admin.moves.model import Assignment, Reassignment
from penstock.model.ids import TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
REPLICATION_RATES = [LEADER_RATE, FOLLOWER_RATE]
BROKER_THROTTLES = [*REPLICATION_RATES, LOG_DIRS_RATE]
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
TOPIC_THROTTLES = [LEADER_REPLICAS, FOLLOWER_REPLICAS]
EVERY_REPLICA = "*"


class Move(NamedTuple):
    sources: set[int]
    destinations: set[int]


Moves = dict[TopicPartition, Move]


def proposed_moves(
    ongoing: Mapping[TopicPartition, Reassignment], proposed: Assignment, current: Assignment
) -> Moves:
    """All that will be moving: what does already, and what is proposed."""
    moves = {
        partition: Move(set(one.replicas) - set(one.adding), set(one.adding))
        for partition, one in ongoing.items()
    }
    for partition, replicas in proposed.items():
        sources = moves[partition].sources if partition in moves else set(current[partition])
        moves[partition] = Move(sources, set(replicas) - sources)
    return moves


def topic_throttles(moves: Moves) -> dict[str, dict[str, str]]:
    """The configs of each topic."""
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for (topic, index), move in moves.items():
        leaders.setdefault(topic, []).extend(f"{index}:{broker}" for broker in move.sources)
        followers.setdefault(topic, []).extend(f"{index}:{broker}" for broker in move.destinations)
    # In the order of the texts, as Kafka has it.
    return {
        topic: {
            LEADER_REPLICAS: ",".join(sorted(leaders[topic])),
            FOLLOWER_REPLICAS: ",".join(sorted(followers[topic])),
        }
        for topic in sorted(leaders)
    }


def brokers_of(moves: Moves) -> list[int]:
    return sorted({broker for move in moves.values() for broker in move.sources | move.destinations})
