"""A broker that is asked to stop hands its leaderships over first (ControlledShutdown).

The controller answers with the partitions that it could not move yet, because the next leader has not caught up. The broker
waits for them, for a limited time. Partitions that no other broker could lead are not among them, so the last broker of a
cluster stops at once.
"""

import logging
from asyncio import sleep, timeout
from typing import TYPE_CHECKING, Final, Protocol

from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithBrokerEpoch,
        WithBrokerId,
        WithClock,
        WithConfig,
        WithController,
        WithImage,
    )

    class Needs(
        WithBrokerEpoch, WithBrokerId, WithClock, WithConfig, WithController, WithImage, Protocol
    ): ...


log = logging.getLogger("penstock.broker")

HAND_OVER_SECONDS: Final = 15.0
"""All in all: a store or a controller that is not there must not keep a broker from stopping."""
PAUSE_SECONDS: Final = 0.25
"""Between two tries: another broker may become the controller, or a follower catch up."""


async def hand_over(node: "Needs") -> None:
    if not node.config.get("controlled.shutdown.enable"):
        return
    deadline = node.clock.monotonic() + HAND_OVER_SECONDS
    is_told = False
    remaining = 0
    while (left_seconds := deadline - node.clock.monotonic()) > 0:
        try:
            remaining = await _ask(node, left_seconds)
            if not remaining:
                return
        except (ApiError, OSError) as error:
            if not is_told:
                log.info(
                    "the controller has not moved this broker's leaderships: %s",
                    str(error) or "no answer in time",
                )
            is_told = True
            if len(node.image.brokers) < 2:
                return
        await sleep(PAUSE_SECONDS)
    if remaining:
        log.warning("stopping, although %s partitions have no other leader", remaining)
    else:
        log.warning("stopping, although the controller has not moved this broker's leaderships")


async def _ask(node: "Needs", timeout_s: float) -> int:
    """How many partitions are still led here, and need not be."""
    request = ControlledShutdownRequest(broker_id=node.broker_id, broker_epoch=node.broker_epoch)
    async with timeout(timeout_s):  # also when we are the controller ourselves
        response = await node.ask_controller(request, ControlledShutdownResponse, timeout_s=timeout_s)
    if response.error_code:
        raise ApiError(ErrorCode(response.error_code))
    return len(response.remaining_partitions)
