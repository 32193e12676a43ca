"""API 29 DescribeAcls, versions 1–3: The access rules that a filter matches, by the pattern that they stand on.

Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Protocol

from penstock.broker.metadata import acls
from penstock.broker.requests.call import Call
from penstock.controller.acls import filter_of
from penstock.model.acl import Pattern, Rule
from penstock.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithImage

    class Needs(WithAuthorizer, WithImage, Protocol): ...


REQUEST = DescribeAclsRequest
RESPONSE = DescribeAclsResponse


async def handle(node: "Needs", call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    acls.check_is_on(node, "No Authorizer is configured on the broker")
    found = acls.Search(node.image).find(filter_of(request))
    return DescribeAclsResponse(resources=[_resource(pattern, rules) async for pattern, rules in found])


def _resource(pattern: Pattern, rules: tuple[Rule, ...]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        acls=[
            AclDescription(
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for rule in rules
        ],
    )
