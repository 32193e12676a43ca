# Written by hand from the schemas of Apache Kafka 3.9: kio, from which the others come, has dropped this message.
# ruff: noqa: RUF023
"""ControlledShutdown, API key 7, versions 0 to 3."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.wire.schema import Message, Struct


class ControlledShutdownRequest(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
    )
    API_KEY = 7
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("broker_id", "int32", (0, 3), None, None, 0, None),
        ("broker_epoch", "int64", (2, 3), None, None, -1, None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class RemainingPartition(Struct):
    __slots__ = (
        "topic_name",
        "partition_index",
    )
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("topic_name", "string", (0, 3), None, None, "", None),
        ("partition_index", "int32", (0, 3), None, None, 0, None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class ControlledShutdownResponse(Message):
    __slots__ = (
        "error_code",
        "remaining_partitions",
    )
    API_KEY = 7
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("error_code", "int16", (0, 3), None, None, 0, None),
        ("remaining_partitions", "[]struct", (0, 3), None, None, (), RemainingPartition),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        remaining_partitions: Sequence[RemainingPartition] = (),
    ) -> None:
        self.error_code = error_code
        self.remaining_partitions = remaining_partitions
