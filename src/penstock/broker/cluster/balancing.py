"""Returns leadership to preferred replicas, when a broker has lost too many of its leaderships."""

import logging
from asyncio import sleep
from collections.abc import Container
from functools import partial
from typing import TYPE_CHECKING, Protocol

from penstock.controller import balance
from penstock.model.errors import ApiError

if TYPE_CHECKING:
    from penstock.broker.facets import WithChanges, WithConfig, WithImage

    class Needs(WithChanges, WithConfig, WithImage, Protocol): ...


log = logging.getLogger("penstock.broker")


async def balance_leaders(node: "Needs", leaving: Container[int]) -> None:
    """For as long as this broker is the controller."""
    get = node.config.get
    while True:
        await sleep(get("leader.imbalance.check.interval.seconds"))
        if not get("auto.leader.rebalance.enable"):
            continue
        try:
            threshold = get("leader.imbalance.per.broker.percentage")
            topic_partitions = balance.imbalanced(node.image, threshold_percent=threshold, leaving=leaving)
            if topic_partitions:
                log.info(
                    "returning the leadership of %s partitions to the preferred replicas",
                    len(topic_partitions),
                )
                decide = partial(balance.preferred_leaders, node.image, topic_partitions, leaving=leaving)
                await node.changes.make(decide)
        except ApiError as error:
            log.warning("cannot balance leaders: %s", error)
        except Exception:
            log.exception("balancing leaders failed")
