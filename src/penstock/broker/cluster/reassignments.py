"""Continues reassignments, as far as the in-sync replicas allow it."""

from collections.abc import Container
from typing import TYPE_CHECKING, Protocol

from penstock.controller import reassignments

if TYPE_CHECKING:
    from penstock.broker.facets import WithChanges, WithImage

    class Needs(WithChanges, WithImage, Protocol): ...


async def progress_reassignments(node: "Needs", *, leaving: Container[int]) -> None:
    moving = [
        (topic.name, index)
        for topic in node.image.topics.values()
        for index, placed in enumerate(topic.partitions)
        if placed.adding or placed.removing
    ]
    if moving:
        await node.changes.make(lambda: reassignments.progress(node.image, moving, leaving=leaving))
