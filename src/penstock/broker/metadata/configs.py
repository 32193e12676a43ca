"""Dynamic configuration for the handlers: what may be set, and what DescribeConfigs says."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.broker.metadata.changes import Changes
from penstock.broker.metadata.proposals import Proposals
from penstock.config.broker_options import BROKER_OPTIONS
from penstock.config.check import check_broker_dynamic, check_group_overrides, check_topic_overrides
from penstock.config.entry import ConfigEntry
from penstock.config.group_options import GROUP_OPTIONS
from penstock.config.layers import BrokerConfig
from penstock.config.option import Option
from penstock.config.topic_options import topic_option
from penstock.controller.configs import (
    ENTITY_TYPES,
    ResourceType,
    alter_configs,
    entity_of,
    incremental_alter_configs,
)
from penstock.metadata.image import ALL_BROKERS, BROKERS, CLIENT_METRICS, GROUPS, TOPICS
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.compression import CODECS
from penstock.storage.options import LogOptions, SchemaValidation
from penstock.telemetry.subscriptions import check_subscription
from penstock.wire.messages import alter_configs as legacy
from penstock.wire.messages import incremental_alter_configs as incremental

if TYPE_CHECKING:
    from penstock.broker.facets import WithBrokerId, WithConfig, WithImage, WithPasswords, WithPools

    class Needs(WithBrokerId, WithConfig, WithImage, WithPasswords, WithPools, Protocol): ...


UNNAMED: Final = {
    int(ResourceType.GROUP): "Group",
    int(ResourceType.CLIENT_METRICS): "Client metrics subscription",
}


class Configs:
    """Also the `ConfigRules` of the controller's decisions."""

    def __init__(self, node: "Needs", changes: Changes) -> None:
        self._image = node.image
        self._changes = changes
        self._config = node.config
        self._broker_id = node.broker_id
        self.proposals: Final = Proposals(node, self)

    # --- what the controller asks

    def check(self, entity_type: str, entity_name: str, overrides: Mapping[str, str]) -> None:
        if entity_type == TOPICS:
            check_topic_overrides(self._config, overrides, stored=self._image.topic_overrides(entity_name))
        elif entity_type == BROKERS:
            check_broker_dynamic(overrides, whole_cluster=entity_name == ALL_BROKERS)
        elif entity_type == GROUPS:
            check_group_overrides(self._config, overrides)
        else:
            check_subscription(overrides)

    def option(self, entity_type: str, name: str) -> Option | None:
        if entity_type == TOPICS:
            return topic_option(name)
        if entity_type == GROUPS:
            return GROUP_OPTIONS.get(name)
        return BROKER_OPTIONS.get(name) if entity_type == BROKERS else None  # as in Kafka, none is a list

    # --- what the handlers ask

    async def alter(
        self, resources: Sequence[legacy.AlterConfigsResource], *, validate_only: bool
    ) -> list[legacy.AlterConfigsResourceResponse]:
        resources, rules = await self.proposals.looked_at(resources, validate_only=validate_only)
        return await self._changes.make_for_client(
            lambda: alter_configs(
                self._image,
                resources,
                rules=rules,
                validate_only=validate_only,
                notify=self._config.get("zookeeper.connect") is not None,
            )
        )

    async def alter_incrementally(
        self, resources: Sequence[incremental.AlterConfigsResource], *, validate_only: bool
    ) -> list[incremental.AlterConfigsResourceResponse]:
        resources, rules = await self.proposals.looked_at(resources, validate_only=validate_only)
        return await self._changes.make_for_client(
            lambda: incremental_alter_configs(
                self._image,
                resources,
                rules=rules,
                validate_only=validate_only,
                notify=self._config.get("zookeeper.connect") is not None,
            )
        )

    def describe(
        self, resource_type: int, resource_name: str, names: Sequence[str] | None
    ) -> list[ConfigEntry]:
        if resource_type == ResourceType.BROKER_LOGGER:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Penstock has no loggers to configure")
        if resource_type in UNNAMED and not resource_name:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{UNNAMED[resource_type]} name must not be empty")
        entity_type, entity_name = entity_of(self._image, resource_type, resource_name)
        if entity_type == GROUPS:
            return self._config.describe_group(self._image.overrides(GROUPS, entity_name), names)
        if entity_type == CLIENT_METRICS:
            overrides = self._image.overrides(CLIENT_METRICS, entity_name)
            return self._config.describe_client_metrics(overrides, names)
        if entity_type == TOPICS:
            return self._config.describe_topic(self._image.topic_overrides(entity_name), names)
        if entity_type == BROKERS:
            if entity_name == ALL_BROKERS:
                return self._config.describe_cluster_default(names)
            if int(entity_name) != self._broker_id:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"Unexpected broker id, expected {self._broker_id} or empty string, but received {entity_name}",
                )
            return self._config.describe_broker(names)
        raise AssertionError(entity_type)

    def resources(self, wanted_types: Sequence[int]) -> list[tuple[int, str]]:
        """Every resource that carries a configuration of its own, of the types asked for; of all when none is."""
        types = set(wanted_types) or set(ResourceType)
        found: list[tuple[int, str]] = []
        for kind, entity_type in ENTITY_TYPES.items():
            if kind not in types:
                continue
            if kind == ResourceType.TOPIC:
                found += [(int(kind), name) for name in self._image.topics]
            elif kind == ResourceType.BROKER:
                found += [(int(kind), str(broker_id)) for broker_id in self._image.brokers]
            else:
                configs = self._image.configs.get(entity_type, {})
                found += [(int(kind), name) for name, overrides in configs.items() if overrides]
        if ResourceType.BROKER_LOGGER in types:
            found += [(int(ResourceType.BROKER_LOGGER), str(broker_id)) for broker_id in self._image.brokers]
        return found


