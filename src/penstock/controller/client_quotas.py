"""Client quotas change (AlterClientQuotas), and are looked up (DescribeClientQuotas), with Kafka's errors.

A user's quotas are in the same node as the user's SCRAM credentials: neither touches the other.
"""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Final

from penstock.controller.configs import notification
from penstock.controller.decision import Decision
from penstock.metadata import znodes
from penstock.metadata.image import USER_CLIENTS, USERS, Change, ClusterImage, ConfigsChanged
from penstock.metadata.quotas import DEFAULT, place_of, quotas_of
from penstock.metadata.tree import Create, Set, TreeOp
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.java_values import java_float
from penstock.model.quotas import CLIENT_ID, IP, LARGEST, OF_CLIENTS, OF_IPS, USER, Entity
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    ResponseEntryData,
)
from penstock.wire.messages.describe_client_quotas import ComponentData

EXACT, IS_DEFAULT, ANY = 0, 1, 2
MAX_NAME_LENGTH: Final = 255
"""Of a user or client id in a quota: it becomes a path of the metadata store."""
_WHOLE_ENOUGH: Final = 1e-6
_Place = tuple[str, str]


def alter_client_quotas(
    image: ClusterImage, request: AlterClientQuotasRequest, *, notify: bool
) -> Decision[ResponseEntryData]:
    """Each entry of its own. What several entries say of one entity is done in their order."""
    results: list[ResponseEntryData] = []
    altered: dict[_Place, dict[str, str]] = {}
    for entry in request.entries:
        answer = ResponseEntryData(
            error_message=None,
            entity=[EntityData(entity_type=e.entity_type, entity_name=e.entity_name) for e in entry.entity],
        )
        results.append(answer)
        try:
            place = place_of(_checked_entity(entry.entity))
            before = altered.get(place, image.overrides(*place))
            altered[place] = _altered(before, entry.ops, OF_IPS if _is_ip(entry.entity) else OF_CLIENTS)
        except ApiError as error:
            answer.error_code, answer.error_message = error.code, error.detail
    ops: list[TreeOp] = []
    changes: list[Change] = []
    made: set[str] = set()
    is_of_clients = any(kind == USER_CLIENTS for kind, _ in altered)
    siblings = image.configs.get(USER_CLIENTS, {}) if is_of_clients else {}
    with_clients = {name.partition("/")[0] for name in siblings}
    for place, overrides in altered.items() if not request.validate_only else ():
        if overrides == image.overrides(*place):
            continue
        if place[0] == USER_CLIENTS:
            _make_parents(image, place, with_clients, made, ops, changes)
        path, data = znodes.config_path(*place), znodes.encode_config(overrides)
        is_there = image.has_config_node(*place) or path in made
        ops.append(Set(path, data) if is_there else Create(path, data))
        made.add(path)
        if notify:
            ops.append(notification(path))
        changes.append(ConfigsChanged(*place, overrides))
    return Decision(results, ops, changes)


def _make_parents(
    image: ClusterImage,
    place: _Place,
    with_clients: set[str],
    made: set[str],
    ops: list[TreeOp],
    changes: list[Change],
) -> None:
    """The nodes above a user's client, where they are missing; empty, as Kafka makes them."""
    name = place[1].partition("/")[0]
    user = USERS, znodes.desanitize(name)
    path = znodes.config_path(*user)
    if not image.has_config_node(*user) and path not in made:
        ops.append(Create(path))
        changes.append(ConfigsChanged(*user, {}))
        made.add(path)
    if name not in with_clients:
        ops.append(Create(f"{path}/clients"))
        with_clients.add(name)


def _checked_entity(parts: Sequence[EntityData]) -> Entity:
    names: dict[str, str | None] = {}
    for part in parts:
        kind, name = part.entity_type, part.entity_name
        if kind in names:
            raise _invalid(f"Invalid client quota entity, duplicate entity entry {kind}")
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
        if name == DEFAULT or (name is not None and len(znodes.sanitize(name)) > MAX_NAME_LENGTH):
            raise _invalid(f"{name!r} cannot be the name of a {kind} with quotas")
        names[kind] = name
    if not names:
        raise _invalid("Invalid empty client quota entity")
    if IP in names:
        if len(names) > 1:
            raise _invalid(
                "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
            )
        if names[IP] is not None and not _is_address(names[IP] or ""):
            raise _invalid(f"{names[IP]} is not a valid IP or resolvable host.")
    return frozenset(names.items())


def _is_ip(parts: Sequence[EntityData]) -> bool:
    return parts[0].entity_type == IP


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _altered(overrides: Mapping[str, str], ops: Sequence[OpData], allowed: Sequence[str]) -> dict[str, str]:
    altered = dict(overrides)
    for op in ops:
        if op.remove:
            if op.key in LARGEST:
                altered.pop(op.key, None)
            continue
        if op.key not in allowed:
            raise _invalid(f"Invalid configuration key {op.key}")
        if not op.value > 0:
            raise _invalid(f"Quota {op.key} must be greater than 0")
        altered[op.key] = _text(op.key, op.value)
    return altered


def _text(key: str, value: float) -> str:
    largest = LARGEST[key]
    if largest is None:
        return java_float(value)
    if value > largest:
        raise _invalid(
            f"Proposed value for {key} is too large for {'an INT' if largest < 2**31 else 'a LONG'}."
        )
    if value % 1 > _WHOLE_ENOUGH:
        raise _invalid(f"{key} cannot be a fractional value.")
    return str(min(int(value), largest))


def describe_client_quotas(
    image: ClusterImage, components: Sequence[ComponentData], *, strict: bool
) -> list[tuple[Entity, dict[str, float]]]:
    """The entities that match all components; with `strict` those that have no other part."""
    exact: dict[str, str | None] = {}
    kinds: set[str] = set()
    for component in components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in exact or kind in kinds:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(component)
        if component.match_type == ANY:
            kinds.add(kind)
        else:
            exact[kind] = match
    asked = exact.keys() | kinds
    if IP in asked and len(asked) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component."
        )
    wanted = set(exact.items())
    return [
        (entity, values)
        for entity, values in quotas_of(image).items()
        if wanted <= entity
        and kinds <= {kind for kind, _ in entity}
        and (not strict or len(entity) == len(asked))
    ]


def _check_match(component: ComponentData) -> None:
    match_type = component.match_type
    if match_type not in (EXACT, IS_DEFAULT, ANY):
        raise _invalid(f"Unknown match type {match_type}")
    if match_type == EXACT:
        if component.match is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    elif component.match is not None:
        name = "MATCH_TYPE_DEFAULT" if match_type == IS_DEFAULT else "MATCH_TYPE_SPECIFIED"
        raise _invalid(f"Request specified {name}, but also specified a match string.")


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, reason)
