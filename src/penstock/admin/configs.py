"""The configs of topics, brokers, groups and client metrics, asked and changed.

Over the wire, because librdkafka's Python binding keeps one synonym per name and has no name for the default broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import UserError
from penstock.model.errors import ErrorCode
from penstock.wire.schema import Message

if TYPE_CHECKING:
    from penstock.wire.messages.describe_configs import DescribeConfigsResult
    from penstock.wire.messages.incremental_alter_configs import AlterConfigsResource

R = TypeVar("R", bound=Message)

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
TOPICS_PER_REQUEST = 500
SET, DELETE = 0, 1
OF_TOPIC, OF_BROKER, DEFAULT = 1, 2, 5
SOURCE_NAMES = {
    0: "UNKNOWN",
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
ALTER_TIMEOUT_S = 30.0
"""A broker whose ZooKeeper is away says so, but not before it has waited for it."""


class Synonym(NamedTuple):
    """Another place that sets the same config; the first of a config's synonyms counts."""

    source: int
    name: str
    value: str | None

    @property
    def source_name(self) -> str:
        return SOURCE_NAMES.get(self.source, "UNKNOWN")


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    """None where it is sensitive, or not set."""
    source: int
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    is_read_only: bool = False
    """It can be set in the broker's file only."""

    @property
    def source_name(self) -> str:
        """Kafka's name of where the value comes from, such as DYNAMIC_TOPIC_CONFIG."""
        return SOURCE_NAMES.get(self.source, "UNKNOWN")

    @property
    def is_default(self) -> bool:
        return self.source == DEFAULT


class Change(NamedTuple):
    added: dict[str, str]
    deleted: list[str]


def describe_configs(client: ClusterClient, kind: int, name: str) -> list[ConfigEntry]:
    """Sorted by name. `kind` is one of those above; the broker "" stands for all brokers."""
    from penstock.wire.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResponse,
    )

    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    answer = _ask(client, kind, name, request, DescribeConfigsResponse)
    entries = []
    for described in answer.results:
        _refuse(described.error_code, described.error_message)
        entries += config_entries(described)
    return sorted(entries, key=lambda entry: entry.name)


def config_entries(described: DescribeConfigsResult) -> list[ConfigEntry]:
    return [
        ConfigEntry(
            entry.name,
            entry.value,
            entry.config_source,
            entry.is_sensitive,
            tuple(Synonym(one.source, one.name, one.value) for one in entry.synonyms),
            entry.read_only,
        )
        for entry in described.configs
    ]


def topics_configs(
    client: ClusterClient, topics: Iterable[str], names: list[str] | None
) -> Iterator[DescribeConfigsResult]:
    """These configs of many topics, or all where `names` is None. A topic that was deleted in the meantime is left out."""
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


def configured(client: ClusterClient, kind: int) -> list[str]:
    """The names of the groups, or of the client metrics subscriptions, that have configs of their own."""
    from penstock.wire.messages.list_config_resources import (
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
    )

    # Before Kafka 4.1 brokers have version 0 only, which is about client metrics and nothing else.
    answer = client.ask(ListConfigResourcesRequest(resource_types=[kind]), ListConfigResourcesResponse)
    _refuse(answer.error_code, None)
    return [resource.resource_name for resource in answer.config_resources]


def alter_configs(
    client: ClusterClient, kind: int, name: str, change: Change, *, validate_only: bool = False
) -> None:
    from penstock.wire.messages.incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )

    request = IncrementalAlterConfigsRequest(
        resources=[changed_resource(kind, name, change)], validate_only=validate_only
    )
    answer = _ask(client, kind, name, request, IncrementalAlterConfigsResponse, timeout_s=ALTER_TIMEOUT_S)
    for response in answer.responses:
        _refuse(response.error_code, response.error_message)


def _ask(
    client: ClusterClient,
    kind: int,
    name: str,
    request: Message,
    answer: type[R],
    *,
    timeout_s: float | None = None,
) -> R:
    """The broker itself where the configs are a broker's: no other broker knows what is in its file."""
    if kind != BROKER or not name:
        return client.ask(request, answer, timeout_s=timeout_s)
    for node in client.nodes():
        if str(node.node_id) == name:
            return client.ask_node(node, request, answer, timeout_s=timeout_s)
    raise UserError(f"there is no broker {name}")


def changed_resource(kind: int, name: str, change: Change) -> AlterConfigsResource:
    from penstock.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

    configs = [
        AlterableConfig(name=key, config_operation=SET, value=value) for key, value in change.added.items()
    ] + [AlterableConfig(name=key, config_operation=DELETE, value=None) for key in change.deleted]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def _refuse(code: int, message: str | None) -> None:
    if code:
        raise refused(code, message)
