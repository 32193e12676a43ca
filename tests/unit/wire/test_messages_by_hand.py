"""The messages that kio does not have, with bytes that Apache Kafka 3.9.2's own classes wrote of the same values."""

import pytest

from penstock.wire.codec import decode, encode
from penstock.wire.errors import Malformed
from penstock.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)
from penstock.wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from penstock.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from penstock.wire.schema import Message

TOPIC_ID = bytes(range(1, 17))


def leader_and_isr_request(version: int) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        partition_index=3,
        controller_epoch=9,
        leader=2,
        leader_epoch=11,
        isr=[2, 1],
        partition_epoch=12,
        replicas=[1, 2, 300],
        adding_replicas=[300],
        removing_replicas=[1],
        is_new=True,
        leader_recovery_state=1 if version >= 6 else 0,
    )
    return LeaderAndIsrRequest(
        controller_id=1,
        is_kraft_controller=version >= 7,
        controller_epoch=10,
        broker_epoch=0x1122334455,
        type=1,
        topic_states=[
            LeaderAndIsrTopicState(topic_name="orders", topic_id=TOPIC_ID, partition_states=[state])
        ],
        live_leaders=[LeaderAndIsrLiveLeader(broker_id=2, host_name="two", port=9092)],
    )


def leader_and_isr_response(version: int) -> LeaderAndIsrResponse:
    error = LeaderAndIsrPartitionError(partition_index=3, error_code=56)
    return LeaderAndIsrResponse(
        error_code=11, topics=[LeaderAndIsrTopicError(topic_id=TOPIC_ID, partition_errors=[error])]
    )


def stop_replica_request(version: int) -> StopReplicaRequest:
    states = [
        StopReplicaPartitionState(partition_index=3, leader_epoch=-2, delete_partition=True),
        StopReplicaPartitionState(partition_index=4),
    ]
    return StopReplicaRequest(
        controller_id=1,
        is_kraft_controller=version >= 4,
        controller_epoch=10,
        broker_epoch=77,
        topic_states=[StopReplicaTopicState(topic_name="orders", partition_states=states)],
    )


def stop_replica_response(version: int) -> StopReplicaResponse:
    error = StopReplicaPartitionError(topic_name="orders", partition_index=3, error_code=74)
    return StopReplicaResponse(error_code=11, partition_errors=[error])


def update_metadata_request(version: int) -> UpdateMetadataRequest:
    state = UpdateMetadataPartitionState(
        partition_index=3,
        controller_epoch=9,
        leader=2,
        leader_epoch=11,
        isr=[2, 1],
        zk_version=12,
        replicas=[1, 2, 300],
        offline_replicas=[300],
    )
    two = UpdateMetadataEndpoint(port=9092, host="two", listener="PLAINTEXT", security_protocol=0)
    three = UpdateMetadataEndpoint(port=9093, host="three", listener="SAFE", security_protocol=3)
    return UpdateMetadataRequest(
        controller_id=1,
        is_kraft_controller=version >= 8,
        type=2 if version >= 8 else 0,
        controller_epoch=10,
        broker_epoch=0x1122334455,
        topic_states=[
            UpdateMetadataTopicState(topic_name="orders", topic_id=TOPIC_ID, partition_states=[state])
        ],
        live_brokers=[
            UpdateMetadataBroker(id=2, endpoints=[two], rack=None),
            UpdateMetadataBroker(id=300, endpoints=[three], rack="north"),
        ],
    )


def update_metadata_response(version: int) -> UpdateMetadataResponse:
    return UpdateMetadataResponse(error_code=11)


def controlled_shutdown_request(version: int) -> ControlledShutdownRequest:
    return ControlledShutdownRequest(broker_id=3, broker_epoch=77 if version >= 2 else -1)


def controlled_shutdown_response(version: int) -> ControlledShutdownResponse:
    remaining = [RemainingPartition(topic_name="orders", partition_index=3)]
    return ControlledShutdownResponse(error_code=41, remaining_partitions=remaining)


