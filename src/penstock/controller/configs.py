"""Dynamic configs of topics, brokers, groups and client metrics change.

Both APIs compute the new overrides of an entity from its old ones and the request. The config layer says whether they are
allowed (`ConfigRules`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from penstock.config.operations import SET, alter
from penstock.config.option import Option
from penstock.controller import names
from penstock.controller.decision import Decision
from penstock.metadata import znodes
from penstock.metadata.image import (
    ALL_BROKERS,
    BROKERS,
    CLIENT_METRICS,
    GROUPS,
    TOPICS,
    Change,
    ClusterImage,
    ConfigsChanged,
)
from penstock.metadata.tree import Create, Delete, Set, TreeOp
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages import alter_configs as legacy
from penstock.wire.messages import incremental_alter_configs as incremental

NOTIFICATION_PREFIX = "config_change_"


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


ENTITY_TYPES = {
    ResourceType.TOPIC: TOPICS,
    ResourceType.BROKER: BROKERS,
    ResourceType.CLIENT_METRICS: CLIENT_METRICS,
    ResourceType.GROUP: GROUPS,
}


class ConfigRules(Protocol):
    """What the config layer knows. Entity types and names are those of the image (`topics`, `<default>`
    …)."""

    def check(self, entity_type: str, entity_name: str, overrides: Mapping[str, str]) -> None:
        """Raises ApiError when these, all that the entity would have, cannot be."""

    def option(self, entity_type: str, name: str) -> Option | None:
        """For APPEND and SUBTRACT, which only lists know."""


AnyResource = incremental.AlterConfigsResource | legacy.AlterConfigsResource
"""As either API names it."""
Response = TypeVar("Response", incremental.AlterConfigsResourceResponse, legacy.AlterConfigsResourceResponse)

# An entity's overrides and its option table, to its overrides afterwards.
_Alter = Callable[[Mapping[str, str], Callable[[str], Option | None]], dict[str, str]]


class _Asked(NamedTuple):
    resource_type: int
    resource_name: str
    alter: _Alter


def incremental_alter_configs(
    image: ClusterImage,
    resources: Sequence[incremental.AlterConfigsResource],
    *,
    rules: ConfigRules,
    validate_only: bool,
    notify: bool = False,
) -> Decision[incremental.AlterConfigsResourceResponse]:
    """Log levels (BROKER_LOGGER) are not kept in the tree: take those resources out before. `notify` leaves a node under
    /config/changes for each change, as Kafka does, for those who watch that."""
    asked = [
        _Asked(resource.resource_type, resource.resource_name, partial(_operate, resource.configs))
        for resource in resources
    ]
    response = incremental.AlterConfigsResourceResponse
    return _decide(response, image, asked, rules=rules, validate_only=validate_only, notify=notify)


def alter_configs(
    image: ClusterImage,
    resources: Sequence[legacy.AlterConfigsResource],
    *,
    rules: ConfigRules,
    validate_only: bool,
    notify: bool = False,
) -> Decision[legacy.AlterConfigsResourceResponse]:
    """The old API replaces all overrides of an entity: what is not named is back at its default."""
    asked = [
        _Asked(resource.resource_type, resource.resource_name, partial(_replace, resource.configs))
        for resource in resources
    ]
    response = legacy.AlterConfigsResourceResponse
    return _decide(response, image, asked, rules=rules, validate_only=validate_only, notify=notify)


def altered_by(
    resource: AnyResource, overrides: Mapping[str, str], option_of: Callable[[str], Option | None]
) -> dict[str, str]:
    """What a resource with these overrides would have afterwards. ApiError where its operations make no sense."""
    if isinstance(resource, incremental.AlterConfigsResource):
        return _operate(resource.configs, overrides, option_of)
    return _replace(resource.configs, overrides, option_of)


def expired_notifications(
    first_seen_ms: Mapping[str, int], *, now_ms: int, max_age_ms: int
) -> Decision[None]:
    """`first_seen_ms`: the paths of notifications and when the controller first saw each; the tree tells no times."""
    old = [path for path, seen_ms in first_seen_ms.items() if now_ms - seen_ms >= max_age_ms]
    return Decision([], [Delete(path) for path in sorted(old)], [])


def entity_of(image: ClusterImage, resource_type: int, resource_name: str) -> tuple[str, str]:
    """The entity's type and name in the image; ApiError when there is no such thing to configure."""
    if resource_type not in ENTITY_TYPES:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
    entity_type = ENTITY_TYPES[ResourceType(resource_type)]
    if entity_type == BROKERS:
        return entity_type, _broker_entity(image, resource_name)
    if entity_type == TOPICS:
        if not resource_name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        names.check_name(resource_name)
        if image.topic(resource_name) is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource_name}' does not exist."
            )
    elif not resource_name:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Default group resources are not allowed."
            if entity_type == GROUPS
            else "Subscription name can't be empty",
        )
    return entity_type, resource_name


