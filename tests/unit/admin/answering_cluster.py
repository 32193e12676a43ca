"""A cluster behind the sockets of the command line: what its controller would decide, its settings, and no time to wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from penstock.admin import offsets
from penstock.admin.moves import following, watching
from penstock.client import cluster_client, patience, wire_client
from penstock.client.errors import Unreachable
from penstock.controller import reassignments
from penstock.metadata.image import NO_LEADER, PartitionRegistration, TopicCreated, TopicDeleted
from penstock.model.endpoints import Address
from penstock.model.errors import ErrorCode
from penstock.wire.messages import alter_partition_reassignments as alter
from penstock.wire.messages import (
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_log_dirs,
    describe_topic_partitions,
    elect_leaders,
    list_offsets,
    metadata,
)
from penstock.wire.messages import incremental_alter_configs as alter_configs
from penstock.wire.messages import list_partition_reassignments as listing
from tests.unit.controller.clusters import cluster

TOPIC, BROKER = 2, 4
OF_TOPIC, OF_BROKER = 1, 2


class AnsweringCluster:
    """The topic `orders`. `dead` brokers do not answer, although the others still tell of them; see `lose`.

    It is also the clock: while somebody sleeps, what can be copied is copied, if `copies`.
    """

    def __init__(self, *partitions: PartitionRegistration, brokers: tuple[int, ...] = (1, 2, 3, 4)) -> None:
        self.image = cluster(*partitions, brokers=brokers)
        self.dead: set[int] = set()
        self.leaving: set[int] = set()
        self.copies = True
        self.settings: dict[tuple[int, str], dict[str, str]] = {}
        self.timeouts_s: list[tuple[str, float | None]] = []
        self.ends: dict[tuple[str, int], int] = {}
        """The end offsets of partitions; 0 where there is none."""
        self.moved_leaders: set[tuple[str, int]] = set()
        """Partitions of which the leader in Metadata says that it leads them no more, until somebody sleeps."""
        self.connections = 0
        self.lost_connections = 0
        """So many of the first connections are closed."""
        self.knows_topic_partitions = True
        self.before_alter: Callable[[], None] = lambda: None
        self.while_asleep: Callable[[], None] = lambda: None
        self.now_s = 0.0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        outer = self

        class Client(_Client):
            answering = outer

        monkeypatch.setattr(wire_client, "WireClient", Client)
        for clocked in (cluster_client, patience, following, watching):
            monkeypatch.setattr(clocked, "time", self)

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.moved_leaders.clear()
        self.while_asleep()
        if self.copies:
            self._copy()

    def replicas(self) -> list[tuple[int, ...]]:
        return [one.replicas for one in self._partitions()]

    def moving(self) -> list[int]:
        return [index for index, one in enumerate(self._partitions()) if one.adding or one.removing]

    def lose(self, broker: int) -> None:
        """The broker dies and everybody knows."""
        self.dead.add(broker)
        self.image.brokers.pop(broker, None)
        for index, one in enumerate(self._partitions()):
            if one.leader == broker:
                heirs = [other for other in one.isr if other in self.image.brokers]
                self._set(index, one._replace(leader=heirs[0] if heirs else NO_LEADER))

    def delete_topic(self) -> None:
        self.image.topics.pop("orders", None)

    def _partitions(self) -> list[PartitionRegistration]:
        topic = self.image.topics.get("orders")
        return [] if topic is None else topic.partitions

    def _set(self, index: int, partition: PartitionRegistration) -> None:
        self.image.topics["orders"].partitions[index] = partition

    def _copy(self) -> None:
        for index, one in enumerate(self._partitions()):
            if one.leader in self.image.brokers:
                joining = tuple(broker for broker in one.adding if broker in self.image.brokers)
                self._set(index, one._replace(isr=tuple(dict.fromkeys(one.isr + joining))))
        changed = [("orders", index) for index in range(len(self._partitions()))]
        self.image.apply_all(reassignments.progress(self.image, changed).changes)

    def answer(self, broker: int, request: Any) -> Any:
        match request:
            case metadata.MetadataRequest():
                return self._metadata(request)
            case describe_topic_partitions.DescribeTopicPartitionsRequest():
                return self._topic_partitions(request)
            case create_topics.CreateTopicsRequest():
                return create_topics.CreateTopicsResponse(
                    topics=[self._created(topic, request.validate_only) for topic in request.topics]
                )
            case create_partitions.CreatePartitionsRequest():
                return create_partitions.CreatePartitionsResponse(
                    results=[self._grown(topic) for topic in request.topics]
                )
            case delete_topics.DeleteTopicsRequest():
                for name in request.topic_names:
                    self.image.apply(TopicDeleted(name))
                return delete_topics.DeleteTopicsResponse(
                    responses=[delete_topics.DeletableTopicResult(name=name) for name in request.topic_names]
                )
            case list_offsets.ListOffsetsRequest():
                return self._offsets(request)
            case delete_records.DeleteRecordsRequest():
                return self._records_deleted(request)
            case listing.ListPartitionReassignmentsRequest():
                if broker != self.image.controller_id:
                    return listing.ListPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER)
                return listing.ListPartitionReassignmentsResponse(
                    topics=reassignments.list_(self.image, request)
                )
            case alter.AlterPartitionReassignmentsRequest():
                self.before_alter()
                decision = reassignments.alter(self.image, request, leaving=self.leaving)
                self.image.apply_all(decision.changes)
                return alter.AlterPartitionReassignmentsResponse(responses=decision.results)
            case describe_configs.DescribeConfigsRequest():
                return describe_configs.DescribeConfigsResponse(
                    results=[self._described(resource) for resource in request.resources]
                )
            case alter_configs.IncrementalAlterConfigsRequest():
                return alter_configs.IncrementalAlterConfigsResponse(
                    responses=[self._altered(resource) for resource in request.resources]
                )
            case describe_log_dirs.DescribeLogDirsRequest():
                return describe_log_dirs.DescribeLogDirsResponse()
            case elect_leaders.ElectLeadersRequest():
                return elect_leaders.ElectLeadersResponse()
        raise AssertionError(request)

    def _metadata(self, request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        named = list(self.image.topics) if request.topics is None else [one.name for one in request.topics]
        topics = []
        for name in named:
            topic = self.image.topics.get(name or "")
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                topics.append(metadata.MetadataResponseTopic(name=name, error_code=code))
                continue
            partitions = [
                metadata.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=one.leader,
                    replica_nodes=list(one.replicas),
                    isr_nodes=list(one.isr),
                )
                for index, one in enumerate(topic.partitions)
            ]
            topics.append(
                metadata.MetadataResponseTopic(name=name, topic_id=topic.topic_id, partitions=partitions)
            )
        brokers = [
            metadata.MetadataResponseBroker(node_id=broker, host=f"host-{broker}", port=broker)
            for broker in self.image.brokers
        ]
        return metadata.MetadataResponse(
            brokers=brokers, controller_id=self.image.controller_id, topics=topics
        )

    def _topic_partitions(self, request: Any) -> Any:
        if not self.knows_topic_partitions:
            raise wire_client.UnsupportedByBroker("DESCRIBE_TOPIC_PARTITIONS")
        topics = []
        for one in request.topics:
            topic = self.image.topics[one.name]
            partitions = [
                describe_topic_partitions.DescribeTopicPartitionsResponsePartition(
                    partition_index=index,
                    leader_id=each.leader,
                    replica_nodes=list(each.replicas),
                    isr_nodes=list(each.isr),
                )
                for index, each in enumerate(topic.partitions)
            ]
            topics.append(
                describe_topic_partitions.DescribeTopicPartitionsResponseTopic(
                    name=one.name, topic_id=topic.topic_id, partitions=partitions
                )
            )
        return describe_topic_partitions.DescribeTopicPartitionsResponse(topics=topics)

    def _created(self, topic: Any, validate_only: bool) -> Any:
        result = create_topics.CreatableTopicResult(name=topic.name)
        if topic.name in self.image.topics:
            result.error_code = ErrorCode.TOPIC_ALREADY_EXISTS
            result.error_message = f"Topic '{topic.name}' already exists."
        elif not validate_only:
            replicas = [tuple(one.broker_ids) for one in topic.assignments] or [(1,)] * max(
                1, topic.num_partitions
            )
            made = tuple(PartitionRegistration(one, one, one[0]) for one in replicas)
            self.image.apply(TopicCreated(topic.name, topic.name.encode().ljust(16, b"."), made))
            for config in topic.configs:
                self.settings.setdefault((TOPIC, topic.name), {})[config.name] = config.value
        return result

    def _grown(self, topic: Any) -> Any:
        partitions = self.image.topics[topic.name].partitions
        if topic.count <= len(partitions):
            return create_partitions.CreatePartitionsTopicResult(
                name=topic.name, error_code=ErrorCode.INVALID_PARTITIONS, error_message="Too few."
            )
        while len(partitions) < topic.count:
            partitions.append(PartitionRegistration((1,), (1,), 1))
        return create_partitions.CreatePartitionsTopicResult(name=topic.name)

    def _offsets(self, request: Any) -> Any:
        def answered(topic: str, one: Any) -> Any:
            partition = (topic, one.partition_index)
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if partition in self.moved_leaders else ErrorCode.NONE
            return list_offsets.ListOffsetsPartitionResponse(
                partition_index=one.partition_index,
                error_code=code,
                offset=0 if one.timestamp == offsets.EARLIEST else self.ends.get(partition, 0),
            )

        return list_offsets.ListOffsetsResponse(
            topics=[
                list_offsets.ListOffsetsTopicResponse(
                    name=topic.name, partitions=[answered(topic.name, one) for one in topic.partitions]
                )
                for topic in request.topics
            ]
        )

    def _records_deleted(self, request: Any) -> Any:
        def answered(topic: str, one: Any) -> Any:
            result = delete_records.DeleteRecordsPartitionResult(
                partition_index=one.partition_index, low_watermark=one.offset
            )
            if (topic, one.partition_index) in self.moved_leaders:
                result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif one.offset > self.ends.get((topic, one.partition_index), 0):
                result.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            return result

        return delete_records.DeleteRecordsResponse(
            topics=[
                delete_records.DeleteRecordsTopicResult(
                    name=topic.name, partitions=[answered(topic.name, one) for one in topic.partitions]
                )
                for topic in request.topics
            ]
        )

    def _described(self, resource: Any) -> Any:
        result = describe_configs.DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        if self._is_unknown(resource):
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return result
        overrides = self.settings.get((resource.resource_type, resource.resource_name), {})
        result.configs = [
            describe_configs.DescribeConfigsResourceResult(
                name=name,
                value=overrides.get(name, ""),
                config_source=5
                if name not in overrides
                else (OF_TOPIC if resource.resource_type == TOPIC else OF_BROKER),
            )
            for name in (overrides if resource.configuration_keys is None else resource.configuration_keys)
        ]
        return result

    def _altered(self, resource: Any) -> Any:
        response = alter_configs.AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        if self._is_unknown(resource):
            response.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return response
        key = (resource.resource_type, resource.resource_name)
        overrides = self.settings.setdefault(key, {})
        for one in resource.configs:
            if one.config_operation == 0:
                overrides[one.name] = one.value
            else:
                overrides.pop(one.name, None)
        if not overrides:
            del self.settings[key]
        return response

    def _is_unknown(self, resource: Any) -> bool:
        return resource.resource_type == TOPIC and resource.resource_name not in self.image.topics


class _Client:
    answering: AnsweringCluster

    def __init__(self, address: Address, *, greeting_timeout_s: float | None = None, **_: object) -> None:
        """Whoever answers, where a bootstrap address is asked: those have less time to greet."""
        able = [one for one in self.answering.image.brokers if one not in self.answering.dead]
        self._broker = address.port if greeting_timeout_s is None or not able else able[-1]
        self.address = address
        self._lock = threading.Lock()
        self.answering.connections += 1
        self._number = self.answering.connections
        self._check()

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def ask(
        self, request: Any, answer: Any, *, max_version: int | None = None, timeout_s: float | None = None
    ) -> Any:
        self._check()
        assert self._lock.acquire(blocking=False), "two threads use one connection"
        try:
            self.answering.timeouts_s.append((type(request).__name__, timeout_s))
            return self.answering.answer(self._broker, request)
        finally:
            self._lock.release()

    def _check(self) -> None:
        if self._broker in self.answering.dead or self._number <= self.answering.lost_connections:
            raise Unreachable(f"cannot reach the broker at {self.address}")
