"""What a stack shall be: its members, ports and settings, from what there is and what is asked for.

Ports are chosen once, when a member joins; port 0 takes a free one then. So a stack comes up again where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from penstock.client.errors import UserError
from penstock.stack.ports import check_port, free_ports
from penstock.stack.stack import LOOPBACK, Member, Service, Stack, in_order_of_needs


@dataclass(frozen=True)
class ServiceWish:
    """What is asked of one service; None where nothing is said."""

    count: int | None = None
    port: int | None = None
    settings: tuple[str, ...] | None = None


class Wish(NamedTuple):
    """What is asked of a stack: plain data, from a command line or a file."""

    services: Mapping[str, ServiceWish] = MappingProxyType({})
    host: str | None = None
    secure: bool = False

    def of(self, service: Service) -> ServiceWish:
        return self.services.get(service.name, ServiceWish())


def compose(directory: Path, known: Stack | None, wish: Wish, services: tuple[Service, ...]) -> Stack:
    """The stack as it shall be. It may grow; what is there stays as it is."""
    is_new = known is None
    if known is None:
        if (directory / "meta.properties").exists():
            raise UserError(
                f"{directory} holds the log of a single broker: name another directory for a cluster with --data"
            )
        known = Stack(directory.resolve(), (), services, is_secure=wish.secure)
    elif wish.secure and not known.is_secure:
        raise UserError(
            f"{directory} was made without --secure: docs/how-to/secure-a-cluster.md says how to move its brokers, and "
            "--data names another directory for a new cluster"
        )
    members = known.members
    settings = dict(known.settings)
    wish = _with_what_they_bring(wish, services)
    for service in in_order_of_needs(services):
        asked = wish.of(service)
        there = known.members_of(service.name)
        if there:
            _check_port_stays(directory, service, asked.port, there)
        count = _count(directory, service, asked.count, len(there), is_new=is_new)
        members += tuple(_joining(service, members, count, asked.port))
        if asked.settings is not None:
            if service.check_settings is None:
                raise UserError(f"{service.name} takes no settings")
            settings[service.name] = asked.settings
    _check_ports_differ(members, services)
    host = known.host if wish.host is None else wish.host.strip("[]")
    made = known._replace(members=members, settings=settings, host=host or LOOPBACK)
    for service in services:
        if service.check_settings is not None and wish.of(service).settings is not None:
            service.check_settings(made)
    return made


def _with_what_they_bring(wish: Wish, services: tuple[Service, ...]) -> Wish:
    asked = dict(wish.services)
    for service in services:
        for name in service.brings if wish.of(service).count else ():
            brought = asked.get(name, ServiceWish())
            asked[name] = replace(brought, count=brought.count or 1)
    return wish._replace(services=asked)


def _count(directory: Path, service: Service, asked: int | None, there: int, *, is_new: bool) -> int:
    """How many members the service shall have."""
    if asked is None:
        return service.default_count if is_new else there
    if asked not in service.counts:
        allowed = service.counts
        bounds = f"at most {allowed[-1]}" if isinstance(allowed, range) else " or ".join(map(str, allowed))
        raise UserError(f"a stack holds {bounds} {service.plural}, not {asked}")
    if there and asked != there and not service.can_grow:
        raise UserError(f"{directory} has {there} {service.plural}, and that stays so")
    if asked < there:
        raise UserError(f"{directory} has {there} {service.plural}: {service.how_to_shrink}")
    return asked


def _joining(
    service: Service, members: Sequence[Member], count: int, first_port: int | None
) -> Iterable[Member]:
    """The members that are missing to so many."""
    there = [member for member in members if member.service == service.name]
    missing = count - len(there)
    if missing <= 0:
        return []
    taken = {member.number for member in there}
    numbers = [number for number in range(1, count + len(taken) + 1) if number not in taken][:missing]
    if first_port is None:
        first_port = _first_port(there) if there else service.port
        if any(member.port != first_port + member.number - 1 for member in there):
            first_port = 0  # as it was when they were chosen
    others = [port for member in members for port in member.ports]
    if first_port == 0:
        ports = free_ports(missing, apart_from=others)
    else:
        ports = [check_port(first_port + number - 1) for number in numbers]
    names = service.other_ports if count > 1 else ()
    between = iter(free_ports(len(names) * missing, apart_from=[*others, *ports]))
    has_number = service.is_numbered or count > 1
    return [
        Member(
            f"{service.name}-{number}" if has_number else service.name,
            service.name,
            number,
            port,
            {name: next(between) for name in names},
        )
        for number, port in zip(numbers, ports, strict=True)
    ]


def _first_port(members: list[Member]) -> int:
    """Of number 1, which may have been taken out."""
    return members[0].port - members[0].number + 1


def _check_port_stays(directory: Path, service: Service, asked: int | None, members: list[Member]) -> None:
    known = _first_port(members)
    if asked not in (None, 0, known):
        raise UserError(
            f"{directory} was made with {service.port_option} {known}, and that stays so: name another directory with "
            f"--data for a cluster on {asked}"
        )


def _check_ports_differ(members: Iterable[Member], services: Iterable[Service]) -> None:
    owners: dict[int, Member] = {}
    options = {service.name: service.port_option for service in services}
    for member in members:
        for port in member.ports:
            if port in owners:
                other = owners[port]
                choices = dict.fromkeys([options[other.service], options[member.service]])
                raise UserError(
                    f"{other.name} and {member.name} would both have port {port}: choose others with "
                    f"{' and '.join(choices)}, where 0 takes free ones"
                )
            owners[port] = member
