"""Topics for the handlers: created, grown and deleted by the controller's decisions."""

import os
import random

from penstock.broker.changes import Changes
from penstock.config.check import check_topic_overrides
from penstock.config.layers import BrokerConfig
from penstock.controller import names
from penstock.controller.partitions import create_partitions
from penstock.controller.topics import TopicDefaults, create_topics, delete_topics
from penstock.metadata.image import ClusterImage, Topic
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopicResult
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from penstock.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest


class Topics:
    def __init__(self, image: ClusterImage, changes: Changes, config: BrokerConfig) -> None:
        self._image = image
        self._changes = changes
        self._config = config

    def is_internal(self, name: str) -> bool:
        return names.is_internal(name)

    async def create(self, request: CreateTopicsRequest) -> list[CreatableTopicResult]:
        config = self._config
        return await self._changes.make(
            lambda: create_topics(
                self._image,
                request,
                defaults=TopicDefaults(
                    config.get("num.partitions"), config.get("default.replication.factor")
                ),
                check_overrides=lambda overrides: check_topic_overrides(config, overrides),
                new_topic_id=lambda: os.urandom(16),
                start_index=random.randrange(1 << 16),
            )
        )

    async def delete(self, request: DeleteTopicsRequest) -> list[DeletableTopicResult]:
        enabled = bool(self._config.get("delete.topic.enable"))
        return await self._changes.make(lambda: delete_topics(self._image, request, deletion_enabled=enabled))

    async def grow(self, request: CreatePartitionsRequest) -> list[CreatePartitionsTopicResult]:
        return await self._changes.make(lambda: create_partitions(self._image, request))

    async def auto_create(self, name: str, *, allowed: bool) -> Topic:
        """The topic a client named and nobody made; ApiError when it may not be made on first use."""
        if name == CONSUMER_OFFSETS:
            return await self.consumer_offsets()
        if name == TRANSACTION_STATE:
            return await self.transaction_state()
        reason = names.why_invalid(name)
        if reason is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        if not allowed or not self._config.get("auto.create.topics.enable"):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return await self._ensure(CreatableTopic(name=name, num_partitions=-1, replication_factor=-1))

    async def consumer_offsets(self) -> Topic:
        """`__consumer_offsets`, made on its first use with the broker's options for it."""
        get = self._config.get
        return await self._ensure_internal(
            CONSUMER_OFFSETS,
            num_partitions=get("offsets.topic.num.partitions"),
            replication_factor=get("offsets.topic.replication.factor"),
            overrides={
                "cleanup.policy": "compact",
                "segment.bytes": str(get("offsets.topic.segment.bytes")),
                "compression.type": "producer",
            },
        )

    async def transaction_state(self) -> Topic:
        """`__transaction_state`, likewise."""
        get = self._config.get
        return await self._ensure_internal(
            TRANSACTION_STATE,
            num_partitions=get("transaction.state.log.num.partitions"),
            replication_factor=get("transaction.state.log.replication.factor"),
            overrides={
                "cleanup.policy": "compact",
                "segment.bytes": str(get("transaction.state.log.segment.bytes")),
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": str(
                    min(get("transaction.state.log.min.isr"), len(self._image.brokers))
                ),
            },
        )

    async def _ensure_internal(
        self, name: str, *, num_partitions: int, replication_factor: int, overrides: dict[str, str]
    ) -> Topic:
        topic = self._image.topic(name)
        if topic is not None:
            return topic
        return await self._ensure(
            CreatableTopic(
                name=name,
                num_partitions=num_partitions,
                # As many copies as there are brokers to hold them: a single broker is a whole cluster here.
                replication_factor=min(replication_factor, len(self._image.brokers)),
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in overrides.items()],
            )
        )

    async def _ensure(self, wanted: CreatableTopic) -> Topic:
        topic = self._image.topic(wanted.name)
        if topic is None:
            (result,) = await self.create(CreateTopicsRequest(topics=[wanted]))
            # Somebody else may have been faster; that is as good.
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                raise ApiError(ErrorCode(result.error_code), result.error_message)
            topic = self._image.topic(wanted.name)
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic
