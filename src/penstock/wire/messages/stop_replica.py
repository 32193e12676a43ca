# Written by hand from the schemas of Apache Kafka 3.9: kio, from which the others come, has dropped this message.
# ruff: noqa: RUF023
"""StopReplica, API key 5, versions 3 to 4."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.wire.schema import Message, Struct


class StopReplicaPartitionState(Struct):
    __slots__ = (
        "partition_index",
        "leader_epoch",
        "delete_partition",
    )
    VERSIONS = (3, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("partition_index", "int32", (3, 4), None, None, 0, None),
        ("leader_epoch", "int32", (3, 4), None, None, -1, None),
        ("delete_partition", "bool", (3, 4), None, None, False, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = -1,
        delete_partition: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.leader_epoch = leader_epoch
        self.delete_partition = delete_partition


class StopReplicaTopicState(Struct):
    __slots__ = (
        "topic_name",
        "partition_states",
    )
    VERSIONS = (3, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("topic_name", "string", (3, 4), None, None, "", None),
        ("partition_states", "[]struct", (3, 4), None, None, (), StopReplicaPartitionState),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_states: Sequence[StopReplicaPartitionState] = (),
    ) -> None:
        self.topic_name = topic_name
        self.partition_states = partition_states


class StopReplicaRequest(Message):
    __slots__ = (
        "controller_id",
        "is_kraft_controller",
        "controller_epoch",
        "broker_epoch",
        "topic_states",
    )
    API_KEY = 5
    VERSIONS = (3, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("controller_id", "int32", (3, 4), None, None, 0, None),
        ("is_kraft_controller", "bool", (4, 4), None, None, False, None),
        ("controller_epoch", "int32", (3, 4), None, None, 0, None),
        ("broker_epoch", "int64", (3, 4), None, None, -1, None),
        ("topic_states", "[]struct", (3, 4), None, None, (), StopReplicaTopicState),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        topic_states: Sequence[StopReplicaTopicState] = (),
    ) -> None:
        self.controller_id = controller_id
        self.is_kraft_controller = is_kraft_controller
        self.controller_epoch = controller_epoch
        self.broker_epoch = broker_epoch
        self.topic_states = topic_states


class StopReplicaPartitionError(Struct):
    __slots__ = (
        "topic_name",
        "partition_index",
        "error_code",
    )
    VERSIONS = (3, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("topic_name", "string", (3, 4), None, None, "", None),
        ("partition_index", "int32", (3, 4), None, None, 0, None),
        ("error_code", "int16", (3, 4), None, None, 0, None),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index
        self.error_code = error_code


class StopReplicaResponse(Message):
    __slots__ = (
        "error_code",
        "partition_errors",
    )
    API_KEY = 5
    VERSIONS = (3, 4)
    FLEXIBLE_FROM = 3
    FIELDS = (
        ("error_code", "int16", (3, 4), None, None, 0, None),
        ("partition_errors", "[]struct", (3, 4), None, None, (), StopReplicaPartitionError),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: Sequence[StopReplicaPartitionError] = (),
    ) -> None:
        self.error_code = error_code
        self.partition_errors = partition_errors
