"""kafka-configs for users, client ids and IP addresses: their quotas, and the SCRAM credentials of users."""

import re
from collections.abc import Iterable

from penstock.admin.configs import Change
from penstock.admin.quotas import ANY, EXACT, IS_DEFAULT, QuotasOf, alter_quotas, quotas
from penstock.admin.users import remove_credential, set_password, users
from penstock.cli.kafka.config_entities import Entity
from penstock.cli.kafka.options import OptionError
from penstock.client.cluster_client import ClusterClient
from penstock.client.reach import is_host
from penstock.model.java_order import in_hash_map_order
from penstock.model.java_values import java_float
from penstock.model.quotas import CLIENT_ID, IP, OF_CLIENTS, OF_IPS, USER

TYPES = {"users": USER, "clients": CLIENT_ID, "ips": IP}
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
LEAST_ITERATIONS = 4096
"""What Kafka's mechanisms allow, and its tool takes where nothing else is said."""
_CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)", re.DOTALL)


def check_address(name: str) -> None:
    if not is_host(name):
        raise OptionError(f"The entity name for ips must be a valid IP or resolvable host, but it is: {name}")


def alter(client: ClusterClient, entity: Entity, change: Change) -> None:
    _check(entity, change)
    if any(name in SCRAM for name in (*change.added, *change.deleted)):
        _alter_credentials(client, entity.name or "", change)
        return
    values: dict[str, float | None] = {}
    for name, text in change.added.items():
        try:
            values[name] = float(text)
        except ValueError:
            raise OptionError(f"Cannot parse quota configuration value for {name}: {text}") from None
    known: set[str] = set()
    for found in quotas(client, _filter(entity), strict=True):
        known.update(found.values)
    unknown = [name for name in change.deleted if name not in known]
    if unknown:
        raise OptionError(f"Invalid config(s): {','.join(unknown)}")
    values.update(dict.fromkeys(change.deleted))
    alter_quotas(client, [(TYPES[each.kind], each.name or None) for each in entity.parts], values)


def describe(client: ClusterClient, entity: Entity) -> None:
    for found in quotas(client, _filter(entity), strict=True):
        values = ", ".join(
            f"{name}={java_float(found.values[name])}"
            for name in in_hash_map_order(found.values, is_sized=True)
        )
        print(f"Quota configs for {_whose(found)} are {values}")
    if entity.kind != "users" or len(entity.parts) > 1 or entity.name == "":
        return
    # One line for each user, with all mechanisms.
    by_user: dict[str, list[str]] = {}
    for one in users(client, [entity.name] if entity.name else []):
        by_user.setdefault(one.name, []).append(f"{one.mechanism}=iterations={one.iterations}")
    for user, credentials in by_user.items():
        print(f"SCRAM credential configs for user-principal '{user}' are {', '.join(credentials)}")


def _filter(entity: Entity) -> list[tuple[str, int, str | None]]:
    components: list[tuple[str, int, str | None]] = []
    for kind, name, _ in entity.parts:
        how = ANY if name is None else EXACT if name else IS_DEFAULT
        components.append((TYPES[kind], how, name or None))
    return components


def _whose(found: QuotasOf) -> str:
    words = (("user-principal", found.user), ("client-id", found.client_id), ("ip", found.ip))
    return ", ".join(
        f"the default {word}" if name == "<default>" else f"{word} '{name}'"
        for word, name in words
        if name is not None
    )


def _check(entity: Entity, change: Change) -> None:
    """As Kafka's tool, in its words."""
    kinds = [each.kind for each in entity.parts]
    if kinds == ["ips"]:
        unknown = _unknown((*change.added, *change.deleted), OF_IPS)
        if unknown:
            raise OptionError(
                "Only connection quota configs can be added for 'ips' using --bootstrap-server. "
                f"Unexpected config names: {','.join(unknown)}"
            )
        return
    only = kinds == ["users"]
    allowed = (*OF_CLIENTS, *SCRAM) if only else OF_CLIENTS
    for names, verb in ((change.added, "added"), (change.deleted, "deleted")):
        unknown = _unknown(names, allowed)
        if unknown:
            what = "quota and SCRAM credential" if only else "quota"
            raise OptionError(
                f"Only {what} configs can be {verb} for '{'users' if only else 'clients'}' using "
                f"--bootstrap-server. Unexpected config names: {_as_scala(unknown, verb)}"
            )
    named = (*change.added, *change.deleted)
    if any(name in SCRAM for name in named):
        if entity.name == "":
            raise OptionError(
                "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials "
                "using --bootstrap-server."
            )
        if any(name not in SCRAM for name in named):
            raise OptionError(
                "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using "
                "--bootstrap-server."
            )


def _as_scala(names: list[str], verb: str) -> str:
    return f"{'Set' if verb == 'added' else 'ArrayBuffer'}({', '.join(names)})"


def _unknown(names: Iterable[str], allowed: Iterable[str]) -> list[str]:
    return [name for name in names if name not in allowed]


def _alter_credentials(client: ClusterClient, user: str, change: Change) -> None:
    """One after the other: Kafka refuses two of a user in one request."""
    new = [(mechanism, *_credential(mechanism, text)) for mechanism, text in change.added.items()]
    for mechanism in change.deleted:
        remove_credential(client, user, mechanism)
    for mechanism, iterations, password in new:
        set_password(client, user, password, mechanism=mechanism, iterations=iterations)


def _credential(mechanism: str, text: str) -> tuple[int, str]:
    found = _CREDENTIAL.fullmatch(text)
    if found is None:
        raise OptionError(f"Invalid credential property {mechanism}: password=… is missing")
    iterations = int(found[1]) if found[1] not in (None, "", "-", "-1") else LEAST_ITERATIONS
    if iterations < LEAST_ITERATIONS:
        raise OptionError(
            f"Iterations {iterations} is less than the minimum {LEAST_ITERATIONS} required for {mechanism}"
        )
    return iterations, found[2]
