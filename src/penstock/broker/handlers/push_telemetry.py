"""API 72 PushTelemetry, version 0: The metrics of a client, in OpenTelemetry's format (KIP-714).

What is pushed is served on the broker's metrics page. Read by a thread; the answer waits for that, so a report that cannot
be read is INVALID_RECORD.
Not done: Kafka's receivers (plugins of `metric.reporters`); the buckets of histograms.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

if TYPE_CHECKING:
    from penstock.broker.facets import WithClientMetrics

REQUEST = PushTelemetryRequest
RESPONSE = PushTelemetryResponse


async def handle(
    node: "WithClientMetrics", call: Call, request: PushTelemetryRequest
) -> PushTelemetryResponse:
    await node.client_metrics.push(call, request)
    return PushTelemetryResponse()
