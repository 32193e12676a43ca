# Written by hand from the schemas of Apache Kafka 3.9: kio, from which the others come, has dropped this message.
# ruff: noqa: RUF023
"""LeaderAndIsr, API key 4, versions 5 to 7."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.wire.schema import ZERO_UUID, Message, Struct


class LeaderAndIsrPartitionState(Struct):
    __slots__ = (
        "partition_index",
        "controller_epoch",
        "leader",
        "leader_epoch",
        "isr",
        "partition_epoch",
        "replicas",
        "adding_replicas",
        "removing_replicas",
        "is_new",
        "leader_recovery_state",
    )
    VERSIONS = (5, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("partition_index", "int32", (5, 7), None, None, 0, None),
        ("controller_epoch", "int32", (5, 7), None, None, 0, None),
        ("leader", "int32", (5, 7), None, None, 0, None),
        ("leader_epoch", "int32", (5, 7), None, None, 0, None),
        ("isr", "[]int32", (5, 7), None, None, (), None),
        ("partition_epoch", "int32", (5, 7), None, None, 0, None),
        ("replicas", "[]int32", (5, 7), None, None, (), None),
        ("adding_replicas", "[]int32", (5, 7), None, None, (), None),
        ("removing_replicas", "[]int32", (5, 7), None, None, (), None),
        ("is_new", "bool", (5, 7), None, None, False, None),
        ("leader_recovery_state", "int8", (6, 7), None, None, 0, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        controller_epoch: int = 0,
        leader: int = 0,
        leader_epoch: int = 0,
        isr: Sequence[int] = (),
        partition_epoch: int = 0,
        replicas: Sequence[int] = (),
        adding_replicas: Sequence[int] = (),
        removing_replicas: Sequence[int] = (),
        is_new: bool = False,
        leader_recovery_state: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.controller_epoch = controller_epoch
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.isr = isr
        self.partition_epoch = partition_epoch
        self.replicas = replicas
        self.adding_replicas = adding_replicas
        self.removing_replicas = removing_replicas
        self.is_new = is_new
        self.leader_recovery_state = leader_recovery_state


class LeaderAndIsrTopicState(Struct):
    __slots__ = (
        "topic_name",
        "topic_id",
        "partition_states",
    )
    VERSIONS = (5, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("topic_name", "string", (5, 7), None, None, "", None),
        ("topic_id", "uuid", (5, 7), None, None, ZERO_UUID, None),
        ("partition_states", "[]struct", (5, 7), None, None, (), LeaderAndIsrPartitionState),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_states: Sequence[LeaderAndIsrPartitionState] = (),
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partition_states = partition_states


class LeaderAndIsrLiveLeader(Struct):
    __slots__ = (
        "broker_id",
        "host_name",
        "port",
    )
    VERSIONS = (5, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("broker_id", "int32", (5, 7), None, None, 0, None),
        ("host_name", "string", (5, 7), None, None, "", None),
        ("port", "int32", (5, 7), None, None, 0, None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host_name: str = "",
        port: int = 0,
    ) -> None:
        self.broker_id = broker_id
        self.host_name = host_name
        self.port = port


class LeaderAndIsrRequest(Message):
    __slots__ = (
        "controller_id",
        "is_kraft_controller",
        "controller_epoch",
        "broker_epoch",
        "type",
        "topic_states",
        "live_leaders",
    )
    API_KEY = 4
    VERSIONS = (5, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("controller_id", "int32", (5, 7), None, None, 0, None),
        ("is_kraft_controller", "bool", (7, 7), None, None, False, None),
        ("controller_epoch", "int32", (5, 7), None, None, 0, None),
        ("broker_epoch", "int64", (5, 7), None, None, -1, None),
        ("type", "int8", (5, 7), None, None, 0, None),
        ("topic_states", "[]struct", (5, 7), None, None, (), LeaderAndIsrTopicState),
        ("live_leaders", "[]struct", (5, 7), None, None, (), LeaderAndIsrLiveLeader),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        type: int = 0,
        topic_states: Sequence[LeaderAndIsrTopicState] = (),
        live_leaders: Sequence[LeaderAndIsrLiveLeader] = (),
    ) -> None:
        self.controller_id = controller_id
        self.is_kraft_controller = is_kraft_controller
        self.controller_epoch = controller_epoch
        self.broker_epoch = broker_epoch
        self.type = type
        self.topic_states = topic_states
        self.live_leaders = live_leaders


class LeaderAndIsrPartitionError(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
    )
    VERSIONS = (5, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("partition_index", "int32", (5, 7), None, None, 0, None),
        ("error_code", "int16", (5, 7), None, None, 0, None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class LeaderAndIsrTopicError(Struct):
    __slots__ = (
        "topic_id",
        "partition_errors",
    )
    VERSIONS = (5, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("topic_id", "uuid", (5, 7), None, None, ZERO_UUID, None),
        ("partition_errors", "[]struct", (5, 7), None, None, (), LeaderAndIsrPartitionError),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partition_errors: Sequence[LeaderAndIsrPartitionError] = (),
    ) -> None:
        self.topic_id = topic_id
        self.partition_errors = partition_errors


class LeaderAndIsrResponse(Message):
    __slots__ = (
        "error_code",
        "topics",
    )
    API_KEY = 4
    VERSIONS = (5, 7)
    FLEXIBLE_FROM = 5
    FIELDS = (
        ("error_code", "int16", (5, 7), None, None, 0, None),
        ("topics", "[]struct", (5, 7), None, None, (), LeaderAndIsrTopicError),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: Sequence[LeaderAndIsrTopicError] = (),
    ) -> None:
        self.error_code = error_code
        self.topics = topics
