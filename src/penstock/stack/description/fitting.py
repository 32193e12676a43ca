"""What a file asks of members that are there already: they stay as they are, and what differs is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from penstock.stack.composition import Wish
from penstock.stack.description.table import key_of
from penstock.stack.stack import Stack


def fitted(wish: Wish, known: Stack, file: Path, told: Callable[[str], None]) -> Wish:
    """The wish without what would be refused: fewer members, other ports. `told` gets a sentence for each."""
    services = dict(wish.services)
    for service in known.services:
        members = known.members_of(service.name)
        if not members:
            continue
        asked = wish.of(service)
        first, key = members[0].port - members[0].number + 1, key_of(service)
        if asked.port not in (None, 0, first):
            told(
                f"{key} is at port {first}, and {file.name} says {asked.port}: it stays, and another `data` would begin anew"
            )
            asked = replace(asked, port=None)
        if asked.count is None and service.default_count == 0:
            names = ", ".join(member.name for member in members)
            told(
                f"{names} is in {known.directory} and not in {file.name}: it is started, too "
                f"(penstock down --only {service.name} stops it)"
            )
        there = len(members)
        if asked.count is not None and (
            asked.count < there or (asked.count != there and not service.can_grow)
        ):
            told(
                f"there are {there} {service.plural}, and {file.name} says {asked.count}: {service.how_to_shrink}"
            )
            asked = replace(asked, count=None)
        services[service.name] = asked
    if known.is_secure and not wish.secure:
        told(f"{known.directory} is secured, and {file.name} does not say so: it stays so")
    return wish._replace(services=services)
