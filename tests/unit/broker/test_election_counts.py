"""Elections that the controller makes are counted, with those of replicas that were out of sync."""

import asyncio
from typing import Any

import pytest

from penstock.broker.metadata.changes import Changes
from penstock.controller.decision import Decision
from penstock.metadata.image import (
    NO_LEADER,
    ClusterImage,
    PartitionChanged,
    PartitionRegistration,
    TopicCreated,
)


@pytest.mark.parametrize(
    ("leader", "counts"), [(1, (0, 0)), (2, (1, 0)), (3, (1, 1)), (NO_LEADER, (0, 0))], ids=str
)
def test_an_unclean_election_is_told_from_others(leader: int, counts: tuple[int, int]) -> None:
    image = ClusterImage()
    placed = PartitionRegistration(replicas=(1, 2, 3), isr=(1, 2), leader=1)
    image.apply(TopicCreated("orders", bytes(15) + b"1", (placed,)))
    changed = placed._replace(leader=leader, isr=(leader,))

    async def prepare(change: Any) -> None: ...

    tree: Any = None  # nothing is written to it
    changes = Changes(image, tree, prepare, lambda change: None)
    asyncio.run(changes.make(lambda: Decision([], [], [PartitionChanged("orders", 0, changed)])))
    assert (changes.election_count, changes.unclean_election_count) == counts
