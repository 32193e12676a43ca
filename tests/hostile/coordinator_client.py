"""Members of groups and transactional producers that say what we want them to, healthy ones to begin with.

What passes by itself (a coordinator that is being looked for, a marker on its way) is asked again until it has passed.
"""

import time
from collections.abc import Callable
from typing import Any

from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.end_txn import EndTxnRequest
from penstock.wire.messages.heartbeat import HeartbeatRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from simulation.consumer_protocol import assignment, subscription
from tests.hostile.raw_client import RawClient, wait_until

E = ErrorCode
TOPIC = "known"
PASSING = frozenset(
    (
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.CONCURRENT_TRANSACTIONS,
    )
)
PATIENCE_S = 30.0


def patiently(ask: Callable[[], Any]) -> Any:
    """The first answer that is not one to wait for."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = ask()
        if answer.error_code not in PASSING or time.monotonic() > deadline:
            return answer
        time.sleep(0.02)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


# ── groups ──────────────────────────────────────────────────────────────────────────────────────────────────


def commit_request(group: str, **fields: Any) -> OffsetCommitRequest:
    metadata = fields.pop("metadata", "here")
    offset = fields.pop("offset", 7)
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=metadata
    )
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return OffsetCommitRequest(**({"group_id": group, "topics": [topic]} | fields))


def committed(client: RawClient, request: OffsetCommitRequest, version: int = 9) -> int:
    """The one error code of an OffsetCommit."""
    (topic,) = client.ask(request, version).topics
    (partition,) = topic.partitions
    return int(partition.error_code)


class ClassicMember:
    """The only member of its group, and so its leader."""

    def __init__(self, client: RawClient, group: str, *, instance_id: str | None = None) -> None:
        self.client = client
        self.group = group
        self.instance_id = instance_id
        joined = patiently(lambda: client.ask(self.join_request(), 9))
        if joined.error_code == E.MEMBER_ID_REQUIRED:
            joined = client.ask(self.join_request(member_id=joined.member_id), 9)
        assert joined.error_code == 0, joined
        self.member_id: str = joined.member_id
        self.generation_id: int = joined.generation_id
        assert client.ask(self.sync_request(), 5).error_code == 0

    def join_request(self, **fields: Any) -> JoinGroupRequest:
        wanted: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "member_id": "",
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=subscription(TOPIC))],
        }
        return JoinGroupRequest(**(wanted | fields))

    def sync_request(self, **fields: Any) -> SyncGroupRequest:
        own = SyncGroupRequestAssignment(member_id=self.member_id, assignment=assignment(f"{TOPIC}:0,1"))
        wanted: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [own],
        }
        return SyncGroupRequest(**(wanted | fields))

    def heartbeat(self, **fields: Any) -> int:
        wanted: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
        }
        return int(self.client.ask(HeartbeatRequest(**(wanted | fields)), 4).error_code)

    def commit(self, *, version: int = 9, **fields: Any) -> int:
        wanted: dict[str, Any] = {
            "generation_id_or_member_epoch": self.generation_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
        }
        return committed(self.client, commit_request(self.group, **(wanted | fields)), version)

    def is_healthy(self) -> bool:
        synced = self.client.ask(self.sync_request(assignments=[]), 5)
        return (
            synced.error_code == 0
            and synced.assignment == assignment(f"{TOPIC}:0,1")
            and self.heartbeat() == 0
            and self.commit() == 0
        )


class ConsumerMember:
    """The only member of a group of the newer protocol."""

    def __init__(
        self, client: RawClient, group: str, member_id: str = "m-1", *, instance_id: str | None = None
    ) -> None:
        self.client = client
        self.group = group
        self.member_id = member_id
        self.instance_id = instance_id
        joined = patiently(
            lambda: self.beat(
                member_epoch=0,
                rebalance_timeout_ms=30_000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=[],
            )
        )
        assert joined.error_code == 0, joined
        self.member_epoch: int = joined.member_epoch
        self.owned: list[TopicPartitions] = list(joined.assignment.topic_partitions)

    def request(self, **fields: Any) -> ConsumerGroupHeartbeatRequest:
        wanted: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": getattr(self, "member_epoch", 0),
            "instance_id": self.instance_id,
            "rebalance_timeout_ms": -1,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "topic_partitions": None,
        }
        return ConsumerGroupHeartbeatRequest(**(wanted | fields))

    def beat(self, **fields: Any) -> Any:
        return self.client.ask(self.request(**fields), 1)

    def commit(self, *, version: int = 9, **fields: Any) -> int:
        wanted: dict[str, Any] = {
            "generation_id_or_member_epoch": self.member_epoch,
            "member_id": self.member_id,
        }
        return committed(self.client, commit_request(self.group, **(wanted | fields)), version)

    def is_healthy(self) -> bool:
        """Still a member, with all that it owns; its epoch may have gone on."""
        beat = self.beat(topic_partitions=self.owned)
        if beat.error_code:
            return False
        self.member_epoch = beat.member_epoch
        if beat.assignment is not None and beat.assignment.topic_partitions != self.owned:
            return False
        return self.commit() == 0


def create(client: RawClient, name: str, *, partitions: int = 2) -> str:
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    (result,) = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=5000), 7).topics
    assert result.error_code == 0, result
    return name


# ── transactions ────────────────────────────────────────────────────────────────────────────────────────────


def init(client: RawClient, transactional_id: str | None, **fields: Any) -> InitProducerIdResponse:
    version = fields.pop("version", 5)
    wanted = {"transaction_timeout_ms": 60_000} | fields
    request = InitProducerIdRequest(transactional_id=transactional_id, **wanted)
    answer: InitProducerIdResponse = patiently(lambda: client.ask(request, version))
    return answer


def produced(
    client: RawClient,
    batch: bytes,
    *more: bytes,
    transactional_id: str | None,
    version: int,
    topic: str,
) -> list[int]:
    """The error codes of one batch to partition 0, the next to partition 1."""
    data = [PartitionProduceData(index=index, records=sent) for index, sent in enumerate((batch, *more))]
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )
    (answered,) = client.ask(request, version).responses
    codes = {result.index: int(result.error_code) for result in answered.partition_responses}
    return [codes[index] for index in sorted(codes)]


def end_offset(client: RawClient, topic: str, *, index: int = 0, isolation_level: int) -> int:
    place = ListOffsetsPartition(partition_index=index, timestamp=-1)
    wanted = ListOffsetsTopic(name=topic, partitions=[place])
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=[wanted])
    offset = client.ask(request, 7).topics[0].partitions[0].offset
    assert isinstance(offset, int)
    return offset


class Transaction:
    """A producer in the middle of a transaction of transaction version 1: one record is in partition 0 of the topic."""

    def __init__(
        self, client: RawClient, transactional_id: str, topic: str, *, transaction_timeout_ms: int = 60_000
    ) -> None:
        self.client = client
        self.id = transactional_id
        self.topic = topic
        answer = init(client, transactional_id, transaction_timeout_ms=transaction_timeout_ms)
        assert answer.error_code == 0, answer
        self.producer_id = answer.producer_id
        self.epoch = answer.producer_epoch
        self.sequence = 0
        assert self.add() == [0]
        wait_until(lambda: self.produce() == [0], what="a leader of the new topic")

    def batch(self, **fields: Any) -> bytes:
        wanted: dict[str, Any] = {
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "base_sequence": self.sequence,
            "transactional": True,
        }
        return bytes(build_batch([(b"key", b"value", (), now_ms())], **(wanted | fields)))

    def produce(
        self, *, version: int = 11, topic: str | None = None, sequence: int | None = None
    ) -> list[int]:
        """The next record; or one with a sequence of its own, to another topic."""
        batch = self.batch(base_sequence=self.sequence if sequence is None else sequence)
        codes = produced(
            self.client, batch, transactional_id=self.id, version=version, topic=topic or self.topic
        )
        if codes == [0] and topic is None:
            self.sequence += 1
        return codes

    def add(self, *places: tuple[str, int], version: int = 3, **fields: Any) -> list[int]:
        wanted: dict[str, Any] = {
            "v3_and_below_transactional_id": self.id,
            "v3_and_below_producer_id": self.producer_id,
            "v3_and_below_producer_epoch": self.epoch,
            "v3_and_below_topics": [
                AddPartitionsToTxnTopic(name=name, partitions=[index])
                for name, index in places or ((self.topic, 0),)
            ],
        }
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.client.ask(AddPartitionsToTxnRequest(**(wanted | fields)), version)
            found = {
                (topic.name, result.partition_index): int(result.partition_error_code)
                for topic in answer.results_by_topic_v3_and_below
                for result in topic.results_by_partition
            }
            if not PASSING.intersection(found.values()) or time.monotonic() > deadline:
                return [found[place] for place in places or ((self.topic, 0),)]
            time.sleep(0.02)

    def end(self, *, version: int = 4, **fields: Any) -> int:
        wanted: dict[str, Any] = {
            "transactional_id": self.id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "committed": True,
        }
        request = EndTxnRequest(**(wanted | fields))
        return int(patiently(lambda: self.client.ask(request, version)).error_code)

    def commit_offsets(self, *, version: int = 4, **fields: Any) -> int:
        partition = TxnOffsetCommitRequestPartition(
            partition_index=fields.pop("partition_index", 0),
            committed_offset=5,
            committed_metadata=fields.pop("metadata", ""),
        )
        wanted: dict[str, Any] = {
            "transactional_id": self.id,
            "group_id": f"group-of-{self.id}",
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "generation_id": -1,
            "topics": [
                TxnOffsetCommitRequestTopic(name=fields.pop("topic", self.topic), partitions=[partition])
            ],
        }
        (topic,) = self.client.ask(TxnOffsetCommitRequest(**(wanted | fields)), version).topics
        return int(topic.partitions[0].error_code)

    def is_healthy(self) -> bool:
        """It goes on and commits, nothing stays undecided, and the next transaction can begin."""
        if self.produce() != [0] or self.end() != 0 or not self.becomes_decided():
            return False
        return self.add() == [0] and self.produce() == [0] and self.end(committed=False) == 0

    def becomes_decided(self) -> bool:
        """Whether the last stable offset reaches the end of the topic."""
        deadline = time.monotonic() + PATIENCE_S
        while self.end_offset(isolation_level=1) != self.end_offset():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def end_offset(self, *, isolation_level: int = 0) -> int:
        return end_offset(self.client, self.topic, isolation_level=isolation_level)
