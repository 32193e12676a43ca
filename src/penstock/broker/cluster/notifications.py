"""What is left under /config/changes for those who watch it, as Kafka's older tools do, goes after a while."""

import logging
from asyncio import sleep
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from penstock.controller.configs import expired_notifications
from penstock.metadata import znodes
from penstock.metadata.tree import MetadataTree, TreeError
from penstock.model.errors import ApiError

if TYPE_CHECKING:
    from penstock.broker.facets import WithChanges, WithClock

    class Needs(WithChanges, WithClock, Protocol): ...


log = logging.getLogger("penstock.broker")

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
            names = await tree.children(znodes.CONFIG_CHANGES)
            first_seen_ms = {name: first_seen_ms.get(name, now_ms) for name in names}
            max_age_ms = int(MAX_AGE_SECONDS * 1000)
            decide = partial(expired_notifications, first_seen_ms, now_ms=now_ms, max_age_ms=max_age_ms)
            await node.changes.make(decide)
        except (ApiError, TreeError) as error:
            log.warning("cannot remove old notifications of changed configurations: %s", error)
        except Exception:
            log.exception("removing old notifications of changed configurations failed")
