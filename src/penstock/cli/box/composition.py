"""What belongs to a box: its members, their ports and the settings of its brokers, kept in `box.json`.

Ports are chosen once, when a member joins; port 0 takes a free one then. So a box comes up again where it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from penstock.cli.failures import UserError
from penstock.model.endpoints import Address
from penstock.stores.zookeeper_server import Member as EnsembleMember

FILE_NAME = "box.json"
BROKER, ZOOKEEPER = "broker", "zookeeper"
DEFAULT_DATA = "./penstock-data"
DEFAULT_PORT = 9092
DEFAULT_ZOOKEEPER_PORT = 2181
MAX_BROKERS = 100
HOST = "127.0.0.1"
REPLICATION = 3
SESSION_TIMEOUT_MS = 6000


class Member(NamedTuple):
    name: str
    kind: str
    number: int
    """A broker's id, or a server's place in its ensemble."""
    port: int
    quorum_port: int = 0
    election_port: int = 0

    @property
    def ports(self) -> list[int]:
        return [port for port in (self.port, self.quorum_port, self.election_port) if port]


class Box(NamedTuple):
    directory: Path
    members: tuple[Member, ...]
    settings: tuple[str, ...]
    """NAME=VALUE of every broker."""
    host: str | None = None
    """What brokers listen on; None: on all addresses."""

    @property
    def brokers(self) -> list[Member]:
        return [member for member in self.members if member.kind == BROKER]

    @property
    def zookeepers(self) -> list[Member]:
        return [member for member in self.members if member.kind == ZOOKEEPER]

    @property
    def connect(self) -> str:
        return ",".join(f"{HOST}:{member.port}" for member in self.zookeepers)

    @property
    def bootstrap(self) -> str:
        return ",".join(str(Address(self.broker_host, member.port)) for member in self.brokers)

    @property
    def broker_host(self) -> str:
        return self.host or HOST

    def member(self, name: str) -> Member:
        for member in self.members:
            if member.name == name:
                return member
        names = ", ".join(member.name for member in self.members)
        raise UserError(f"there is no '{name}' in {self.directory}: there are {names}")

    def chosen(self, names: Iterable[str]) -> list[Member]:
        """Each once, however often it is named."""
        return [self.member(name) for name in dict.fromkeys(names)]

    def data_of(self, member: Member) -> Path:
        return self.directory / member.name

    def log_of(self, member: Member) -> Path:
        return self.directory / f"{member.name}.log"

    def pid_of(self, member: Member) -> Path:
        return self.directory / f"{member.name}.pid"


class Wish(NamedTuple):
    """What the command line asks for; None where it says nothing."""

    brokers: int | None = None
    port: int | None = None
    zookeepers: int | None = None
    zookeeper_port: int | None = None
    host: str | None = None
    settings: tuple[str, ...] | None = None


def read_box(directory: Path) -> Box | None:
    """None where there is none yet."""
    path = directory / FILE_NAME
    try:
        stored = json.loads(path.read_text())
        return Box(
            directory.resolve(),
            tuple(Member(**member) for member in stored["members"]),
            tuple(stored["settings"]),
            stored.get("host"),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, TypeError, KeyError):
        raise UserError(f"{path} does not describe a cluster: move it away to begin anew") from None


def existing_box(directory: Path) -> Box:
    box = read_box(directory)
    if box is None:
        raise UserError(
            f"there is no cluster in {directory}: penstock up --data {directory} makes one, --data names another"
        )
    return box


def write_box(box: Box) -> None:
    stored: dict[str, Any] = {
        "members": [member._asdict() for member in box.members],
        "settings": list(box.settings),
        "host": box.host,
    }
    path = box.directory / FILE_NAME
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(stored, indent=2) + "\n")
    os.replace(beside, path)


def compose(directory: Path, known: Box | None, wish: Wish) -> Box:
    """The box as it shall be. It may grow by brokers; what is there stays as it is."""
    if known is None:
        if (directory / "meta.properties").exists():
            raise UserError(
                f"{directory} holds the log of a single broker: name another directory for a cluster with --data"
            )
        known = Box(directory.resolve(), _zookeepers(wish), ())
    elif wish.zookeepers not in (None, len(known.zookeepers)):
        raise UserError(f"{directory} has {len(known.zookeepers)} ZooKeeper servers, and that stays so")
    _check_same(directory, "--zookeeper-port", wish.zookeeper_port, known.zookeepers[0].port)
    if known.brokers:
        _check_same(directory, "--port", wish.port, _first_port(known.brokers))
    settings = known.settings if wish.settings is None else wish.settings
    host = known.host if wish.host is None else wish.host.strip("[]")
    wanted = max(wish.brokers or 1, len(known.brokers)) if known.brokers else wish.brokers or 1
    if wish.brokers is not None and wish.brokers < len(known.brokers):
        raise UserError(
            f"{directory} has {len(known.brokers)} brokers: take one out with penstock cluster remove, "
            "which moves its partitions first"
        )
    members = (*known.members, *_new_brokers(known, wanted, wish.port))
    _check_ports_differ(members)
    return known._replace(members=members, settings=settings, host=host)


def _check_same(directory: Path, option: str, wanted: int | None, known: int) -> None:
    if wanted not in (None, 0, known):
        raise UserError(
            f"{directory} was made with {option} {known}, and that stays so: name another directory with --data "
            f"for a cluster on {wanted}"
        )


def _check_ports_differ(members: Collection[Member]) -> None:
    owners: dict[int, str] = {}
    for member in members:
        for port in member.ports:
            if port in owners:
                raise UserError(
                    f"{owners[port]} and {member.name} would both have port {port}: choose others with --port and "
                    "--zookeeper-port, where 0 takes free ones"
                )
            owners[port] = member.name


def _first_port(brokers: list[Member]) -> int:
    """Of broker 1, which may have been taken out."""
    return brokers[0].port - brokers[0].number + 1


def _zookeepers(wish: Wish) -> tuple[Member, ...]:
    count = wish.zookeepers or 1
    first = DEFAULT_ZOOKEEPER_PORT if wish.zookeeper_port is None else wish.zookeeper_port
    ports = free_ports(count) if first == 0 else [_checked_port(first + number) for number in range(count)]
    if count == 1:
        return (Member(ZOOKEEPER, ZOOKEEPER, 1, ports[0]),)
    between = free_ports(2 * count, apart_from=ports)
    return tuple(
        Member(
            f"{ZOOKEEPER}-{number}", ZOOKEEPER, number, port, between[2 * number - 2], between[2 * number - 1]
        )
        for number, port in enumerate(ports, start=1)
    )


def _new_brokers(known: Box, wanted: int, first_port: int | None) -> list[Member]:
    if wanted > MAX_BROKERS:
        raise UserError(f"a box holds at most {MAX_BROKERS} brokers, not {wanted}")
    missing = wanted - len(known.brokers)
    taken = {member.number for member in known.brokers}
    numbers = [number for number in range(1, wanted + len(taken) + 1) if number not in taken][:missing]
    if first_port is None:
        first_port = _first_port(known.brokers) if known.brokers else DEFAULT_PORT
        if any(member.port != first_port + member.number - 1 for member in known.brokers):
            first_port = 0  # as it was when they were chosen
    if first_port == 0:
        ports = free_ports(missing, apart_from=[port for member in known.members for port in member.ports])
    else:
        ports = [_checked_port(first_port + number - 1) for number in numbers]
    return [
        Member(f"{BROKER}-{number}", BROKER, number, port)
        for number, port in zip(numbers, ports, strict=True)
    ]


def _checked_port(port: int) -> int:
    if not 0 < port < 65536:
        raise UserError(f"{port} is not a port: they go from 1 to 65535")
    return port


def free_ports(count: int, *, apart_from: Collection[int] = ()) -> list[int]:
    """Different ones: all are held until the last is found. Those of members that do not run are free, too, and not
    meant."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        while len(found) < count:
            one = held.enter_context(socket.socket())
            one.bind((HOST, 0))
            port = int(one.getsockname()[1])
            if port not in apart_from:
                found.append(port)
    return found


