"""The row of ZooKeeper: the server that comes with PySpark, alone or as an ensemble of three."""

from __future__ import annotations

from penstock.client.errors import UserError
from penstock.stack.health import ASK_TIMEOUT_S, NO_ANSWER
from penstock.stack.stack import LOOPBACK, Member, Service, Stack
from penstock.stores.zookeeper_server import Member as EnsembleMember
from penstock.stores.zookeeper_server import (
    ServerMissing,
    server_command,
    server_status,
    write_configuration,
)

NAME = "zookeeper"
QUORUM, ELECTION = "quorum", "election"


def _command(stack: Stack, member: Member) -> list[str]:
    """The server's configuration is written by it, too."""
    servers = stack.members_of(NAME)
    ensemble = [
        EnsembleMember(LOOPBACK, one.port, one.other_ports[QUORUM], one.other_ports[ELECTION])
        for one in servers
        if len(servers) > 1
    ]
    configuration = write_configuration(
        stack.data_of(member), port=member.port, server_id=member.number, members=ensemble
    )
    try:
        return server_command(configuration)
    except ServerMissing as error:
        raise UserError(str(error)) from None


def _health(stack: Stack, member: Member) -> str | None:
    """Whether it answers `srvr`, which a server without a quorum does not."""
    host, port = stack.address_of(member)
    return None if server_status(host, port, timeout_s=ASK_TIMEOUT_S) is not None else NO_ANSWER


SERVICE = Service(
    name=NAME,
    title="ZooKeeper",
    plural="ZooKeeper servers",
    command=_command,
    health_check=_health,
    port=2181,
    port_option="--zookeeper-port",
    counts=(1, 3),
    count_option="--zookeepers",
    other_ports=(QUORUM, ELECTION),
    is_internal=True,
    own_files=r"zoo\.cfg|data/|data/myid|data/version-2/[^/]*",
)
