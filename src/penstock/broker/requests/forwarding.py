"""Requests for the controller that reached another broker: passed on as they came, and its answer passed back.

Clients ask any broker. The frame goes to the controller with a mark in its client id, so that a broker that is not the controller
any more refuses it instead of passing it on again: the client then asks once more.
"""

import logging
import struct
from asyncio import sleep
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.requests.call import Call
from penstock.metadata.image import NO_CONTROLLER
from penstock.model.api_keys import ApiKey
from penstock.net.connection import Deferred
from penstock.net.output import Part
from penstock.wire.framing import SIZE

if TYPE_CHECKING:
    from penstock.broker.facets import WithBrokerId, WithClock, WithController, WithImage, WithPeers

    class Needs(WithBrokerId, WithClock, WithController, WithImage, WithPeers, Protocol): ...


log = logging.getLogger("penstock.broker")

FORWARDED: Final = frozenset(
    int(key)
    for key in (
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
    )
)
MARK: Final = "penstock-forwarded "
FORWARD_SECONDS: Final = 60.0
CONTROLLER_WAIT_SECONDS: Final = 10.0
"""A new controller is elected when the session of the old one has ended; a client need not know of the moment between."""
LOOK_AGAIN_SECONDS: Final = 0.05
_CLIENT_ID_AT: Final = 8
_LENGTH: Final = struct.Struct(">h")

Refuse = Callable[[str], "Sequence[Part] | None"]


def must_forward(node: "Needs", call: Call) -> bool:
    return call.header.api_key in FORWARDED and not node.is_controller


def is_forwarded(call: Call) -> bool:
    return call.client_id.startswith(MARK)


async def forward(node: "Needs", call: Call, frame: bytes, deferred: Deferred, refuse: Refuse) -> bool:
    """Resolves the deferred reply; `refuse` makes one from a reason. False when there is no need to: this broker has become the
    controller meanwhile.
    """
    reply: Sequence[Part] | None
    controller_id = await _controller(node)
    if node.is_controller:
        return False
    if controller_id == NO_CONTROLLER:
        reply = refuse("the cluster has no controller at the moment; try again soon")
    else:
        try:
            peer = node.peers.peer(controller_id, "forward")
            answer = await peer.relay(_marked(frame, call), timeout_s=FORWARD_SECONDS)
            reply = (SIZE.pack(len(answer)), answer)
        except OSError as error:
            log.info("cannot pass %s on to broker %s: %s", call.header.api.name, controller_id, error)
            reply = refuse(f"the controller, broker {controller_id}, cannot be reached: {error}")
    if not call.connection.is_closed:
        if reply is None:
            call.connection.close("the controller cannot be reached")
        else:
            deferred.resolve(reply)
    return True


async def _controller(node: "Needs") -> int:
    deadline = node.clock.monotonic() + CONTROLLER_WAIT_SECONDS
    while node.clock.monotonic() < deadline and not node.is_controller:
        controller_id = node.image.controller_id
        if controller_id not in (NO_CONTROLLER, node.broker_id):
            return controller_id
        await sleep(LOOK_AGAIN_SECONDS)
    return NO_CONTROLLER


def _marked(frame: bytes, call: Call) -> bytes:
    """The frame with our mark before the client's id, which stands behind API, version and correlation id."""
    (length,) = _LENGTH.unpack_from(frame, _CLIENT_ID_AT)
    rest_at = _CLIENT_ID_AT + 2 + max(length, 0)
    client_id = (MARK + call.client_id).encode()[:32_767]
    return b"".join((frame[:_CLIENT_ID_AT], _LENGTH.pack(len(client_id)), client_id, frame[rest_at:]))
