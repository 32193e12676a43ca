"""API 71 GetTelemetrySubscriptions, version 0: Which metrics a client should push, and how often (KIP-714).

A client that has no instance id yet gets one. Asked again before the interval is over: THROTTLING_QUOTA_EXCEEDED.
Counters are asked for as sums, not as differences, since that is what the metrics page needs.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithClientMetrics

REQUEST = GetTelemetrySubscriptionsRequest
RESPONSE = GetTelemetrySubscriptionsResponse


def handle(
    node: "WithClientMetrics", call: Call, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    return node.client_metrics.ask(call, request.client_instance_id)
