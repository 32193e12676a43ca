# Written by hand from the schemas of Apache Kafka 3.9: kio, from which the others come, has dropped this message.
# ruff: noqa: RUF023
"""UpdateMetadata, API key 6, versions 7 to 8."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.wire.schema import ZERO_UUID, Message, Struct


class UpdateMetadataPartitionState(Struct):
    __slots__ = (
        "partition_index",
        "controller_epoch",
        "leader",
        "leader_epoch",
        "isr",
        "zk_version",
        "replicas",
        "offline_replicas",
    )
    VERSIONS = (7, 8)
    FLEXIBLE_FROM = 7
    FIELDS = (
        ("partition_index", "int32", (7, 8), None, None, 0, None),
        ("controller_epoch", "int32", (7, 8), None, None, 0, None),
        ("leader", "int32", (7, 8), None, None, 0, None),
        ("leader_epoch", "int32", (7, 8), None, None, 0, None),
        ("isr", "[]int32", (7, 8), None, None, (), None),
        ("zk_version", "int32", (7, 8), None, None, 0, None),
        ("replicas", "[]int32", (7, 8), None, None, (), None),
        ("offline_replicas", "[]int32", (7, 8), None, None, (), None),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        controller_epoch: int = 0,
        leader: int = 0,
        leader_epoch: int = 0,
        isr: Sequence[int] = (),
        zk_version: int = 0,
        replicas: Sequence[int] = (),
        offline_replicas: Sequence[int] = (),
    ) -> None:
        self.partition_index = partition_index
        self.controller_epoch = controller_epoch
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.isr = isr
        self.zk_version = zk_version
        self.replicas = replicas
        self.offline_replicas = offline_replicas


class UpdateMetadataTopicState(Struct):
    __slots__ = (
        "topic_name",
        "topic_id",
        "partition_states",
    )
    VERSIONS = (7, 8)
    FLEXIBLE_FROM = 7
    FIELDS = (
        ("topic_name", "string", (7, 8), None, None, "", None),
        ("topic_id", "uuid", (7, 8), None, None, ZERO_UUID, None),
        ("partition_states", "[]struct", (7, 8), None, None, (), UpdateMetadataPartitionState),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_states: Sequence[UpdateMetadataPartitionState] = (),
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partition_states = partition_states


class UpdateMetadataEndpoint(Struct):
    __slots__ = (
        "port",
        "host",
        "listener",
        "security_protocol",
    )
    VERSIONS = (7, 8)
    FLEXIBLE_FROM = 7
    FIELDS = (
        ("port", "int32", (7, 8), None, None, 0, None),
        ("host", "string", (7, 8), None, None, "", None),
        ("listener", "string", (7, 8), None, None, "", None),
        ("security_protocol", "int16", (7, 8), None, None, 0, None),
    )

    def __init__(
        self,
        *,
        port: int = 0,
        host: str = "",
        listener: str = "",
        security_protocol: int = 0,
    ) -> None:
        self.port = port
        self.host = host
        self.listener = listener
        self.security_protocol = security_protocol


class UpdateMetadataBroker(Struct):
    __slots__ = (
        "id",
        "endpoints",
        "rack",
    )
    VERSIONS = (7, 8)
    FLEXIBLE_FROM = 7
    FIELDS = (
        ("id", "int32", (7, 8), None, None, 0, None),
        ("endpoints", "[]struct", (7, 8), None, None, (), UpdateMetadataEndpoint),
        ("rack", "string", (7, 8), (7, 8), None, "", None),
    )

    def __init__(
        self,
        *,
        id: int = 0,
        endpoints: Sequence[UpdateMetadataEndpoint] = (),
        rack: str | None = "",
    ) -> None:
        self.id = id
        self.endpoints = endpoints
        self.rack = rack


class UpdateMetadataRequest(Message):
    __slots__ = (
        "controller_id",
        "is_kraft_controller",
        "type",
        "controller_epoch",
        "broker_epoch",
        "topic_states",
        "live_brokers",
    )
    API_KEY = 6
    VERSIONS = (7, 8)
    FLEXIBLE_FROM = 7
    FIELDS = (
        ("controller_id", "int32", (7, 8), None, None, 0, None),
        ("is_kraft_controller", "bool", (8, 8), None, None, False, None),
        ("type", "int8", (8, 8), None, 0, 0, None),
        ("controller_epoch", "int32", (7, 8), None, None, 0, None),
        ("broker_epoch", "int64", (7, 8), None, None, -1, None),
        ("topic_states", "[]struct", (7, 8), None, None, (), UpdateMetadataTopicState),
        ("live_brokers", "[]struct", (7, 8), None, None, (), UpdateMetadataBroker),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,
        type: int = 0,
        controller_epoch: int = 0,
        broker_epoch: int = -1,
        topic_states: Sequence[UpdateMetadataTopicState] = (),
        live_brokers: Sequence[UpdateMetadataBroker] = (),
    ) -> None:
        self.controller_id = controller_id
        self.is_kraft_controller = is_kraft_controller
        self.type = type
        self.controller_epoch = controller_epoch
        self.broker_epoch = broker_epoch
        self.topic_states = topic_states
        self.live_brokers = live_brokers


class UpdateMetadataResponse(Message):
    __slots__ = ("error_code",)
    API_KEY = 6
    VERSIONS = (7, 8)
    FLEXIBLE_FROM = 7
    FIELDS = (("error_code", "int16", (7, 8), None, None, 0, None),)

    def __init__(
        self,
        *,
        error_code: int = 0,
    ) -> None:
        self.error_code = error_code
