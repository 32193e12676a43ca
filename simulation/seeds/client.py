"""What every client of a simulation needs: connections to brokers, and where leaders and coordinators are."""

from asyncio import sleep, timeout
from typing import Final, TypeVar

from penstock.model.errors import ErrorCode
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from penstock.wire.schema import Message
from simulation.seeds.history import Place
from simulation.seeds.process import Process
from simulation.seeds.sockets import Address
from simulation.seeds.wire import Unanswered, Wire, open_wire

Response = TypeVar("Response", bound=Message)

ANSWER_SECONDS: Final = 6.0
CONNECT_SECONDS: Final = 2.0
BACKOFF_SECONDS: Final = 0.15
GROUP: Final = 0
TRANSACTION: Final = 1


class Client:
    def __init__(self, process: Process, bootstrap: list[Address]) -> None:
        self.process = process
        self.name = process.name
        self.random = process.schedule.random
        self._bootstrap = bootstrap
        self._wires: dict[Address, Wire] = {}
        self._addresses: dict[int, Address] = {}
        self._leaders: dict[Place, tuple[int, int]] = {}
        self._epochs: dict[Place, int] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self.retries = 0
        """What was asked again; the first request may still arrive, at any time."""

    async def pause(self) -> None:
        """Before trying again."""
        await sleep(BACKOFF_SECONDS * (0.3 + self.random.random()))

    async def wire(self, address: Address) -> Wire:
        """A connection, which several askers share; Unanswered when there is none to be had."""
        wire = self._wires.get(address)
        if wire is not None and not wire.is_closed:
            return wire
        try:
            async with timeout(CONNECT_SECONDS):
                wire = await open_wire(self.process, *address)
        except OSError as error:  # TimeoutError too
            raise Unanswered(f"{address[0]}:{address[1]}: {error}") from None
        known = self._wires.get(address)
        if known is not None and not known.is_closed:
            wire.close()
            return known
        self._wires[address] = wire
        return wire

    async def ask(
        self, address: Address, request: Message, response: type[Response], version: int, *,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> Response:  # fmt: skip
        """The answer; Unanswered when it is not known whether the broker got the request."""
        wire = await self.wire(address)
        future = wire.send(request, response, version)
        try:
            async with timeout(answer_seconds):
                return await future
        except TimeoutError:
            wire.close("no answer")
            raise Unanswered(f"{address[0]}: no answer to {type(request).__name__}") from None

    async def ask_any(self, request: Message, response: type[Response], version: int) -> Response:
        """From whichever broker answers first; tried without an end, with pauses."""
        while True:
            known = [*self._addresses.values(), *self._bootstrap]
            try:
                return await self.ask(self.random.choice(known), request, response, version)
            except Unanswered:
                self.retries += 1
                await self.pause()

    # --- leaders

    async def leader(self, place: Place) -> tuple[Address, int]:
        """The address and epoch of a partition's leader, once there is one."""
        while True:
            known = self._leaders.get(place)
            if known is not None and known[0] in self._addresses:
                return self._addresses[known[0]], known[1]
            await self.refresh(place[0])
            if place not in self._leaders:
                await self.pause()

    def forget_leader(self, place: Place) -> None:
        self._leaders.pop(place, None)

    async def refresh(self, topic: str) -> MetadataResponse:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )  # fmt: skip
        answer = await self.ask_any(request, MetadataResponse, 9)
        for broker in answer.brokers:
            self._addresses[broker.node_id] = (broker.host, broker.port)
        for told in answer.topics:
            if told.name is None:
                continue
            for partition in told.partitions:
                place = (told.name, partition.partition_index)
                if partition.leader_epoch < self._epochs.get(place, 0):
                    continue  # of a broker that has not heard the news; real clients do not go back either
                self._epochs[place] = partition.leader_epoch
                if partition.leader_id >= 0 and partition.leader_id in self._addresses:
                    self._leaders[place] = (partition.leader_id, partition.leader_epoch)
                else:
                    self._leaders.pop(place, None)
        return answer

    # --- coordinators

    async def coordinator(self, kind: int, key: str) -> Address:
        while True:
            known = self._coordinators.get((kind, key))
            if known is not None and known in self._addresses:
                return self._addresses[known]
            request = FindCoordinatorRequest(key=key, key_type=kind)
            answer = await self.ask_any(request, FindCoordinatorResponse, 3)
            if answer.error_code == ErrorCode.NONE:
                self._addresses[answer.node_id] = (answer.host, answer.port)
                self._coordinators[kind, key] = answer.node_id
            else:
                await self.pause()

    async def ask_coordinator(
        self, kind: int, key: str, request: Message, response: type[Response], version: int, *,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> Response:  # fmt: skip
        address = await self.coordinator(kind, key)
        try:
            return await self.ask(address, request, response, version, answer_seconds=answer_seconds)
        except Unanswered:
            self.forget_coordinator(kind, key)
            raise

    def forget_coordinator(self, kind: int, key: str) -> None:
        self._coordinators.pop((kind, key), None)
