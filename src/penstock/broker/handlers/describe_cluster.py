"""API 60 DescribeCluster, versions 0–2: The brokers of the cluster. Endpoint type 2 (controllers) is refused, as Kafka's
brokers do.

Not done: fenced brokers. Penstock has no such state.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.model.acl import NOT_ASKED
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAddresses, WithAuthorizer, WithImage

    class Needs(WithAddresses, WithAuthorizer, WithImage, Protocol): ...


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
    operations = NOT_ASKED
    if request.include_cluster_authorized_operations:
        operations = node.authorizer.operations_on_cluster(call)
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
