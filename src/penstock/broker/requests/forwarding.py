"""Forwards requests for the controller that reached another broker, and returns the controller's answer.

Clients ask any broker. The frame goes to the controller with a mark in its client id:

    penstock-forwarded User:alice 10.0.0.7;a8f0… the client's own id

A broker that is not the controller any more refuses what is marked instead of passing it on again: the client then asks once
more. The controller does it for the client that the mark names: what she may do is looked at there (`access/guards`). It believes
the mark of those who may act as brokers only: who has ClusterAction on the cluster, or, without an authorizer, the user by which
brokers log in at one another. From anybody else it is just the beginning of an odd client id. Where there is neither, the mark
must be proven (`marks`), and is refused without.

A controller of Apache Kafka knows no such mark, and would act with our rights. So with an authorizer nothing is passed on to it:
the client is told to ask it. What every broker of such a cluster may write is written here.
"""

import logging
import struct
from asyncio import sleep
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote, unquote

from penstock.broker.requests.call import Call, Client
from penstock.broker.requests.marks import Marks
from penstock.metadata.image import NO_CONTROLLER
from penstock.model.acl import CLUSTER_NAME, Operation, ResourceType
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError, ErrorCode
from penstock.net.connection import Deferred
from penstock.net.output import Part
from penstock.security.principals import Principal
from penstock.wire.framing import SIZE

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithAuthorizer,
        WithBrokerId,
        WithClientQuotas,
        WithClock,
        WithController,
        WithImage,
        WithMarks,
        WithMembership,
        WithPeers,
    )

    class Judging(WithAuthorizer, WithMarks, Protocol): ...

    class Beside(WithImage, WithMembership, Protocol): ...

    class Needs(
        Beside,
        WithAuthorizer,
        WithBrokerId,
        WithClientQuotas,
        WithClock,
        WithController,
        WithMarks,
        WithPeers,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

WRITTEN_BY_ANYBODY: Final = frozenset(
    int(key)
    for key in (
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    )
)
"""While a broker of Apache Kafka is the controller: then every broker writes these into the tree itself, and the controller
refuses the configs of any broker but itself."""
FORWARDED: Final = WRITTEN_BY_ANYBODY | frozenset(
    int(key)
    for key in (
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
    )
)
LIMITED: Final = frozenset(map(int, (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS)))
"""What the controller may limit. These answers begin with the time that the client must wait."""
MARK: Final = "penstock-forwarded "
FORWARD_SECONDS: Final = 60.0
CONTROLLER_WAIT_SECONDS: Final = 10.0
"""A new controller is elected when the session of the old one has ended; a client need not know of the moment between."""
LOOK_AGAIN_SECONDS: Final = 0.05
MAX_CLIENT_ID_BYTES: Final = 32_767
_CLIENT_ID_AT: Final = 8
_LENGTH: Final = struct.Struct(">h")

Refuse = Callable[[str], "Sequence[Part] | None"]


def must_forward(node: "Needs", call: Call) -> bool:
    if call.header.api_key not in FORWARDED or node.is_controller:
        return False
    return call.header.api_key not in WRITTEN_BY_ANYBODY or not is_beside_kafka(node)


def is_beside_kafka(node: "Beside") -> bool:
    """Whether a broker of Apache Kafka is the controller."""
    return node.membership.members.is_kafka(node.image.controller_id)


def is_forwarded(call: Call) -> bool:
    return call.client_id.startswith(MARK)


def for_client(node: "Judging", call: Call) -> Call:
    """The call in the name of the client for whom another broker passes it on, if that is so. ApiError where a broker names
    nobody, or may be none: it is not done with the broker's own rights."""
    if not is_relayed(node, call):
        if is_forwarded(call) and not node.authorizer.is_on and _comes_from_brokers(node, call):
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "it is marked as passed on, and no broker has proven that"
            )
        return call
    named = _client(call.client_id)
    if named is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a broker has passed it on, and it cannot be read for whom")
    client, client_id = named
    return Call(call.connection, call.header._replace(client_id=client_id), client)


