"""DeleteRecords in a cluster: what is deleted is deleted everywhere before anybody is told so."""

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.model.errors import ErrorCode
from penstock.testing.clusters import create_topic, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.hostile.raw_client import RawClient

PATIENCE_S = 60.0
EARLIEST = -2
ANY_REPLICA = -2
LEADER = 1


def fill(cluster: PenstockCluster, topic: str) -> None:
    create_topic(cluster.bootstrap, topic, assignment=[[LEADER, 2, 3]])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for number in range(100):
        producer.produce(topic, str(number).encode(), partition=0)
        producer.flush(PATIENCE_S)
    wait_until_in_sync(cluster.bootstrap, [topic])


def start_offset(cluster: PenstockCluster, broker_id: int, topic: str) -> int:
    """Of a replica, whoever leads."""
    wanted = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST, current_leader_epoch=-1)
    request = ListOffsetsRequest(
        replica_id=ANY_REPLICA, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
    )
    with RawClient(cluster.port(broker_id)) as client:
        return int(client.ask(request, 7).topics[0].partitions[0].offset)


def delete(
    cluster: PenstockCluster, topic: str, *, before: int, timeout_ms: int
) -> DeleteRecordsPartitionResult:
    wanted = DeleteRecordsPartition(partition_index=0, offset=before)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=timeout_ms
    )
    with RawClient(cluster.port(LEADER)) as client:
        result: DeleteRecordsPartitionResult = client.ask(request, 2).topics[0].partitions[0]
    return result


def test_deleted_records_are_gone_from_every_replica_when_the_client_is_told(
    cluster: PenstockCluster,
) -> None:
    topic = "deleted-everywhere"
    fill(cluster, topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    (future,) = admin.delete_records([TopicPartition(topic, 0, 60)]).values()
    assert future.result(PATIENCE_S).low_watermark == 60
    assert [start_offset(cluster, broker_id, topic) for broker_id in cluster.broker_ids] == [60, 60, 60]


def test_a_follower_that_does_not_answer_is_waited_for_as_long_as_the_client_wants(
    cluster: PenstockCluster,
) -> None:
    topic = "deleted-with-patience"
    fill(cluster, topic)
    cluster.pause(3)
    result = delete(cluster, topic, before=60, timeout_ms=300)
    cluster.resume(3)
    assert (result.error_code, result.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    wait_until(lambda: start_offset(cluster, 3, topic) == 60, "the deletion to be made", timeout_s=PATIENCE_S)
    result = delete(cluster, topic, before=60, timeout_ms=int(PATIENCE_S * 1000))
    assert (result.error_code, result.low_watermark) == (0, 60)
    wait_until_in_sync(cluster.bootstrap, [topic])
