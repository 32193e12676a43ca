"""The order in which Java's HashMap lists its keys: Kafka's tools print some maps so, and scripts have learnt it."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from penstock.model.ids import TopicPartition

K = TypeVar("K")

INITIAL_CAPACITY = 16


def java_hash(text: str) -> int:
    """String.hashCode, as an unsigned 32-bit number."""
    value = 0
    units = text.encode("utf-16-be")
    for position in range(0, len(units), 2):
        value = (31 * value + units[position] * 256 + units[position + 1]) & 0xFFFFFFFF
    return value


def in_hash_map_order(keys: Iterable[str], *, is_sized: bool = False) -> list[str]:
    """As a HashMap lists them that was filled in the given order (long chains, which become trees, aside). `is_sized`: it was
    told before how many would come, and has the least power of two for so many."""
    found = list(keys)
    capacity = 1 << max(len(found) - 1, 0).bit_length() if is_sized else INITIAL_CAPACITY
    return _by_bucket(found, java_hash, capacity)


def partitions_in_hash_map_order(keys: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The same where the keys are topic partitions."""
    return _by_bucket(list(keys), _partition_hash)


def _partition_hash(partition: TopicPartition) -> int:
    return (31 * (31 + partition.partition) + java_hash(partition.topic)) & 0xFFFFFFFF


def _by_bucket(keys: list[K], hash_code: Callable[[K], int], capacity: int = INITIAL_CAPACITY) -> list[K]:
    while len(keys) > capacity * 3 / 4:
        capacity *= 2

    def bucket(key: K) -> int:
        value = hash_code(key)
        return (value ^ value >> 16) & capacity - 1

    return sorted(keys, key=bucket)
