"""Quotas of users, client ids and IP addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import UserError
from penstock.model.quotas import CLIENT_ID, IP, OF_CLIENTS, OF_IPS, USER
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from penstock.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

DEFAULT = "<default>"
"""Stands for all users, client ids or addresses without a quota of their own."""
EXACT, IS_DEFAULT, ANY = range(3)

Parts = Sequence[tuple[str, str | None]]
"""Types and names; the name None is the default of that type."""


class QuotasOf(NamedTuple):
    """`user`, `client_id` and `ip` say whose they are: a name, DEFAULT, or None where that does not matter."""

    user: str | None
    client_id: str | None
    ip: str | None
    values: Mapping[str, float]


def quotas(
    client: ClusterClient, components: Sequence[tuple[str, int, str | None]] = (), *, strict: bool = False
) -> list[QuotasOf]:
    """Those that match Kafka's filter; all of them without one."""
    asked = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    answer = client.ask(
        DescribeClientQuotasRequest(components=asked, strict=strict), DescribeClientQuotasResponse
    )
    if answer.error_code:
        raise refused(answer.error_code, answer.error_message)
    found = []
    for entry in answer.entries or ():
        names = {
            part.entity_type: DEFAULT if part.entity_name is None else part.entity_name
            for part in entry.entity
        }
        values = {value.key: value.value for value in entry.values}
        found.append(QuotasOf(names.get(USER), names.get(CLIENT_ID), names.get(IP), values))
    return sorted(found, key=lambda one: tuple(name or "" for name in one[:3]))


def alter_quotas(client: ClusterClient, parts: Parts, changes: Mapping[str, float | None]) -> None:
    """None removes."""
    entry = RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
        ops=[
            OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in changes.items()
        ],
    )
    answer = client.ask(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse)
    for result in answer.entries:
        if result.error_code:
            raise refused(result.error_code, result.error_message)


def parts_of(user: str | None, client_id: str | None, ip: str | None) -> Parts:
    """UserError where there can be no such quota."""
    given = [(USER, user), (CLIENT_ID, client_id), (IP, ip)]
    parts = [(kind, None if name == DEFAULT else name) for kind, name in given if name is not None]
    if not parts:
        raise UserError("say whose quota it is: a user, a client id, both, or an IP address")
    if ip is not None and len(parts) > 1:
        raise UserError("a quota of an IP address holds for all users and client ids there")
    return parts


def check_names(names: Sequence[str], *, of_ip: bool) -> None:
    allowed = OF_IPS if of_ip else OF_CLIENTS
    for name in names:
        if name not in allowed:
            whose = "an IP address" if of_ip else "users and client ids"
            raise UserError(f"{name} is no quota of {whose}: those are {', '.join(allowed)}")
