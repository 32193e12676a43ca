"""A producer with acks=1, which sends each batch once and goes on, whatever the answer.

Its records may be lost with the leader that acknowledged them. They are never there twice, and those that were acknowledged
keep their order. And a leader that is no longer a member of the cluster acknowledges nothing alone: what such a one says is
taken as with acks=all.
"""

from asyncio import sleep
from collections.abc import Callable
from typing import Final

from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.wire.messages.produce import ProduceResponse
from simulation.seeds.client import Client
from simulation.seeds.history import History, Place
from simulation.seeds.producers import PRODUCE_VERSION, RETRIABLE, produce_request
from simulation.seeds.wire import Unanswered

LONGEST_CALM_SECONDS: Final = 0.6


class AcksOneProducer:
    def __init__(self, client: Client, history: History, outsider: Callable[[str], object | None]) -> None:
        """`outsider`: the process of a host, when that is no member of the cluster."""
        self._client = client
        self._history = history
        self._outsider = outsider
        self._made = 0

    async def run(self, places: list[Place], *, until: float) -> None:
        client = self._client
        while client.process.loop.time() < until:
            place = client.random.choice(places)
            try:
                is_well = await self._send(place)
            except Unanswered:
                is_well = False
            if not is_well:
                client.forget_leader(place)
                await client.pause()
            await sleep(client.random.random() * LONGEST_CALM_SECONDS)

    async def _send(self, place: Place) -> bool:
        client, history = self._client, self._history
        address, _ = await client.leader(place)
        values = [self._make(place) for _ in range(client.random.randint(1, 2))]
        now_ms = client.process.clock.now_ms()
        records = bytes(build_batch([(None, value, (), now_ms) for value in values]))
        outsider = self._outsider(address[0])
        request = produce_request(place, records, acks=1)
        answer = await client.ask(address, request, ProduceResponse, PRODUCE_VERSION)
        told = answer.responses[0].partition_responses[0]
        if told.error_code == ErrorCode.NONE:
            is_alone = outsider is None or outsider is not self._outsider(address[0])
            for number, value in enumerate(values):
                history.was_acknowledged_alone(place, value, told.base_offset + number)
                if not is_alone:
                    history.counts["acknowledged (acks=1 by an outsider)"] += 1
                    history.was_acknowledged(place, value, told.base_offset + number)
            return True
        if told.error_code not in RETRIABLE:
            history.violated(f"{client.name}: refused with {ErrorCode(told.error_code).name}")
        return False

    def _make(self, place: Place) -> bytes:
        value = b"%s/%d/%d/" % (self._client.name.encode(), place[1], self._made)
        self._made += 1
        self._history.was_sent(place, value)
        self._history.sent_once.add(value)
        return value
