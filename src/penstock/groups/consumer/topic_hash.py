"""The hash of a group's topics: recorded with the group's epoch, so that a change of a topic is noticed, also by a broker
that takes the group over.

Kafka's bytes: XXH3 over, for each topic, a zero byte, the two halves of its id, its name in UTF-16 and the length of it,
the count of its partitions and their numbers, all little-endian; then XXH3 over these hashes in the order of the names. A
topic that is not there counts for nothing. Racks, which Kafka adds behind each partition's number, are left out: a broker
of ours has none yet.
"""

import struct
from collections.abc import Iterable

from penstock.groups.topics import Topics


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    from xxhash import xxh3_64_intdigest  # only brokers that serve such groups need it

    hashes = []
    for name in sorted(names):
        topic_id = topics.topic_id(name)
        if topic_id is not None:
            hashes.append(xxh3_64_intdigest(_topic_bytes(name, topic_id, topics.partition_count(name))))
    if not hashes:
        return 0
    unsigned: int = xxh3_64_intdigest(struct.pack(f"<{len(hashes)}Q", *hashes))
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def _topic_bytes(name: str, topic_id: bytes, partition_count: int) -> bytes:
    text = name.encode("utf-16-le")
    head = b"\0" + topic_id[7::-1] + topic_id[:7:-1] + text
    numbers = struct.pack(
        f"<{partition_count + 2}i", len(text) // 2, partition_count, *range(partition_count)
    )
    return head + numbers
