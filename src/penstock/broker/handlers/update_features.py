"""API 57 UpdateFeatures, versions 0–2: Check whether features may have the requested levels.

All of them or none. A feature is always at the highest level that all brokers have, so a valid request changes nothing.
Not done: lowering the level of a feature.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.controller.features import FEATURES, check_update
from penstock.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from typing import Protocol

    from penstock.broker.facets import WithBrokerId, WithClustered, WithMembership

    class Needs(WithBrokerId, WithClustered, WithMembership, Protocol): ...


REQUEST = UpdateFeaturesRequest
RESPONSE = UpdateFeaturesResponse


def handle(node: "Needs", call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    levels = node.membership.members.features[1] if node.is_clustered else FEATURES
    check_update(request.feature_updates, broker_id=node.broker_id, levels=levels)
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message=None)
            for update in request.feature_updates
        ],
    )
