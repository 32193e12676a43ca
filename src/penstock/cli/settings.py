"""The settings of topics, brokers, groups and client metrics, asked and changed.

Over the wire, because librdkafka's Python binding keeps one synonym per name and has no name for the default broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.cli.clients import Connection
from penstock.cli.error_names import detail, full_exception_name
from penstock.cli.failures import Refused, UserError
from penstock.model.errors import ErrorCode

if TYPE_CHECKING:
    from penstock.cli.cluster_client import ClusterClient
    from penstock.wire.messages.describe_configs import DescribeConfigsResult
    from penstock.wire.messages.incremental_alter_configs import AlterConfigsResource

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
TOPICS_PER_REQUEST = 500
SET, DELETE = 0, 1
OF_TOPIC, OF_BROKER = 1, 2
ALTER_TIMEOUT_S = 30.0
"""A broker whose ZooKeeper is away says so, but not before it has waited for it."""


class Synonym(NamedTuple):
    source: int
    name: str
    value: str | None


class Setting(NamedTuple):
    name: str
    value: str | None
    source: int
    is_sensitive: bool
    synonyms: list[Synonym]


class Change(NamedTuple):
    added: dict[str, str]
    deleted: list[str]


def describe_settings(connection: Connection, kind: int, name: str) -> list[Setting]:
    """Sorted by name. `kind` is one of those above; the broker "" stands for all brokers."""
    return sorted(_described(connection, kind, name), key=lambda setting: setting.name)


def topics_settings(
    client: ClusterClient, topics: Iterable[str], names: list[str]
) -> Iterator[DescribeConfigsResult]:
    """These settings of many topics. One that was deleted in the meantime is left out."""
    from penstock.wire.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResponse,
    )

    asked = list(topics)
    for start in range(0, len(asked), TOPICS_PER_REQUEST):
        resources = [
            DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=names)
            for topic in asked[start : start + TOPICS_PER_REQUEST]
        ]
        answer = client.ask(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
        for described in answer.results:
            if described.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                _refuse(described.error_code, described.error_message)
                yield described


def configured(connection: Connection, kind: int) -> list[str]:
    """The names of the groups, or of the client metrics subscriptions, that have settings of their own."""
    from penstock.wire.messages.list_config_resources import (
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
    )

    # Before Kafka 4.1 brokers have version 0 only, which is about client metrics and nothing else.
    with connection.wire() as client:
        answer = client.ask(ListConfigResourcesRequest(resource_types=[kind]), ListConfigResourcesResponse)
    _refuse(answer.error_code, None)
    return [resource.resource_name for resource in answer.config_resources]


def _client(connection: Connection, kind: int, name: str) -> Any:
    """To the broker itself where the settings are a broker's: nobody else knows what is in its file."""
    from penstock.model.endpoints import Address
    from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse

    client = connection.wire()
    if kind != BROKER or not name:
        return client
    with client:
        answer = client.ask(MetadataRequest(topics=[], allow_auto_topic_creation=False), MetadataResponse)
    for broker in answer.brokers:
        if str(broker.node_id) == name:
            return connection.wire(Address(broker.host, broker.port))
    raise UserError(f"there is no broker {name}")


def _described(connection: Connection, kind: int, name: str) -> list[Setting]:
    from penstock.wire.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResponse,
    )

    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    with _client(connection, kind, name) as client:
        answer = client.ask(request, DescribeConfigsResponse)
    settings = []
    for described in answer.results:
        _refuse(described.error_code, described.error_message)
        for entry in described.configs:
            synonyms = [Synonym(one.source, one.name, one.value) for one in entry.synonyms]
            settings.append(
                Setting(entry.name, entry.value, entry.config_source, entry.is_sensitive, synonyms)
            )
    return settings


def alter_settings(connection: Connection, kind: int, name: str, change: Change) -> None:
    from penstock.wire.messages.incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

    request = IncrementalAlterConfigsRequest(resources=[changed_resource(kind, name, change)])
    with _client(connection, kind, name) as client:
        answer = client.ask(request, IncrementalAlterConfigsResponse, timeout_s=ALTER_TIMEOUT_S)
    for response in answer.responses:
        _refuse(response.error_code, response.error_message)


def changed_resource(kind: int, name: str, change: Change) -> AlterConfigsResource:
    from penstock.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

    configs = [
        AlterableConfig(name=key, config_operation=SET, value=value) for key, value in change.added.items()
    ] + [AlterableConfig(name=key, config_operation=DELETE, value=None) for key in change.deleted]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def _refuse(code: int, message: str | None) -> None:
    if code:
        raise Refused(detail(code, message), code=code, exception_name=full_exception_name(code))
