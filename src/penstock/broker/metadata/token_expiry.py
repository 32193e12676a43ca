"""The controller removes delegation tokens that have expired, each `delegation.token.expiry.check.interval.ms`."""

import logging
from asyncio import sleep
from typing import TYPE_CHECKING, Protocol

from penstock.controller.delegation_tokens import expired_tokens
from penstock.metadata.tree import TreeError
from penstock.model.errors import ApiError

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithChanges,
        WithClock,
        WithClustered,
        WithConfig,
        WithController,
        WithImage,
    )

    class Needs(WithChanges, WithClock, WithClustered, WithConfig, WithController, WithImage, Protocol): ...


log = logging.getLogger("penstock.broker")


async def expire_tokens(node: "Needs") -> None:
    """For as long as this broker runs; another broker may be the controller."""
    interval_s = node.config.get("delegation.token.expiry.check.interval.ms") / 1000
    while True:
        await sleep(interval_s)
        if node.is_controller:
            await _expire(node)


async def _expire(node: "Needs") -> None:
    now_ms = node.clock.now_ms()
    try:
        removed = await node.changes.make(
            lambda: expired_tokens(node.image, now_ms=now_ms, notify=node.is_clustered)
        )
    except (ApiError, TreeError) as error:
        log.warning("cannot remove delegation tokens that have expired: %s", error)
    except Exception:
        log.exception("removing delegation tokens that have expired failed")
    else:
        for token in removed:
            log.info("delegation token %s of %s has expired", token.token_id, token.owner)