def command_of(box: Box, member: Member) -> list[str]:
    """What runs the member in the foreground. A server's configuration is written by it, too."""
    data = box.data_of(member)
    if member.kind == ZOOKEEPER:
        from penstock.stores.zookeeper_server import ServerMissing, server_command, write_configuration

        ensemble = [
            EnsembleMember(HOST, one.port, one.quorum_port, one.election_port) for one in box.zookeepers
        ]
        configuration = write_configuration(
            data,
            port=member.port,
            server_id=member.number,
            members=ensemble if len(ensemble) > 1 else (),
        )
        try:
            return server_command(configuration)
        except ServerMissing as error:
            raise UserError(str(error)) from None
    command = [sys.executable, "-m", "penstock", "broker", "--zookeeper", box.connect]
    command += ["--broker-id", str(member.number), "--port", str(member.port), "--data", str(data)]
    if box.host is not None:
        command += ["--host", box.host]
    for setting in (*default_settings(len(box.brokers)), *box.settings):
        command += ["--set", setting]
    return command


def default_settings(brokers: int) -> list[str]:
    """Internal topics as safe as so many brokers allow: Kafka would not make them at all on fewer than three. And a
    dead broker is noticed sooner than over a network."""
    copies = min(REPLICATION, brokers)
    return [
        f"offsets.topic.replication.factor={copies}",
        f"transaction.state.log.replication.factor={copies}",
        f"transaction.state.log.min.isr={min(2, copies)}",
        f"zookeeper.session.timeout.ms={SESSION_TIMEOUT_MS}",
    ]
