"""What a stack is, as plain data: a table of services, and the members that run them on this machine.

A `Service` is a row of the table: what all members of a kind have in common. A `Member` is one process. A `Stack` is one
directory with its members. Nothing here starts a process or writes a file.
"""

from __future__ import annotations

import graphlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from penstock.client.errors import UserError
from penstock.model.endpoints import Address
from penstock.stack.restart_policy import DEFAULT_POLICY, RestartPolicy

DEFAULT_DATA = "./penstock-data"
LOOPBACK = "127.0.0.1"
ALL_ADDRESSES = "0.0.0.0"

Tell = Callable[[str], None]
"""Gets a sentence for the person at the terminal."""


class Member(NamedTuple):
    """One process of a stack."""

    name: str
    service: str
    number: int
    """Its place among the members of its service, from 1. A broker's is its id."""
    port: int
    """Where clients connect."""
    other_ports: Mapping[str, int] = MappingProxyType({})
    """Ports between the members of the service, by name."""

    @property
    def ports(self) -> list[int]:
        return [self.port, *self.other_ports.values()]


@dataclass(frozen=True, kw_only=True)
class Rolling:
    """How members of a service are restarted one by one while the others serve. `away` are the numbers of members that do
    not run and are not waited for."""

    behind: Callable[[Stack, Collection[int]], str | None]
    """Who has not caught up, as a sentence (`2 of 6 partitions are not in sync (orders-0, orders-3)`); None when the next
    member may go."""
    last: Callable[[Stack], int | None]
    """The number of the member that is restarted last."""
    done: Callable[[Stack, Collection[int]], list[str]]
    """What is to be done after the last one, and what there is to say about it."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """A row of the table. Whatever `penstock up`, `down`, `status` and `logs` know of a service is in here."""

    name: str
    title: str
    """In a sentence: `ZooKeeper`."""
    plural: str
    """Behind a number: `ZooKeeper servers`."""
    command: Callable[[Stack, Member], list[str]]
    """What runs a member in the foreground until SIGTERM. It names the member's folder (`Stack.data_of`) in one of its
    words: by that a process is known again."""
    health_check: Callable[[Stack, Member], str | None]
    """None when the member does its work, otherwise what is wrong (`does not answer`). Within a few seconds."""
    port: int
    """Of the first member in a new directory; the others follow."""
    port_option: str
    """Of the command line: `--port`."""
    needs: tuple[str, ...] = ()
    """Services that must be healthy before this one is started, and that are stopped after it."""
    counts: Sequence[int] = (0, 1)
    """How many of it there may be."""
    default_count: int = 1
    """How many there are in a new directory. 0: only when asked for, with `--with`."""
    count_option: str | None = None
    """Of the command line: `--brokers`."""
    is_numbered: bool = False
    """Whether the only member has a number in its name, too."""
    can_grow: bool = False
    """Whether members may join later."""
    how_to_shrink: str = "that stays so"
    """What to do for fewer members, behind `has 3 brokers: `."""
    other_ports: tuple[str, ...] = ()
    """Names of ports between members: free ones are taken where there are several."""
    is_internal: bool = False
    """Listens on loopback, wherever the others listen."""
    prepare: Callable[[Stack], None] | None = None
    """What is done before members are started, when what the service needs is healthy."""
    check_settings: Callable[[Stack], None] | None = None
    """UserError for settings that a member would refuse. None: the service takes none."""
    setting_problem: Callable[[str, str], str | None] | None = None
    """What is wrong with one setting, by itself; None: nothing."""
    setting_docs: Callable[[], Mapping[str, str]] | None = None
    """The settings that editors complete, each with a sentence."""
    uses: tuple[str, ...] = ()
    """Services that it can do without at its start, and that are stopped after it."""
    own_files: str = ""
    """A regular expression for the paths below a member's folder that are the member's, folders with a `/` behind:
    `penstock down --volumes` leaves the others. Empty: it keeps nothing there."""
    brings: tuple[str, ...] = ()
    """Services of which there is one at least where this one is."""
    is_in_all: bool = True
    """Whether `penstock up --all` starts it."""
    rolling: Rolling | None = None
    """None: its members are simply stopped and started."""
    restart_policy: RestartPolicy = DEFAULT_POLICY


class Stack(NamedTuple):
    """One directory with its members. `<name>/` has a member's data, `<name>.log` its log, and `<name>.pid` its process
    id while it runs."""

    directory: Path
    members: tuple[Member, ...]
    services: tuple[Service, ...]
    settings: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """NAME=VALUE for every member of a service, by the service's name."""
    host: str = LOOPBACK
    """What services listen on."""
    is_secure: bool = False
    """With TLS, logins and access rules (`secured`)."""

    def service_of(self, member: Member) -> Service:
        return service_named(self.services, member.service)

    def members_of(self, service: str) -> list[Member]:
        return [member for member in self.members if member.service == service]

    def addresses_of(self, service: str) -> str:
        """Where clients find it: `127.0.0.1:9092,127.0.0.1:9093`."""
        return ",".join(str(self.address_of(member)) for member in self.members_of(service))

    def address_of(self, member: Member) -> Address:
        """Where a client on this machine finds it."""
        host = self.host_of(member)
        return Address({ALL_ADDRESSES: LOOPBACK, "::": "::1"}.get(host, host), member.port)

    def host_of(self, member: Member) -> str:
        return LOOPBACK if self.service_of(member).is_internal else self.host

    def settings_of(self, service: str) -> tuple[str, ...]:
        return self.settings.get(service, ())

    def member(self, name: str) -> Member:
        for member in self.members:
            if member.name == name:
                return member
        names = ", ".join(member.name for member in self.members)
        raise UserError(f"there is no '{name}' in {self.directory}: there are {names}")

    def chosen(self, names: Iterable[str]) -> list[Member]:
        """Each once, however often it is named. The name of a service stands for all of its members."""
        found: dict[str, Member] = {}
        for name in names:
            for member in self.members_of(name) or [self.member(name)]:
                found[member.name] = member
        return list(found.values())

    def in_start_order(self, members: Iterable[Member]) -> list[list[Member]]:
        """Those of one service together; what a service needs comes before it."""
        wanted = list(members)
        groups = [
            [member for member in wanted if member.service == service.name]
            for service in in_order_of_needs(self.services)
        ]
        return [group for group in groups if group]

    def data_of(self, member: Member) -> Path:
        return self.directory / member.name

    def log_of(self, member: Member) -> Path:
        return self.directory / f"{member.name}.log"

    def pid_of(self, member: Member) -> Path:
        return self.directory / f"{member.name}.pid"


def service_named(services: Iterable[Service], name: str) -> Service:
    return next(service for service in services if service.name == name)


def in_order_of_needs(services: Sequence[Service]) -> list[Service]:
    there = {service.name for service in services}
    order = graphlib.TopologicalSorter(
        {
            service.name: [*service.needs, *(name for name in service.uses if name in there)]
            for service in services
        }
    ).static_order()
    return [service_named(services, name) for name in order]