def is_relayed(node: "Judging", call: Call) -> bool:
    """Whether a broker passed it on, and we have not looked yet for whom."""
    return is_forwarded(call) and _is_broker(node, call)


def own_client_id(call: Call) -> str:
    """Without the mark of a broker that passed it on."""
    named = _client(call.client_id) if is_forwarded(call) else None
    return call.client_id if named is None else named[1]


def _is_broker(node: "Judging", call: Call) -> bool:
    """Without an authorizer a lie gets nobody any rights, only another name. Where brokers' logins say nothing, their listener
    and the proof do."""
    authorizer = node.authorizer
    if authorizer.is_on:
        return authorizer.allows(
            call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME, tells=False
        )
    is_proven = authorizer.own_principal is not None or not node.marks.must_be_proven
    return _comes_from_brokers(node, call) and (is_proven or _is_proven(node.marks, call.client_id))


def _comes_from_brokers(node: "Judging", call: Call) -> bool:
    authorizer = node.authorizer
    if authorizer.own_principal is not None:
        return call.connection.principal == authorizer.own_principal
    return call.connection.listener_name == authorizer.own_listener


def _is_proven(marks: Marks, client_id: str) -> bool:
    asked_by, semicolon, proof = " ".join(client_id.split(" ", 3)[1:3]).rpartition(";")
    return bool(semicolon) and marks.is_proof(proof, asked_by)


def _client(client_id: str) -> tuple[Client, str] | None:
    principal, _, rest = client_id.removeprefix(MARK).partition(" ")
    host, space, own_id = rest.partition(" ")
    kind, colon, name = unquote(principal).partition(":")
    if not space or not colon:
        return None
    return Client(Principal(kind, name), unquote(host.partition(";")[0])), own_id


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
    elif node.authorizer.is_on and is_beside_kafka(node):
        # It would do it with this broker's rights, whoever asks.
        reply = refuse(f"the controller, broker {controller_id}, is one of Apache Kafka: ask that one")
    else:
        try:
            peer = node.peers.peer(controller_id, "forward")
            answer = await peer.relay(_marked(frame, call, node.marks), timeout_s=FORWARD_SECONDS)
            reply = (SIZE.pack(len(answer)), answer)
            if node.client_quotas.is_active and call.header.api_key in LIMITED:
                node.client_quotas.relayed(call, _throttle_time_ms(call, answer))
        except OSError as error:
            log.info("cannot forward %s to broker %s: %s", call.header.api.name, controller_id, error)
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


def _throttle_time_ms(call: Call, answer: bytes | bytearray) -> int:
    """Behind the correlation id and, in flexible versions, no tags."""
    at = 5 if call.api_version >= call.header.api.flexible_from else 4
    (wait_ms,) = SIZE.unpack_from(answer, at) if len(answer) >= at + 4 else (0,)
    return max(int(wait_ms), 0)


def _marked(frame: bytes, call: Call, marks: Marks) -> bytes:
    """The frame with our mark, and who asked, before the client's id. That stands behind API, version and correlation id."""
    (length,) = _LENGTH.unpack_from(frame, _CLIENT_ID_AT)
    rest_at = _CLIENT_ID_AT + 2 + max(length, 0)
    asked_by = f"{quote(str(call.principal), safe=':')} {quote(call.host, safe=':')}"
    proof = f";{marks.proof(asked_by)}" if marks.must_be_proven else ""
    client_id = f"{MARK}{asked_by}{proof} {call.client_id}".encode()[:MAX_CLIENT_ID_BYTES]
    client_id = client_id.decode(errors="ignore").encode()  # it may have been cut within a letter
    return b"".join((frame[:_CLIENT_ID_AT], _LENGTH.pack(len(client_id)), client_id, frame[rest_at:]))