KAFKAS = {
    leader_and_isr_request: {
        5: (
            "000000010000000a00000011223344550102076f72646572730102030405060708090a0b0c0d0e0f1002000000030000"
            "0009000000020000000b0300000002000000010000000c0400000001000000020000012c020000012c02000000010100"
            "0002000000020474776f000023840000"
        ),
        6: (
            "000000010000000a00000011223344550102076f72646572730102030405060708090a0b0c0d0e0f1002000000030000"
            "0009000000020000000b0300000002000000010000000c0400000001000000020000012c020000012c02000000010101"
            "000002000000020474776f000023840000"
        ),
        7: (
            "00000001010000000a00000011223344550102076f72646572730102030405060708090a0b0c0d0e0f10020000000300"
            "000009000000020000000b0300000002000000010000000c0400000001000000020000012c020000012c020000000101"
            "01000002000000020474776f000023840000"
        ),
    },
    leader_and_isr_response: {
        5: "000b020102030405060708090a0b0c0d0e0f1002000000030038000000",
        6: "000b020102030405060708090a0b0c0d0e0f1002000000030038000000",
        7: "000b020102030405060708090a0b0c0d0e0f1002000000030038000000",
    },
    stop_replica_request: {
        3: "000000010000000a000000000000004d02076f72646572730300000003fffffffe010000000004ffffffff00000000",
        4: "00000001010000000a000000000000004d02076f72646572730300000003fffffffe010000000004ffffffff00000000",
    },
    stop_replica_response: {
        3: "000b02076f726465727300000003004a0000",
        4: "000b02076f726465727300000003004a0000",
    },
    update_metadata_request: {
        7: (
            "000000010000000a000000112233445502076f72646572730102030405060708090a0b0c0d0e0f100200000003000000"
            "09000000020000000b0300000002000000010000000c0400000001000000020000012c020000012c0000030000000202"
            "000023840474776f0a504c41494e5445585400000000000000012c02000023850674687265650553414645000300066e"
            "6f7274680000"
        ),
        8: (
            "00000001010000000a000000112233445502076f72646572730102030405060708090a0b0c0d0e0f1002000000030000"
            "0009000000020000000b0300000002000000010000000c0400000001000000020000012c020000012c00000300000002"
            "02000023840474776f0a504c41494e5445585400000000000000012c0200002385067468726565055341464500030006"
            "6e6f7274680001000102"
        ),
    },
    update_metadata_response: {
        7: "000b00",
        8: "000b00",
    },
    controlled_shutdown_request: {
        0: "00000003",
        1: "00000003",
        2: "00000003000000000000004d",
        3: "00000003000000000000004d00",
    },
    controlled_shutdown_response: {
        0: "00290000000100066f726465727300000003",
        1: "00290000000100066f726465727300000003",
        2: "00290000000100066f726465727300000003",
        3: "002902076f7264657273000000030000",
    },
}
MESSAGES = [
    pytest.param(make(version), version, bytes.fromhex(written), id=f"{make.__name__} {version}")
    for make, versions in KAFKAS.items()
    for version, written in versions.items()
]
each = pytest.mark.parametrize(("message", "version", "wire"), MESSAGES)


@each
def test_every_version_is_written_and_read_as_kafka_does(message: Message, version: int, wire: bytes) -> None:
    assert encode(message, version).hex() == wire.hex()
    assert decode(message.__class__, version, wire) == (message, len(wire))


@each
def test_a_message_that_is_cut_off_is_malformed(message: Message, version: int, wire: bytes) -> None:
    for end in range(len(wire)):
        with pytest.raises(Malformed):
            decode(message.__class__, version, wire[:end])


def test_all_versions_of_every_message_are_here() -> None:
    for make, versions in KAFKAS.items():
        low, high = make(max(versions)).VERSIONS
        assert set(versions) == set(range(low, high + 1)), make.__name__
