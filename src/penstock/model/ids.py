"""Ids as the wire has them: 16 raw bytes; as people see them: 22 characters of URL-safe base64 without padding."""

import base64
import binascii
from collections.abc import Iterable
from typing import NamedTuple

NO_ID = bytes(16)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions by topic, as requests name them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def id_text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def id_from_text(text: str) -> bytes:
    """The 16 bytes behind Kafka's text form; ValueError when it is not one."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not an id: {text!r}") from error
    if len(raw) != 16:
        raise ValueError(f"not an id of 16 bytes: {text!r}")
    return raw
