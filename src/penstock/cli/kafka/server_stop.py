"""kafka-server-stop: ends the brokers that kafka-server-start of this installation has started, in order."""

import os
import signal
from collections.abc import Iterator
from typing import NamedTuple

from penstock.cli.kafka import server_start
from penstock.cli.kafka.options import Option, OptionError, Options, OptionTable
from penstock.client.errors import UserError

ROLES = ("broker", "controller")
SIGNAL_VARIABLE = "SIGNAL"

TABLE = OptionTable(
    "kafka-server-stop",
    "Stops the brokers of this machine that kafka-server-start has started.",
    [
        Option("node-id", "Only the one with this id (node.id or broker.id).", "N"),
        Option("process-role", f"Only those with this role: {' or '.join(ROLES)}.", "ROLE"),
    ],
    client_options=(),
    examples=["kafka-server-stop --node-id=1"],
    needs_words=False,
)


class _Server(NamedTuple):
    pid: int
    node_id: str
    roles: list[str]


def execute(given: Options) -> int:
    role = given.value("process-role")
    if role is not None and role not in ROLES:
        raise OptionError(f"--process-role is {' or '.join(ROLES)}, not {role}")
    node_id = given.integer("node-id")
    number = _signal()
    servers = [
        server
        for server in _servers()
        if (node_id is None or server.node_id == str(node_id)) and (role is None or role in server.roles)
    ]
    if not servers:
        print("No kafka server to stop")
        return 1
    for server in servers:
        try:
            os.kill(server.pid, number)
        except ProcessLookupError:
            pass  # it has ended by itself
        except PermissionError:
            raise UserError(f"not allowed to end the broker with the process id {server.pid}") from None
    return 0


def _signal() -> int:
    name = os.environ.get(SIGNAL_VARIABLE, "TERM")
    try:
        return int(name) if name.isdigit() else signal.Signals[f"SIG{name.removeprefix('SIG')}"]
    except KeyError:
        raise UserError(f"{SIGNAL_VARIABLE}={name} is not a signal: TERM, INT or KILL") from None


def _servers() -> Iterator[_Server]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
                given = server_words(words)
                if given is not None:
                    yield _server(int(name), given, os.readlink(f"/proc/{name}/cwd"))
            except OSError:
                continue  # it has ended meanwhile, or is another user's


def server_words(command: list[str]) -> list[str] | None:
    """What kafka-server-start was given, if this is the command line of one of this installation."""
    from sys import executable

    if not command or os.path.dirname(command[0]) != os.path.dirname(executable):
        return None
    if command[1:4] == ["-m", "penstock.cli.kafka", "server_start"]:
        return command[4:]
    if os.path.basename("".join(command[1:2])) == server_start.TABLE.tool:
        return command[2:]
    return None


def _server(pid: int, words: list[str], directory: str) -> _Server:
    from penstock.cli.broker import read_properties

    given = server_start.TABLE.parse(words)
    properties = read_properties(os.path.join(directory, given.words[0])) if given.words else {}
    properties |= {
        name.strip(): value.strip()
        for name, _, value in (text.partition("=") for text in given.values("override"))
    }
    node_id = properties.get("node.id", properties.get("broker.id", "1"))
    roles = [role.strip() for role in properties.get("process.roles", "broker").split(",")]
    return _Server(pid, node_id, roles)
