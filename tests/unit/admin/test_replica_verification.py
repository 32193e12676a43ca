"""Replicas compared, on brokers that hold what the test gives them."""

from typing import Any, cast

from penstock.admin.replica_verification import Difference, ReplicaVerification
from penstock.client.cluster_client import BrokerNode, ClusterClient
from penstock.client.errors import Unreachable
from penstock.model.ids import TopicPartition
from penstock.records.batch import read_header
from penstock.records.build import build_batch
from penstock.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

ORDERS = TopicPartition("orders", 0)


class HeldRecords:
    """A ClusterClient whose brokers hold these batches of orders-0; None does not answer."""

    def __init__(self, **logs: list[bytes] | None) -> None:
        self.logs = {int(name[1:]): log for name, log in logs.items()}
        self.waits: list[int] = []

    def nodes(self) -> list[BrokerNode]:
        return [BrokerNode(broker, "host", broker) for broker in self.logs]

    def ask_node(self, node: BrokerNode, request: FetchRequest, *_: Any, **__: Any) -> FetchResponse:
        log = self.logs[node.node_id]
        if log is None:
            raise Unreachable("it is down")
        self.waits.append(request.max_wait_ms)
        start = request.topics[0].partitions[0].fetch_offset
        wanted = b"".join(one for one in log if read_header(one).last_offset >= start)
        found = PartitionData(partition_index=0, high_watermark=4, records=wanted)
        return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=[found])])


def verification(held: HeldRecords) -> ReplicaVerification:
    return ReplicaVerification(cast(ClusterClient, held), {ORDERS: held.logs}, {ORDERS: 0}, max_wait_ms=500)


def records(base_offset: int, *values: bytes) -> bytes:
    return bytes(build_batch([(None, value, (), 0) for value in values], base_offset=base_offset))


FIRST, SECOND = records(0, b"a", b"b"), records(2, b"c", b"d")


def test_replicas_that_hold_the_same_are_compared_up_to_the_high_watermark() -> None:
    held = HeldRecords(b1=[FIRST, SECOND], b2=[FIRST, SECOND], b3=[FIRST])
    verify = verification(held)
    first = verify.round()
    assert (first.differences, first.missing, first.max_lag, first.offset) == ([], {}, 2, 2)
    held.logs[3] = [FIRST, SECOND]
    assert verify.round()[2:] == (0, ORDERS, 4)
    assert held.waits[:3] == [500, 0, 0]


def test_another_content_is_told_and_what_follows_is_compared_too() -> None:
    other, also = records(0, b"a", b"X"), records(2, b"c", b"Y")
    found = verification(HeldRecords(b1=[FIRST, SECOND], b2=[other, also])).round()
    checksums = [
        (read_header(FIRST).crc, read_header(other).crc),
        (read_header(SECOND).crc, read_header(also).crc),
    ]
    assert found.differences == [
        Difference(ORDERS, 1, 2, 1, 1, *checksums[0]),
        Difference(ORDERS, 1, 2, 3, 3, *checksums[1]),
    ]
    assert not any(one.is_of_offsets for one in found.differences)


def test_a_batch_that_one_replica_lacks_ends_the_comparison() -> None:
    found = verification(HeldRecords(b1=[FIRST, SECOND], b2=[SECOND])).round()
    (difference,) = found.differences
    assert difference.is_of_offsets
    assert (difference.first_offset, difference.other_offset) == (1, 3)


def test_a_replica_that_does_not_answer_is_waited_for() -> None:
    held = HeldRecords(b1=[FIRST], b2=None)
    verify = verification(held)
    assert verify.round()[:3] == ([], {ORDERS: [2]}, 4)
    held.logs[2] = [FIRST]
    assert verify.round()[:3] == ([], {}, 2)
