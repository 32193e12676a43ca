"""The row of Connect, which is started only when it is asked for: `penstock up --with connect`.

In a secured stack it speaks https, and lets in the admin, by the name and password of `client.properties`.
"""

from __future__ import annotations

import sys

from penstock.client.property_files import read_properties
from penstock.model.endpoints import bracketed
from penstock.stack import brokers, registry, secured
from penstock.stack.stack import Member, Service, Stack

NAME = "connect"
JSON = "org.apache.kafka.connect.json.JsonConverter"


def _command(stack: Stack, member: Member) -> list[str]:
    """Its properties are written by it, too."""
    scheme = "https" if stack.is_secure else "http"
    copies = str(min(brokers.REPLICATION, len(stack.members_of(brokers.NAME))))
    properties = {
        "listeners": f"{scheme}://{bracketed(stack.host_of(member))}:{member.port}",
        "bootstrap.servers": brokers.bootstrap_of(stack),
        "group.id": "connect-cluster",
        "key.converter": JSON,
        "value.converter": JSON,
        "exactly.once.source.support": "enabled",
        "offset.flush.interval.ms": "10000",
    }
    for kind in ("config", "offset", "status"):
        name = {"config": "configs", "offset": "offsets", "status": "status"}[kind]
        properties[f"{kind}.storage.topic"] = f"connect-{name}"
        properties[f"{kind}.storage.replication.factor"] = copies
    if stack.is_secure:
        properties |= registry.secured_listener(stack, member)
        login = read_properties(str(secured.client_file(stack)))
        properties |= {name: text for name, text in login.items() if name not in properties}
    file = stack.data_of(member) / "connect-distributed.properties"
    secured.write_properties(file, properties)
    return [sys.executable, "-m", "penstock", "connect", "distributed", str(file)]


SERVICE = Service(
    name=NAME,
    title="Connect",
    plural="Connect workers",
    command=_command,
    health_check=registry.health,
    port=8083,
    port_option="--connect-port",
    needs=(brokers.NAME, registry.NAME),
    default_count=0,
)
