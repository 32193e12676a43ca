"""How much the ListOffsets handler does at once."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.broker.handlers import list_offsets
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.requests.later import settled
from penstock.metadata.image import PartitionRegistration, Topic
from penstock.records.walk import Steps
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.options import LogOptions
from penstock.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

COUNT = 50


def test_others_have_their_turn_between_searches_for_a_time(tmp_path: Path) -> None:
    placed = [PartitionRegistration(replicas=(1,), isr=(1,), leader=1) for _ in range(COUNT)]
    partitions = HeldPartitions(OsDisk(), [str(tmp_path)], SystemClock(), broker_id=1)
    topic = Topic("orders", topic_id=bytes(15) + b"1", partitions=placed)
    for _ in partitions.open_topic(topic, LogOptions()):
        pass
    searches_in_turn = [0]

    def search(steps: Steps[Any]) -> None:
        steps.close()
        searches_in_turn[-1] += 1

    async def main() -> None:
        node: Any = SimpleNamespace(partitions=partitions, openings=SimpleNamespace(search=search))
        call: Any = SimpleNamespace(api_version=7)
        wanted = [ListOffsetsPartition(partition_index=index, timestamp=1) for index in range(COUNT)]
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=wanted)])
        answering = asyncio.ensure_future(settled(list_offsets.handle(node, call, request)))
        while not answering.done():
            searches_in_turn.append(0)
            await asyncio.sleep(0)
        (found,) = answering.result().topics
        assert [each.offset for each in found.partitions] == [-1] * COUNT

    asyncio.run(main())
    assert sum(searches_in_turn) == COUNT
    assert max(searches_in_turn) <= list_offsets.SEARCHES_AT_ONCE
    partitions.release()
