"""API 57 UpdateFeatures, versions 0–2: Check whether features may have the requested levels.

All of them or none. A feature is always at its highest level here, so a valid request changes nothing.
Not done: lowering the level of a feature.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.controller.features import check_update
from penstock.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithBrokerId

REQUEST = UpdateFeaturesRequest
RESPONSE = UpdateFeaturesResponse


def handle(node: "WithBrokerId", call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    check_update(request.feature_updates, broker_id=node.broker_id)
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message=None)
            for update in request.feature_updates
        ],
    )
