"""A broker that is asked to stop hands its leaderships over first (ControlledShutdown)."""

import logging
from asyncio import sleep
from typing import TYPE_CHECKING, Final

from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse

if TYPE_CHECKING:
    from penstock.broker.node import Node

log = logging.getLogger("penstock.broker")

VERSION: Final = 3
TIMEOUT_SECONDS: Final = 10.0
ATTEMPTS: Final = 20
PAUSE_SECONDS: Final = 0.25
"""Between two tries: another broker may become the controller, or a follower catch up."""


async def hand_over(node: "Node") -> None:
    if not node.config.get("controlled.shutdown.enable"):
        return
    request = ControlledShutdownRequest(broker_id=node.broker_id, broker_epoch=node.broker_epoch)
    remaining = 0
    for _ in range(ATTEMPTS):
        try:
            response = await node.ask_controller(
                request, ControlledShutdownResponse, version=VERSION, timeout_s=TIMEOUT_SECONDS
            )
            if response.error_code:
                raise ApiError(ErrorCode(response.error_code))
            remaining = len(response.remaining_partitions)
            if not remaining:
                return
        except (ApiError, OSError) as error:
            log.info("the controller does not take our leaderships: %s", error)
            if len(node.image.brokers) < 2:
                return
        await sleep(PAUSE_SECONDS)
    log.warning("stopping although %s partitions have no other leader", remaining)
