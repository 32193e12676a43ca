"""Unfinished changes in the tree, and deletions that older tools ask for.

They are not in the image. They are read under the lock of `Changes`, so that nothing changes between reading and deciding.
"""

from collections.abc import Iterable

from penstock.metadata import znodes
from penstock.metadata.tree import MetadataTree, NoNode


async def marked_topics(tree: MetadataTree) -> list[str]:
    """Names under /admin/delete_topics."""
    try:
        return await tree.children(znodes.DELETE_TOPICS)
    except NoNode:
        return []


async def nodes_of(tree: MetadataTree, topics: Iterable[str]) -> set[str]:
    """The paths of all that the tree has of these topics."""
    found: set[str] = set()
    for name in topics:
        found.update(await tree.subtree(znodes.topic_path(name)))
    return found
