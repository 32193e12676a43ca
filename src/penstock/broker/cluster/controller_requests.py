"""Requests of brokers and clients to the controller. `penstock.controller` decides, `Changes` makes the change, then the
request is answered."""

from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.cluster.reassignments import progress_reassignments
from penstock.controller import reassignments
from penstock.controller.decision import Decision
from penstock.controller.elections import elect_leaders
from penstock.controller.isr import alter_partition
from penstock.controller.shutdown import controlled_shutdown
from penstock.metadata.image import BrokerRegistration
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignableTopicResponse,
)
from penstock.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from penstock.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from penstock.wire.messages.elect_leaders import ElectLeadersRequest, ReplicaElectionResult
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from penstock.wire.schema import Message

if TYPE_CHECKING:
    from penstock.broker.cluster.channels import Channels
    from penstock.broker.facets import WithChanges, WithClock, WithImage, WithTopics

    class Needs(WithChanges, WithClock, WithImage, WithTopics, Protocol): ...


SETTLE_SECONDS: Final = 2.0
"""How long an answer waits until every broker knows of the change."""


class ActiveController(Protocol):
    """The controller, as far as requests touch it."""

    is_active: bool
    channels: "Channels"
    shutting_down: set[int]


class ControllerRequests:
    def __init__(self, node: "Needs", controlling: ActiveController) -> None:
        self._node = node
        self._controlling = controlling

    async def answer(self, request: Message) -> Message:
        """What this broker asks the controller, when it is the controller itself."""
        if isinstance(request, AlterPartitionRequest):
            return await self.alter_partition(request)
        if isinstance(request, CreateTopicsRequest):
            return CreateTopicsResponse(topics=await self._node.topics.create(request))
        assert isinstance(request, ControlledShutdownRequest)
        return await self.controlled_shutdown(request)

    def _check_active(self) -> None:
        if not self._controlling.is_active:
            raise ApiError(ErrorCode.NOT_CONTROLLER)

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self._check_active()
        node = self._node
        image = node.image
        topics = await node.changes.make(
            lambda: alter_partition(
                image,
                request,
                # As they are when it is decided: others may be before us.
                broker_epochs={broker.id: broker.epoch for broker in image.brokers.values()},
                shutting_down=self._controlling.shutting_down,
            )
        )
        changed = []
        for topic in topics:
            name = node.image.topic_name(topic.topic_id)
            if name is not None:
                changed += [(name, answer.partition_index) for answer in topic.partitions]
        if any(placed is not None and (placed.adding or placed.removing) for placed in
               (node.image.partition(*topic_partition) for topic_partition in changed)):  # fmt: skip
            await self._progress_reassignments()
        return AlterPartitionResponse(topics=topics)

    async def controlled_shutdown(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        self._check_active()
        node = self._node
        broker_id = request.broker_id
        stopping: BrokerRegistration | None = None
        asked_at = node.clock.monotonic()
        # Whoever does not answer may be gone, and its log be shorter when it is back.
        await self._controlling.channels.hear(asked_at)

        def decide() -> Decision[RemainingPartition]:
            nonlocal stopping
            stopping = node.image.brokers.get(broker_id)
            return controlled_shutdown(
                node.image,
                broker_id,
                self._controlling.shutting_down,
                broker_epoch=request.broker_epoch,
                silent=self._controlling.channels.silent(asked_at),
            )

        remaining = await node.changes.make(decide)
        now = node.image.brokers.get(broker_id)
        # It may have gone and come back while that was written.
        if (
            self._controlling.is_active
            and now is not None
            and stopping is not None
            and now.epoch == stopping.epoch
        ):
            self._controlling.shutting_down.add(broker_id)
        await self._controlling.channels.settle(SETTLE_SECONDS)
        return ControlledShutdownResponse(remaining_partitions=remaining)

    async def elect_leaders(self, request: ElectLeadersRequest) -> list[ReplicaElectionResult]:
        node = self._node
        return await node.changes.make_for_client(
            lambda: elect_leaders(node.image, request, leaving=self._controlling.shutting_down),
            request.timeout_ms,
        )

    async def alter_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> list[ReassignableTopicResponse]:
        self._check_active()
        node = self._node
        responses = await node.changes.make_for_client(
            lambda: reassignments.alter(node.image, request, leaving=self._controlling.shutting_down),
            request.timeout_ms,
        )
        await self._progress_reassignments()
        return responses

    def list_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        self._check_active()
        return ListPartitionReassignmentsResponse(topics=reassignments.list_(self._node.image, request))

    async def _progress_reassignments(self) -> None:
        await progress_reassignments(self._node, leaving=self._controlling.shutting_down)
