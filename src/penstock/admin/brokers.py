"""The brokers of a cluster: where they are, what they understand, their features, and what their log directories hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from penstock.client.clients import Connection
from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import detail, full_exception_name, refused
from penstock.model.endpoints import Address
from penstock.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from penstock.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from penstock.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from penstock.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
NO_EPOCH: Final = -1
UPDATE_TIMEOUT_S: Final = 60.0


class BrokerAt(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


def list_brokers(connection: Connection) -> list[BrokerAt]:
    """By id, as Metadata tells them: those that serve."""
    with connection.wire() as client:
        answer = client.ask(MetadataRequest(topics=[], allow_auto_topic_creation=False), MetadataResponse)
    return sorted(BrokerAt(one.node_id, one.host, one.port, one.rack) for one in answer.brokers)


def versions_of(connection: Connection, broker: BrokerAt) -> dict[int, tuple[int, int]]:
    """By API key: the lowest and the highest version that the broker understands. Refused, Unreachable."""
    with connection.wire(broker.address) as client:
        return {one.api_key: (one.min_version, one.max_version) for one in client.api_versions.api_keys}


def cluster_id(client: ClusterClient) -> str:
    return _described(client, with_fenced=False).cluster_id


def endpoints(client: ClusterClient, *, with_fenced: bool = False) -> list[BrokerAt]:
    """In the cluster's order, with those that may not serve yet where they are wanted."""
    return [
        BrokerAt(one.broker_id, one.host, one.port, one.rack, one.is_fenced)
        for one in _described(client, with_fenced=with_fenced).brokers
    ]


def _described(client: ClusterClient, *, with_fenced: bool) -> DescribeClusterResponse:
    answer = client.ask(DescribeClusterRequest(include_fenced_brokers=with_fenced), DescribeClusterResponse)
    if answer.error_code:
        raise refused(answer.error_code, answer.error_message)
    return answer


def unregister(client: ClusterClient, broker_id: int) -> None:
    """A broker that is gone for good. UnsupportedByBroker with ZooKeeper, where nobody is registered."""
    answer = client.ask(UnregisterBrokerRequest(broker_id=broker_id), UnregisterBrokerResponse)
    if answer.error_code:
        raise refused(answer.error_code, answer.error_message)


class Feature(NamedTuple):
    name: str
    min_version: int
    max_version: int
    level: int
    """What the cluster has agreed on; 0 where it has not."""


def features(connection: Connection) -> tuple[list[Feature], int | None]:
    """By name, and the epoch of what was agreed on."""
    with connection.wire() as client:
        answer = client.api_versions
    levels = {one.name: one.max_version_level for one in answer.finalized_features}
    found = [
        Feature(one.name, one.min_version, one.max_version, levels.get(one.name, 0))
        for one in answer.supported_features
    ]
    epoch = answer.finalized_features_epoch
    return sorted(found), None if epoch == NO_EPOCH else epoch


def update_features(
    client: ClusterClient, levels: Mapping[str, int], *, kind: int, validate_only: bool = False
) -> dict[str, str | None]:
    """By name: why a feature was not changed, or None. `kind` is UPGRADE, DOWNGRADE or UNSAFE_DOWNGRADE."""
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(
                feature=name, max_version_level=level, upgrade_type=kind, allow_downgrade=kind != UPGRADE
            )
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )
    answer = client.ask_controller(
        request,
        UpdateFeaturesResponse,
        codes=lambda found: [found.error_code, *(one.error_code for one in found.results)],
        timeout_s=UPDATE_TIMEOUT_S,
    )
    # Up to version 1 each feature has a result of its own; an error of the whole request is everybody's.
    failures = {one.feature: (one.error_code, one.error_message) for one in answer.results}
    outcome: dict[str, str | None] = {}
    for name in levels:
        code, message = failures.get(name, (0, None))
        if answer.error_code:
            code, message = answer.error_code, answer.error_message
        outcome[name] = detail(code, message) if code else None
    return outcome


def log_dirs(
    connection: Connection, broker: BrokerAt, *, topics: Collection[str] = ()
) -> list[dict[str, Any]]:
    """In the form that Kafka's tool prints; of these topics only where some are named. UnsupportedByBroker."""
    with connection.wire(broker.address) as client:
        answer = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return [
        {
            "partitions": _partitions(directory, topics),
            "error": full_exception_name(directory.error_code) if directory.error_code else None,
            "logDir": directory.log_dir,
        }
        for directory in answer.results
    ]


def _partitions(directory: DescribeLogDirsResult, topics: Collection[str]) -> list[dict[str, Any]]:
    return [
        {
            "partition": f"{topic.name}-{one.partition_index}",
            "size": one.partition_size,
            "offsetLag": one.offset_lag,
            "isFuture": one.is_future_key,
        }
        for topic in sorted(directory.topics, key=lambda topic: topic.name)
        if not topics or topic.name in topics
        for one in sorted(topic.partitions, key=lambda one: one.partition_index)
    ]