def _broker_entity(image: ClusterImage, resource_name: str) -> str:
    if not resource_name:
        return ALL_BROKERS
    # isdecimal also knows other scripts' digits, which would be another name for the same broker.
    if not (resource_name.isascii() and resource_name.isdecimal()):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {resource_name}")
    broker_id = int(resource_name)
    if broker_id not in image.brokers:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {broker_id} found.")
    return str(broker_id)


def _decide(
    response: type[Response],
    image: ClusterImage,
    asked: Sequence[_Asked],
    *,
    rules: ConfigRules,
    validate_only: bool,
    notify: bool,
) -> Decision[Response]:
    """Both APIs answer in the same words, each in its own class."""
    outcomes: list[tuple[ErrorCode, str | None]] = []
    ops: list[TreeOp] = []
    changes: list[Change] = []
    times_named = Counter((each.resource_type, each.resource_name) for each in asked)
    for each in asked:
        try:
            if times_named[each.resource_type, each.resource_name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            entity_type, entity_name = entity_of(image, each.resource_type, each.resource_name)
            overrides = image.overrides(entity_type, entity_name)
            altered = each.alter(overrides, partial(rules.option, entity_type))
            rules.check(entity_type, entity_name, altered)
        except ApiError as error:
            outcomes.append((error.code, error.detail))
            continue
        outcomes.append((ErrorCode.NONE, None))
        if not validate_only and altered != overrides:
            path, node = znodes.config_path(entity_type, entity_name), znodes.encode_config(altered)
            exists = image.has_config_node(entity_type, entity_name)
            # The names of these come and go with clients: nothing is kept of one that has no config any more.
            is_over = not altered and entity_type in (GROUPS, CLIENT_METRICS)
            ops.append(Delete(path) if is_over else Set(path, node) if exists else Create(path, node))
            if notify:
                ops.append(notification(path))
            changes.append(ConfigsChanged(entity_type, entity_name, None if is_over else altered))
    results = [
        response(
            error_code=code,
            error_message=message,
            resource_type=each.resource_type,
            resource_name=each.resource_name,
        )
        for each, (code, message) in zip(asked, outcomes, strict=True)
    ]
    return Decision(results, ops, changes)


def notification(path: str) -> TreeOp:
    """Says which entity changed, not how: `topics/orders`."""
    entity_path = path.removeprefix(znodes.CONFIG + "/")
    prefix = f"{znodes.CONFIG_CHANGES}/{NOTIFICATION_PREFIX}"
    return Create(prefix, znodes.encode_config_change(entity_path), sequence=True)


def _operate(
    configs: Sequence[incremental.AlterableConfig],
    overrides: Mapping[str, str],
    option_of: Callable[[str], Option | None],
) -> dict[str, str]:
    operations = [(config.name, config.config_operation, config.value) for config in configs]
    return alter(overrides, operations, option_of=option_of)


def _replace(
    configs: Sequence[legacy.AlterableConfig],
    overrides: Mapping[str, str],
    option_of: Callable[[str], Option | None],
) -> dict[str, str]:
    return alter({}, [(config.name, SET, config.value) for config in configs], option_of=option_of)
