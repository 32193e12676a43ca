"""The order in which Java's HashMap lists its keys: Kafka's tools print some maps so, and scripts have learnt it."""

INITIAL_CAPACITY = 16


def java_hash(text: str) -> int:
    """String.hashCode, as an unsigned 32-bit number."""
    value = 0
    units = text.encode("utf-16-be")
    for position in range(0, len(units), 2):
        value = (31 * value + units[position] * 256 + units[position + 1]) & 0xFFFFFFFF
    return value


def in_hash_map_order(keys: list[str]) -> list[str]:
    """As a HashMap lists them that was filled in the given order (long chains, which become trees, aside)."""
    capacity = INITIAL_CAPACITY
    while len(keys) > capacity * 3 // 4:
        capacity *= 2

    def bucket(key: str) -> int:
        value = java_hash(key)
        return (value ^ value >> 16) & capacity - 1

    return sorted(keys, key=bucket)
