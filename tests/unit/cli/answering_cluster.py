"""A cluster behind the sockets of the command line: what its controller would decide, its settings, and no time to wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.cli import cluster_client, wire_client
from penstock.cli.failures import Unreachable
from penstock.cli.moves import cluster as requests
from penstock.cli.moves import following, watching
from penstock.controller import reassignments
from penstock.metadata.image import NO_LEADER, PartitionRegistration
from penstock.model.endpoints import Address
from penstock.model.errors import ErrorCode
from penstock.wire.messages import alter_partition_reassignments as alter
from penstock.wire.messages import describe_configs, describe_log_dirs, elect_leaders, metadata
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
        self.before_alter: Callable[[], None] = lambda: None
        self.while_asleep: Callable[[], None] = lambda: None
        self.now_s = 0.0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        outer = self

        class Client(_Client):
            answering = outer

        monkeypatch.setattr(wire_client, "WireClient", Client)
        for clocked in (cluster_client, requests, following, watching):
            monkeypatch.setattr(clocked, "time", self)

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
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
            topics.append(metadata.MetadataResponseTopic(name=name, partitions=partitions))
        brokers = [
            metadata.MetadataResponseBroker(node_id=broker, host=f"host-{broker}", port=broker)
            for broker in self.image.brokers
        ]
        return metadata.MetadataResponse(
            brokers=brokers, controller_id=self.image.controller_id, topics=topics
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
            for name in resource.configuration_keys
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
        self._broker = address.port if greeting_timeout_s is None else able[-1]
        self.address = address
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
        self.answering.timeouts_s.append((type(request).__name__, timeout_s))
        return self.answering.answer(self._broker, request)

    def _check(self) -> None:
        if self._broker in self.answering.dead:
            raise Unreachable(f"cannot reach the broker at {self.address}")
