"""API 32 DescribeConfigs, versions 1–4: Configs of topics, brokers, groups and client metrics, each with its source and
synonyms.

Not done: log levels (broker loggers), and broker options that have no effect in Penstock.
"""

from typing import TYPE_CHECKING

from penstock.broker.requests.call import Call
from penstock.broker.requests.portions import Portions
from penstock.config.entry import ConfigEntry
from penstock.model.errors import ApiError
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithConfigs

REQUEST = DescribeConfigsRequest
RESPONSE = DescribeConfigsResponse
PORTIONS = (Portions(("resources",), ("results",)),)


def handle(node: "WithConfigs", call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_describe(node, request, wanted) for wanted in request.resources])


def _describe(
    node: "WithConfigs", request: DescribeConfigsRequest, wanted: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=wanted.resource_type, resource_name=wanted.resource_name, error_message=None
    )
    try:
        entries = node.configs.describe(wanted.resource_type, wanted.resource_name, wanted.configuration_keys)
    except ApiError as error:
        result.error_code = error.code
        result.error_message = error.detail
        return result
    result.configs = [_entry(request, entry) for entry in entries]
    return result


def _entry(request: DescribeConfigsRequest, entry: ConfigEntry) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=name, value=value, source=source)
        for name, value, source in entry.synonyms
    ]
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=synonyms if request.include_synonyms else (),
        config_type=entry.config_type,
        documentation=entry.documentation if request.include_documentation else None,
    )
