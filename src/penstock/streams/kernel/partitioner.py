"""Which partition a key belongs to: murmur2, as Kafka's default partitioner takes it."""

from __future__ import annotations

from penstock.streams.functions.murmur import murmur2


def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions
