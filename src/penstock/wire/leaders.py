"""Who leads now: what the answers of Produce and Fetch add to a refusal, so that a client need not ask for metadata (KIP-951).

Both are tagged fields: the leader of the refused partition, and at the end of the response how these brokers are reached.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.wire.primitives import uvarint

_LEADER: Final = struct.Struct(">iib")
_I32: Final = struct.Struct(">i")
_ENDPOINTS_TAG: Final = 0


class CurrentLeader(NamedTuple):
    leader_id: int
    leader_epoch: int


class NodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


def current_leader_field(tag: int, leader: CurrentLeader) -> bytes:
    """The tagged fields of a partition with this one alone: their count, its tag and size, and the struct with no tags."""
    return bytes((1, tag, _LEADER.size)) + _LEADER.pack(leader.leader_id, leader.leader_epoch, 0)


def node_endpoints_field(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """The tagged fields of a response with this one alone; none where there is nothing to tell."""
    if not endpoints:
        return b"\x00"
    body = uvarint(len(endpoints) + 1) + b"".join(_endpoint(endpoint) for endpoint in endpoints)
    return bytes((1, _ENDPOINTS_TAG)) + uvarint(len(body)) + body


def _endpoint(endpoint: NodeEndpoint) -> bytes:
    rack = b"\x00" if endpoint.rack is None else _compact(endpoint.rack)
    return b"".join(
        (_I32.pack(endpoint.node_id), _compact(endpoint.host), _I32.pack(endpoint.port), rack, b"\x00")
    )


def _compact(text: str) -> bytes:
    data = text.encode()
    return uvarint(len(data) + 1) + data
