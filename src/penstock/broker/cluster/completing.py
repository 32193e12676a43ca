"""Completes what a controller began and did not finish: an earlier controller, or this one when the store failed between two
writes."""

import logging
from collections.abc import Container
from typing import TYPE_CHECKING, Protocol

from penstock.broker.metadata.unfinished import marked_topics, nodes_of
from penstock.controller import brokers
from penstock.controller.decision import Decision
from penstock.controller.topics import is_incomplete, marked_for_deletion

if TYPE_CHECKING:
    from penstock.broker.facets import WithChanges, WithConfig, WithImage, WithTree

    class Needs(WithChanges, WithConfig, WithImage, WithTree, Protocol): ...


log = logging.getLogger("penstock.broker")


async def delete_marked(node: "Needs") -> None:
    """Topics that are half deleted, or that an older tool marked for deletion."""

    async def decide() -> Decision[None]:
        marked = await marked_topics(node.tree)
        if marked:
            log.info("deleting topics that are marked for deletion: %s", ", ".join(marked))
        return marked_for_deletion(
            node.image,
            marked,
            existing=await nodes_of(node.tree, marked),
            deletion_enabled=bool(node.config.get("delete.topic.enable")),
        )

    await node.changes.make(decide)


async def complete_partitions(node: "Needs", *, leaving: Container[int]) -> None:
    """Topics that are half made, or half grown. Those half deleted have to be gone: what those lack had records."""

    async def decide() -> Decision[None]:
        incomplete = [topic.name for topic in node.image.topics.values() if is_incomplete(topic)]
        existing = await nodes_of(node.tree, incomplete)
        return brokers.partitions_without_state(node.image, existing=existing, leaving=leaving)

    await node.changes.make(decide)
