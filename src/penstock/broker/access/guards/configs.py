"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: each resource by its type."""

from typing import Any, Final

from penstock.broker.access.guards.forms import (
    REFUSALS,
    Asker,
    Passage,
    refusal_of,
    struct_of,
    take_out,
)
from penstock.controller.configs import ResourceType as ConfigType
from penstock.model.acl import CLUSTER_NAME, Operation, ResourceType

GUARDED_AS: Final = {
    ConfigType.TOPIC: ResourceType.TOPIC,
    ConfigType.GROUP: ResourceType.GROUP,
    ConfigType.BROKER: ResourceType.CLUSTER,
    ConfigType.BROKER_LOGGER: ResourceType.CLUSTER,
    ConfigType.CLIENT_METRICS: ResourceType.CLUSTER,
}


def describe(asker: Asker, request: Any, response: "type[Any]") -> Passage | None:
    """DescribeConfigs on the topic or group, or on the cluster for brokers and client metrics."""
    return _each(asker, request, response, "results", Operation.DESCRIBE_CONFIGS)


def alter(asker: Asker, request: Any, response: "type[Any]") -> Passage | None:
    """AlterConfigs on the same."""
    return _each(asker, request, response, "responses", Operation.ALTER_CONFIGS)


def _each(
    asker: Asker, request: Any, response: "type[Any]", answered: str, operation: Operation
) -> Passage | None:
    kind = struct_of(response, answered)

    def refuse(resource: Any) -> Any:
        guarded_as = GUARDED_AS.get(resource.resource_type)
        if guarded_as is None:
            return None  # invalid
        name = CLUSTER_NAME if guarded_as is ResourceType.CLUSTER else resource.resource_name
        if asker.may(operation, guarded_as, name):
            return None
        return refusal_of(kind, resource, REFUSALS[guarded_as])

    return take_out(request, "resources", answered, refuse)
