"""Topics for the handlers: created, grown and deleted by the controller's decisions."""

from asyncio import Task, shield, sleep, wait_for
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.metadata.changes import Changes
from penstock.broker.metadata.unfinished import marked_topics, nodes_of
from penstock.config.check import check_topic_overrides
from penstock.controller import names
from penstock.controller.decision import Charge, Decision, free
from penstock.controller.partitions import create_partitions
from penstock.controller.topics import TopicDefaults, create_topics, delete_topics, incomplete_topics
from penstock.metadata.image import Topic
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopicResult
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithClock,
        WithClustered,
        WithConfig,
        WithController,
        WithControlling,
        WithImage,
        WithLoop,
        WithRandom,
        WithTree,
    )

    class Needs(
        WithClock,
        WithClustered,
        WithConfig,
        WithController,
        WithControlling,
        WithImage,
        WithLoop,
        WithRandom,
        WithTree,
        Protocol,
    ): ...


CREATE_TIMEOUT_SECONDS: Final = 30.0
MADE_AFTER_SECONDS: Final = 2.0
"""For so long a client waits for a topic that is made on its first use: what it asks on the same connection waits too."""
BROKERS_KNOW_SECONDS: Final = 1.0
KNOWN_AFTER_SECONDS: Final = 5.0
"""A topic that the controller has made is known here soon after."""


class Topics:
    def __init__(self, node: "Needs", changes: Changes) -> None:
        self._node = node
        self._image = node.image
        self._changes = changes
        self._config = node.config
        self._random = node.random
        self._in_the_making: dict[str, Task[Topic]] = {}

    async def create(self, request: CreateTopicsRequest, charge: Charge = free) -> list[CreatableTopicResult]:
        config = self._config

        async def decide() -> Decision[CreatableTopicResult]:
            marked = await marked_topics(self._node.tree)
            return create_topics(
                self._image,
                request,
                defaults=TopicDefaults(
                    config.get("num.partitions"), config.get("default.replication.factor")
                ),
                check_overrides=lambda overrides: check_topic_overrides(config, overrides),
                new_topic_id=lambda: self._random.randbytes(16),
                start_index=self._random.randrange(1 << 16),
                marked=marked,
                leaving=self._leaving,
                charge=charge,
            )

        results = await self._changes.make_for_client(decide, request.timeout_ms)
        await self._until_brokers_know()
        return results

    async def delete(self, request: DeleteTopicsRequest, charge: Charge = free) -> list[DeletableTopicResult]:
        enabled = bool(self._config.get("delete.topic.enable"))
        tree = self._node.tree

        async def decide() -> Decision[DeletableTopicResult]:
            marked = await marked_topics(tree)
            existing = await nodes_of(tree, incomplete_topics(self._image, request))
            return delete_topics(
                self._image,
                request,
                deletion_enabled=enabled,
                marked=marked,
                existing=existing,
                charge=charge,
            )

        return await self._changes.make_for_client(decide, request.timeout_ms)

    async def grow(
        self, request: CreatePartitionsRequest, charge: Charge = free
    ) -> list[CreatePartitionsTopicResult]:
        results = await self._changes.make_for_client(
            lambda: create_partitions(self._image, request, leaving=self._leaving, charge=charge),
            request.timeout_ms,
        )
        await self._until_brokers_know()
        return results

    async def _until_brokers_know(self) -> None:
        """So that whoever has made a partition finds a leader for it; one that does not answer is not waited for."""
        if self._node.is_clustered:
            await self._node.controlling.channels.settle(BROKERS_KNOW_SECONDS)

    @property
    def _leaving(self) -> Container[int]:
        return self._node.controlling.shutting_down if self._node.is_clustered else ()

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
                    get("transaction.state.log.min.isr") if self._node.is_clustered else 1
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
                # As many copies as there are brokers to hold them, where one broker is the whole cluster.
                replication_factor=replication_factor if self._node.is_clustered else 1,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in overrides.items()],
            )
        )

    async def _ensure(self, wanted: CreatableTopic) -> Topic:
        name = wanted.name
        topic = self._image.topic(name)
        if topic is not None:
            return topic
        making = self._in_the_making.get(name)
        if making is None:
            making = self._in_the_making[name] = self._node.loop.create_task(self._make(wanted))
            making.add_done_callback(self._made)
        try:
            return await wait_for(shield(making), MADE_AFTER_SECONDS)
        except TimeoutError:
            raise ApiError(
                ErrorCode.LEADER_NOT_AVAILABLE, f"the controller has not created {name} yet"
            ) from None

    def _made(self, making: "Task[Topic]") -> None:
        self._in_the_making = {name: task for name, task in self._in_the_making.items() if task is not making}
        if not making.cancelled():
            making.exception()  # of those who asked, none may have waited for it

    async def _make(self, wanted: CreatableTopic) -> Topic:
        (result,) = await self._create_anywhere(CreateTopicsRequest(topics=[wanted]))
        # Somebody else may have been faster; that is as good.
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise ApiError(ErrorCode(result.error_code), result.error_message)
        topic = await self._when_known(wanted.name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic

    async def _create_anywhere(self, request: CreateTopicsRequest) -> Sequence[CreatableTopicResult]:
        """By the controller, which may be another broker."""
        if not self._node.is_clustered:
            return await self.create(request)
        request.timeout_ms = int(CREATE_TIMEOUT_SECONDS * 1000)
        try:
            response = await self._node.ask_controller(
                request, CreateTopicsResponse, timeout_s=CREATE_TIMEOUT_SECONDS
            )
        except OSError as error:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, str(error)) from error
        return response.topics

    async def _when_known(self, name: str) -> Topic | None:
        deadline = self._node.clock.monotonic() + KNOWN_AFTER_SECONDS
        while self._image.topic(name) is None and self._node.clock.monotonic() < deadline:
            if not self._node.is_clustered:
                break
            await sleep(0.01)
        return self._image.topic(name)
