"""What a broker says to changes of its own key and trust stores before it passes them on to the controller."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.broker.requests.call import Call
from penstock.model.acl import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from penstock.broker.facets import WithAuthorizer, WithConfigs
    from penstock.controller.configs import AnyResource

    class Needs(WithAuthorizer, WithConfigs, Protocol): ...


async def refused_here(
    node: "Needs", call: Call, resources: "Sequence[AnyResource]", *, validate_only: bool
) -> str | None:
    """Why the request is not passed on. It is one frame: all of it is refused then. Kafka's clients put a broker into a request
    of its own."""
    # Who may not alter configs does not learn from the answer which files there are; the controller refuses it.
    if not node.authorizer.allows(
        call, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME, tells=False
    ):
        return None
    unusable = await node.configs.proposals.unusable_here(resources, validate_only=validate_only)
    return next(iter(unusable.values()), None)
