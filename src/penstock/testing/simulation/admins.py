"""Somebody who makes topics and deletes them while everything else goes on."""

from asyncio import sleep
from typing import Final

from penstock.model.errors import ErrorCode
from penstock.testing.simulation.client import Client
from penstock.testing.simulation.history import History
from penstock.testing.simulation.producers import RETRIABLE
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse

TIMEOUT_MS: Final = 4_000
TOO_FEW_BROKERS: Final = ErrorCode.INVALID_REPLICATION_FACTOR
"""A passing trouble in a simulation: brokers come back."""


class Admin:
    def __init__(self, client: Client, history: History, *, replicas: int) -> None:
        self._client = client
        self._history = history
        self._replicas = replicas
        self.expected: dict[str, bool] = {}
        """Whether a topic must be there in the end; one whose change was not answered for certain is not here."""

    @property
    def client(self) -> Client:
        return self._client

    async def run(self, *, until: float) -> None:
        random = self._client.random
        loop = self._client.process.loop
        number = 0
        while loop.time() < until:
            name = f"temporary-{number}"
            number += 1
            await self.create(name, partitions=random.randint(1, 2))
            await sleep(random.random() * 2.0)
            if random.random() < 0.7:
                await self.delete(name)

    async def create(self, name: str, *, partitions: int, min_insync_replicas: int = 1) -> None:
        """Until it is there."""
        wanted = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=self._replicas,
            configs=[CreatableTopicConfig(name="min.insync.replicas", value=str(min_insync_replicas))],
        )
        while True:
            request = CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
            answer = await self._client.ask_any(request, CreateTopicsResponse, 5)
            code = answer.topics[0].error_code
            if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                break
            await self._again(f"create {name}", code)
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
        there = {topic.name for topic in answer.topics}
        for name, expected in self.expected.items():
            if (name in there) is not expected:
                self._history.violated(
                    f"topic {name} was {'created' if expected else 'deleted'}, and is {'not ' if expected else ''}there"
                )