def log_options(config: BrokerConfig, overrides: Mapping[str, str]) -> LogOptions:
    """A topic's options in the storage's form."""
    values = config.log_options(overrides)
    policy = values["cleanup.policy"]
    compression_type = values["compression.type"]
    return LogOptions(
        segment_bytes=values["segment.bytes"],
        segment_ms=values["segment.ms"],
        segment_jitter_ms=values["segment.jitter.ms"],
        segment_index_bytes=values["segment.index.bytes"],
        index_interval_bytes=values["index.interval.bytes"],
        max_message_bytes=values["max.message.bytes"],
        retention_bytes=values["retention.bytes"],
        retention_ms=values["retention.ms"],
        flush_messages=values["flush.messages"],
        flush_ms=values["flush.ms"],
        file_delete_delay_ms=values["file.delete.delay.ms"],
        message_timestamp_type=values["message.timestamp.type"],
        timestamp_before_max_ms=values["message.timestamp.before.max.ms"],
        timestamp_after_max_ms=values["message.timestamp.after.max.ms"],
        compression_codec=CODECS.get(compression_type),
        compression_level=values.get(f"compression.{compression_type}.level"),
        compacted="compact" in policy,
        delete_enabled="delete" in policy,
        delete_retention_ms=values["delete.retention.ms"],
        min_cleanable_dirty_ratio=values["min.cleanable.dirty.ratio"],
        min_compaction_lag_ms=values["min.compaction.lag.ms"],
        max_compaction_lag_ms=values["max.compaction.lag.ms"],
        producer_id_expiration_ms=config.get("producer.id.expiration.ms"),
        schema_validation=_schema_validation(values),
    )


def _schema_validation(values: Mapping[str, Any]) -> SchemaValidation | None:
    key, value = (
        values[f"confluent.{what}.subject.name.strategy"].rpartition(".")[2]
        if values[f"confluent.{what}.schema.validation"]
        else None
        for what in ("key", "value")
    )
    return SchemaValidation(key, value) if key or value else None
