"""What kafka-configs is about: the entity types, their short options, and which of them are there yet."""

from typing import NamedTuple

from penstock.cli.kafka.options import OptionError, Options
from penstock.client.errors import UserError

# In the order in which Kafka names them.
ENTITY_TYPES = ["topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers"]
SHORT_NAMES = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
    "client-metrics": "client-metrics",
    "group": "groups",
}
SHORT_DEFAULTS = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}
PRESENT = ("topics", "brokers", "groups", "client-metrics", "users", "clients", "ips")
HAVE_DEFAULTS = ("users", "clients", "brokers", "ips")
# The source of settings that were set on the entity itself: (type, is it the default entity) → config source.
DYNAMIC_SOURCES = {
    ("topics", False): 1,
    ("brokers", False): 2,
    ("brokers", True): 3,
    ("client-metrics", False): 7,
    ("groups", False): 8,
}


class Entity(NamedTuple):
    kind: str
    name: str | None
    """None: all of that kind; "" the default entity."""
    other: "Entity | None" = None
    """Of users and clients the second of both."""

    @property
    def parts(self) -> "list[Entity]":
        return [self] if self.other is None else [self, self.other]


def chosen_entity(given: Options) -> Entity:
    kinds = given.values("entity-type") + [
        kind for option, kind in {**SHORT_NAMES, **SHORT_DEFAULTS}.items() if given.has(option)
    ]
    _check_kinds(kinds)
    long_form = any(given.has(name) for name in ("entity-name", "entity-type", "entity-default"))
    if long_form and any(given.has(name) for name in (*SHORT_NAMES, *SHORT_DEFAULTS)):
        raise OptionError(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags"
        )
    names = _names(given)
    kind, name = kinds[0], names[0] if names else None
    if name and kind in ("brokers", "broker-loggers") and not name.lstrip("-").isdigit():
        raise OptionError(f"The entity name for {kind} must be a valid integer broker id, but it is: {name}")
    if given.has("describe") and given.has("entity-default") and kind not in HAVE_DEFAULTS:
        raise OptionError(f"--entity-default must not be specified with --describe of {kind}")
    if kind not in PRESENT:
        raise UserError(f"settings of {kind} are not in this version yet")
    if len(names) > len(kinds):
        raise OptionError("More entity names specified than entity types")
    other = Entity(kinds[1], names[1] if len(names) > 1 else None) if len(kinds) > 1 else None
    return Entity(kind, name, other)


def _names(given: Options) -> list[str]:
    """In the order of the command line, as each belongs to the type at its place."""
    long_names = iter(given.values("entity-name"))
    names = []
    for word in given.argv:
        option = word.partition("=")[0]
        if option == "--entity-name":
            names.append(next(long_names, ""))
        elif option == "--entity-default":
            names.append("")
    names += [value for option in SHORT_NAMES if given.has(option) for value in given.values(option)]
    return names + ["" for option in SHORT_DEFAULTS if given.has(option)]


def _check_kinds(kinds: list[str]) -> None:
    twice = sorted({kind for kind in kinds if kinds.count(kind) > 1})
    if twice:
        raise OptionError(f"Duplicate entity type(s) specified: {','.join(twice)}")
    for kind in kinds:
        if kind not in ENTITY_TYPES:
            raise OptionError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(ENTITY_TYPES)} "
                "with a --bootstrap-server or --bootstrap-controller argument"
            )
    if not kinds:
        raise OptionError("At least one entity type must be specified")
    if len(kinds) > 1 and set(kinds) != {"users", "clients"}:
        raise OptionError("Only 'users' and 'clients' entity types may be specified together")
