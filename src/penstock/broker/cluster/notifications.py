"""Removes old notifications of changed configs, access rules and tokens, which Kafka's older tools and brokers watch."""

import logging
from asyncio import sleep
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from penstock.controller.configs import expired_notifications
from penstock.metadata import acl_nodes, znodes
from penstock.metadata.tree import MetadataTree, TreeError
from penstock.model.errors import ApiError

if TYPE_CHECKING:
    from penstock.broker.facets import WithChanges, WithClock

    class Needs(WithChanges, WithClock, Protocol): ...


log = logging.getLogger("penstock.broker")

ROOTS: Final = (znodes.CONFIG_CHANGES, znodes.TOKEN_CHANGES, *acl_nodes.CHANGES.values())
LOOK_SECONDS: Final = 300.0
MAX_AGE_SECONDS: Final = 900.0
"""Who watches has read a notification by then; Kafka keeps them as long."""


async def purge_notifications(node: "Needs", tree: MetadataTree) -> None:
    """For as long as this broker is the controller."""
    first_seen_ms: dict[str, int] = {}
    while True:
        await sleep(LOOK_SECONDS)
        now_ms = int(node.clock.monotonic() * 1000)
        try:
            found = [f"{root}/{name}" for root in ROOTS for name in await tree.children(root)]
            first_seen_ms = {path: first_seen_ms.get(path, now_ms) for path in found}
            max_age_ms = int(MAX_AGE_SECONDS * 1000)
            decide = partial(expired_notifications, first_seen_ms, now_ms=now_ms, max_age_ms=max_age_ms)
            await node.changes.make(decide)
        except (ApiError, TreeError) as error:
            log.warning("cannot remove old notifications of changes: %s", error)
        except Exception:
            log.exception("removing old notifications of changes failed")
