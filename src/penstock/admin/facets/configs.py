"""`cluster.configs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.admin import configs
from penstock.admin.clients import ClusterClients
from penstock.admin.configs import Change, ConfigEntry


class ConfigResource(NamedTuple):
    """What configs belong to. Make one with the methods: `ConfigResource.topic("orders")`."""

    kind: int
    """Kafka's number of the type."""
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        """The configs of a topic."""
        return cls(configs.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int) -> ConfigResource:
        """The configs of one broker."""
        return cls(configs.BROKER, str(broker_id))

    @classmethod
    def all_brokers(cls) -> ConfigResource:
        """The configs that hold for all brokers that have no value of their own."""
        return cls(configs.BROKER, "")

    @classmethod
    def group(cls, name: str) -> ConfigResource:
        """The configs of a group."""
        return cls(configs.GROUP, name)

    @classmethod
    def client_metrics(cls, name: str) -> ConfigResource:
        """The configs of a subscription to clients' metrics."""
        return cls(configs.CLIENT_METRICS, name)

    def __str__(self) -> str:
        if self.kind != configs.BROKER:
            return self.name
        return f"broker {self.name}" if self.name else "all brokers"


class Configs:
    """The configs of a cluster's topics, brokers and groups."""

    def __init__(self, clients: ClusterClients) -> None:
        self._clients = clients

    def describe(self, resource: ConfigResource) -> list[ConfigEntry]:
        """All configs by name, each with its source and synonyms (where else it is set, the strongest first).

        >>> entries = cluster.configs.describe(ConfigResource.topic("orders"))
        >>> [(one.name, one.value) for one in entries if not one.is_default]
        [('retention.ms', '86400000')]
        """
        return self._clients.call(lambda client: configs.describe_configs(client, *resource))

    def alter(
        self,
        resource: ConfigResource,
        *,
        set: Mapping[str, str] | None = None,
        delete: Iterable[str] = (),
        validate_only: bool = False,
    ) -> None:
        """Sets some configs and deletes others, so that their defaults hold again; the rest stays. Refused changes nothing.
        `validate_only` checks and changes nothing.

        >>> cluster.configs.alter(ConfigResource.topic("orders"), set={"retention.ms": "1000"})
        """
        change = Change(dict(set or {}), list(delete))
        self._clients.change(
            lambda client: configs.alter_configs(client, *resource, change, validate_only=validate_only)
        )

    def of_topics(self, *names: str) -> dict[str, dict[str, ConfigEntry]]:
        """All configs of many topics, in few requests. A topic that is not there is left out.

        >>> cluster.configs.of_topics("orders")["orders"]["cleanup.policy"].value
        'delete'
        """
        from penstock.admin.topics import topic_configs

        return self._clients.call(lambda client: topic_configs(client, names))

    def configured_groups(self) -> list[str]:
        """The groups that have configs of their own.

        >>> cluster.configs.configured_groups()
        ['billing']
        """
        return self._clients.call(lambda client: configs.configured(client, configs.GROUP))

    def configured_client_metrics(self) -> list[str]:
        """The subscriptions to clients' metrics.

        >>> cluster.configs.configured_client_metrics()
        []
        """
        return self._clients.call(lambda client: configs.configured(client, configs.CLIENT_METRICS))
