"""The row of the SQL server, which is started only when it is asked for: `penstock up --with sql`.

In a secured stack it speaks https, and lets in the admin, by the name and password of `client.properties`.
"""

from __future__ import annotations

import sys

from penstock.model.endpoints import bracketed
from penstock.stack import brokers, registry, secured
from penstock.stack.stack import Member, Service, Stack

NAME = "sql"


def _command(stack: Stack, member: Member) -> list[str]:
    """Its properties are written by it, too."""
    scheme = "https" if stack.is_secure else "http"
    copies = min(brokers.REPLICATION, len(stack.members_of(brokers.NAME)))
    properties = {
        "listeners": f"{scheme}://{bracketed(stack.host_of(member))}:{member.port}",
        "bootstrap.servers": brokers.bootstrap_of(stack),
        "ksql.internal.topic.replicas": str(copies),
        "penstock.sql.data": str(stack.data_of(member)),
    }
    registries = stack.members_of(registry.NAME)
    if registries and not stack.is_secure:
        host, port = stack.address_of(registries[0])
        properties["ksql.schema.registry.url"] = f"http://{bracketed(host)}:{port}"
    command = [sys.executable, "-m", "penstock", "sql-server"]
    if stack.is_secure:
        properties |= registry.secured_listener(stack, member)
        command += ["--command-config", str(secured.client_file(stack))]
    file = stack.data_of(member) / "ksql-server.properties"
    secured.write_properties(file, properties)
    return [*command, "--config", str(file)]


SERVICE = Service(
    name=NAME,
    title="the SQL server",
    plural="SQL servers",
    command=_command,
    health_check=registry.health,
    port=8088,
    port_option="--sql-port",
    needs=(brokers.NAME, registry.NAME),
    default_count=0,
)
