"""Client quotas in the image: they are configs of users, client ids, clients of users, and IP addresses."""

from penstock.metadata import znodes
from penstock.metadata.image import CLIENTS, IPS, USER_CLIENTS, USERS, ClusterImage
from penstock.model.quotas import CLIENT_ID, IP, LARGEST, USER, Entity

KINDS = (USERS, CLIENTS, USER_CLIENTS, IPS)
DEFAULT = "<default>"
"""In the tree; no user, client or address is called so."""
_OF_ONE = {USERS: USER, CLIENTS: CLIENT_ID, IPS: IP}


def quotas_of(image: ClusterImage) -> dict[Entity, dict[str, float]]:
    """All that are set. What cannot be read is left out: another tool wrote it."""
    found: dict[Entity, dict[str, float]] = {}
    for kind in KINDS:
        for name in image.configs.get(kind, {}):
            values = quotas_at(image, kind, name)
            if values:
                found[entity_at(kind, name)] = values
    return found


def quotas_at(image: ClusterImage, kind: str, name: str) -> dict[str, float]:
    """Of one entity, without what else its node may hold: a user's has the user's credentials."""
    values: dict[str, float] = {}
    for key, text in image.overrides(kind, name).items():
        if key in LARGEST:
            try:
                values[key] = float(text)
            except ValueError:
                continue
    return {key: value for key, value in values.items() if value > 0}


def entity_at(kind: str, name: str) -> Entity:
    if kind == USER_CLIENTS:
        user, _, client_id = name.partition("/clients/")
        parts = [(USER, znodes.desanitize(user)), (CLIENT_ID, znodes.desanitize(client_id))]
    else:
        parts = [(_OF_ONE[kind], name)]
    return frozenset((of, None if name == DEFAULT else name) for of, name in parts)


def place_of(entity: Entity) -> tuple[str, str]:
    """The kind and the name under which the image has it."""
    names = {of: DEFAULT if name is None else name for of, name in entity}
    if USER in names and CLIENT_ID in names:
        return USER_CLIENTS, f"{znodes.sanitize(names[USER])}/clients/{znodes.sanitize(names[CLIENT_ID])}"
    ((of, name),) = names.items()
    return next(kind for kind, each in _OF_ONE.items() if each == of), name
