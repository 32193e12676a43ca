"""The ACLs of all nodes of a cluster, set anew: for one that kept them open, or shall do so again.

Kafka's tool walks the same paths. `/consumers` stays as it is, and so does what others keep in the same ZooKeeper.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from penstock.metadata.tree import NoNode
from penstock.stores.zookeeper import ZooKeeperStore

ROOT: Final = "/"
PATHS: Final = (
    "/admin", "/brokers", "/cluster", "/config", "/controller", "/controller_epoch", "/delegation_token", "/feature",
    "/isr_change_notification", "/kafka-acl", "/kafka-acl-changes", "/kafka-acl-extended", "/kafka-acl-extended-changes",
    "/latest_producer_id_block", "/log_dir_event_notification", "/migration", "/penstock-acl",
)  # fmt: skip
"""Kafka's, and ours."""
FIRST: Final = ("/brokers", "/config")
"""Which every cluster has."""
AT_ONCE: Final = 100


async def missing(store: ZooKeeperStore) -> list[str]:
    """Of the paths that every cluster has."""
    return [path for path in FIRST if not await store.exists(path)]


async def set_acls(store: ZooKeeperStore) -> int:
    """Those that the store's nodes have (`set_acl` of its options); how many nodes there are. May be done again at any time.

    A node that a broker makes meanwhile has the ACLs of that broker's own configuration.
    """
    level: Sequence[str] = [ROOT, *PATHS]
    count = 0
    while level:
        below: list[str] = []
        for start in range(0, len(level), AT_ONCE):
            part = level[start : start + AT_ONCE]
            for path, names in zip(
                part, await asyncio.gather(*(_set(store, path) for path in part)), strict=True
            ):
                count += names is not None
                if names and path != ROOT:
                    below += [f"{path}/{name}" for name in names]
        level = below
    return count


async def _set(store: ZooKeeperStore, path: str) -> list[str] | None:
    """What is below; None where the node is not there, or not any more."""
    try:
        await store.set_acl(path)
        return await store.children(path)
    except NoNode:
        return None
