"""API 60 DescribeCluster, versions 0–2: the brokers. For controllers (endpoint type 2) it refuses, as Kafka's brokers do.

Not done: fenced brokers: there is no such state.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.model.acl import ALL_CLUSTER_OPERATIONS, NOT_ASKED
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAddresses, WithImage

    class Needs(WithAddresses, WithImage, Protocol): ...


REQUEST = DescribeClusterRequest
RESPONSE = DescribeClusterResponse

BROKERS = 1
CONTROLLERS = 2


def handle(node: "Needs", call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        raise ApiError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE, "The request was sent to an endpoint of the wrong type."
        )
    if request.endpoint_type != BROKERS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}"
        )
    operations = ALL_CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
    return DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=node.image.cluster_id,
        controller_id=node.image.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=broker_id, host=host, port=port, rack=rack)
            for broker_id, host, port, rack in node.addresses.for_clients(call.connection)
        ],
        cluster_authorized_operations=operations,
    )
