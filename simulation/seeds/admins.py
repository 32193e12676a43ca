"""Somebody who makes topics, lets them grow and deletes them while everything else goes on, and who moves the partitions of one
that others work with, has its preferred replicas lead and changes its configuration.
"""

from asyncio import sleep
from collections.abc import Sequence
from typing import Final

from penstock.model.errors import ErrorCode
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from simulation.seeds.client import Client
from simulation.seeds.history import History, Place
from simulation.seeds.producers import RETRIABLE
from simulation.seeds.wire import Unanswered

TIMEOUT_MS: Final = 4_000
TOO_FEW_BROKERS: Final = ErrorCode.INVALID_REPLICATION_FACTOR
"""A passing trouble in a simulation: brokers come back."""
NOT_MOVED: Final = RETRIABLE | {ErrorCode.INVALID_REPLICA_ASSIGNMENT}
"""Also when one of the brokers is not there."""
NOT_ELECTED: Final = RETRIABLE | {
    ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}  # fmt: skip
TOPIC_RESOURCE: Final = 2
LEAST_REPLICAS: Final = 2
"""As many as must be in sync for an acknowledgement."""
SMALLEST_MESSAGE_LIMIT: Final = 1_000_000


class Admin:
    def __init__(self, client: Client, history: History, *, replicas: int) -> None:
        self._client = client
        self._history = history
        self._replicas = replicas
        self._number = 0
        self._partitions: dict[str, int] = {}
        self._asked_again: set[str] = set()
        """The first request for such a topic may arrive when it was made and deleted, and make it anew."""
        self.expected: dict[str, bool] = {}
        """Whether a topic must be there in the end; one whose change was not answered for certain is not here."""

    @property
    def client(self) -> Client:
        return self._client

    async def run(self, topic: str, partitions: int, brokers: Sequence[int], *, until: float) -> None:
        """`topic`: what others work with, which has so many partitions."""
        random = self._client.random
        loop = self._client.process.loop
        while loop.time() < until:
            try:
                what = random.randrange(5) if len(brokers) > 1 else 0
                if what < 2:
                    await self._come_and_go()
                elif what == 2:
                    replicas = random.sample(brokers, random.randint(LEAST_REPLICAS, self._replicas))
                    await self.reassign((topic, random.randrange(partitions)), replicas)
                elif what == 3:
                    await self.elect()
                else:
                    await self.configure(topic)
            except Unanswered:
                await self._client.pause()
            await sleep(random.random())

    async def _come_and_go(self) -> None:
        random = self._client.random
        name = f"temporary-{self._number}"
        self._number += 1
        partitions = random.randint(1, 2)
        await self.create(name, partitions=partitions)
        await sleep(random.random())
        if random.random() < 0.5:
            await self.grow(name, partitions + 1)
        await sleep(random.random())
        if random.random() < 0.7:
            await self.delete(name)

    async def reassign(self, place: Place, replicas: list[int]) -> None:
        """Asked once."""
        wanted = ReassignablePartition(partition_index=place[1], replicas=replicas)
        topic = ReassignableTopic(name=place[0], partitions=[wanted])
        request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=[topic])
        answer = await self._client.ask_any(request, AlterPartitionReassignmentsResponse, 0)
        code = answer.error_code or answer.responses[0].partitions[0].error_code
        self._judge(f"move {place[0]}-{place[1]} to {replicas}", code, NOT_MOVED)

    async def elect(self) -> None:
        """Have the preferred replicas lead, everywhere. Asked once."""
        request = ElectLeadersRequest(topic_partitions=None, timeout_ms=TIMEOUT_MS)
        answer = await self._client.ask_any(request, ElectLeadersResponse, 2)
        self._judge("elect leaders", answer.error_code, NOT_ELECTED)
        for topic in answer.replica_election_results:
            for partition in topic.partition_result:
                text = f"elect a leader of {topic.topic}-{partition.partition_id}"
                self._judge(text, partition.error_code, NOT_ELECTED)

    async def configure(self, topic: str) -> None:
        """Asked once."""
        value = str(SMALLEST_MESSAGE_LIMIT + self._client.random.randrange(1000))
        resource = AlterConfigsResource(
            resource_type=TOPIC_RESOURCE,
            resource_name=topic,
            configs=[AlterableConfig(name="max.message.bytes", value=value)],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer = await self._client.ask_any(request, IncrementalAlterConfigsResponse, 1)
        self._judge(f"configure {topic}", answer.responses[0].error_code, RETRIABLE)

    def _judge(self, what: str, code: int, passing: frozenset[ErrorCode]) -> None:
        if code == ErrorCode.NONE:
            self._history.counts["changes by an admin"] += 1
        elif code not in passing:
            self._history.violated(f"{what}: refused with {ErrorCode(code).name}")

    async def grow(self, name: str, partitions: int) -> None:
        """Until it has so many."""
        wanted = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        while True:
            request = CreatePartitionsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
            answer = await self._client.ask_any(request, CreatePartitionsResponse, 2)
            code = answer.results[0].error_code
            if code in (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS):  # it had so many, after an earlier try
                break
            await self._again(f"grow {name}", code)
        self._partitions[name] = partitions

    async def create(
        self, name: str, *, partitions: int, min_insync_replicas: int = 1, segment_bytes: int | None = None
    ) -> None:
        """Until it is there."""
        configs = {"min.insync.replicas": str(min_insync_replicas)}
        if segment_bytes is not None:
            configs["internal.segment.bytes"] = str(segment_bytes)
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=self._replicas,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        retries = self._client.retries
        while True:
            request = CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
            answer = await self._client.ask_any(request, CreateTopicsResponse, 5)
            code = answer.topics[0].error_code
            if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                break
            retries = -1
            await self._again(f"create {name}", code)
        if retries != self._client.retries:
            self._asked_again.add(name)
        self.expected[name] = True

    async def delete(self, name: str) -> None:
        """Until it is gone."""
        del self.expected[name]
        while True:
            request = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
            answer = await self._client.ask_any(request, DeleteTopicsResponse, 5)
            code = answer.responses[0].error_code
            # A retry may find it gone; so may one who asks a broker that has not heard of the topic yet.
            if code == ErrorCode.NONE:
                if name not in self._asked_again:
                    self.expected[name] = False
                return
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return
            await self._again(f"delete {name}", code)

    async def _again(self, what: str, code: int) -> None:
        if code not in RETRIABLE and code != TOO_FEW_BROKERS:
            self._history.violated(f"{what}: refused with {ErrorCode(code).name}")
        await self._client.pause()

    async def check(self, client: Client) -> None:
        """In the end: what was answered is so."""
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        answer = await client.ask_any(request, MetadataResponse, 9)
        there = {topic.name: len(topic.partitions) for topic in answer.topics}
        for name, partitions in self._partitions.items():
            if self.expected.get(name) and there.get(name, partitions) != partitions:
                self._history.violated(
                    f"topic {name} has {there[name]} partitions and was to have {partitions}"
                )
        for name, expected in self.expected.items():
            if (name in there) is not expected:
                self._history.violated(
                    f"topic {name} was {'created' if expected else 'deleted'}, and is {'not ' if expected else ''}there"
                )
