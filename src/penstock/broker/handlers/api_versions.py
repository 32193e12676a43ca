"""API 18 ApiVersions, versions 0–4: The APIs and versions that the broker knows. Every client asks this first.

Answers from the table of APIs; what only brokers say to one another is offered where there is a cluster. A version above
ours is answered in version 0 with UNSUPPORTED_VERSION and the same table, so that the client asks again in a version that
both know. The features tell clients what goes beyond versions:
with `transaction.version` 2 producers leave adding partitions to the broker and get an epoch per transaction. In a cluster each
has the highest level that every member has, so none while a broker of Apache Kafka in ZooKeeper mode is a member.
Not done: levels that an operator chooses (see UpdateFeatures).
"""

import re
from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.controller.features import FEATURES
from penstock.model.errors import ErrorCode
from penstock.wire.apis import APIS
from penstock.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from typing import Protocol

    from penstock.broker.facets import WithClustered, WithMembership

    class Needs(WithClustered, WithMembership, Protocol): ...


REQUEST = ApiVersionsRequest
RESPONSE = ApiVersionsResponse

_IN_A_CLUSTER = [
    ApiVersion(api_key=key, min_version=api.advertised_min_version, max_version=api.max_version)
    for key, api in sorted(APIS.items())
]
_ALONE = [row for row in _IN_A_CLUSTER if not APIS[row.api_key].between_brokers]
_SUPPORTED = [
    SupportedFeatureKey(name=name, min_version=0, max_version=level) for name, level in FEATURES.items()
]
MAX_SOFTWARE = 255
"""Characters of the client's names that are kept: they stay as long as the connection, also of one that never logs in."""
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(node: "Needs", call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    table = _IN_A_CLUSTER if node.is_clustered else _ALONE
    if call.api_version > call.header.api.max_version:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=table)
    if call.api_version >= 3:
        names = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE.fullmatch(name) for name in names):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        name, version = names
        call.connection.client_software = name[:MAX_SOFTWARE], version[:MAX_SOFTWARE]
    epoch, levels = node.membership.members.features if node.is_clustered else (0, FEATURES)
    # Before version 4 a supported minimum of 0 is not to be mentioned: Java clients of that time refuse it.
    return ApiVersionsResponse(
        api_keys=table,
        supported_features=_SUPPORTED if call.api_version >= 4 else (),
        finalized_features_epoch=epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.items()
            if level
        ],
    )
