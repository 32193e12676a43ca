"""The row of the REST proxy, which is started only when it is asked for: `penstock up --with rest`.

In a secured stack it speaks https, and passes on the login of who asks: the brokers say who may do what. It does not know the
registry there: that lets in the admin only, and who asks the proxy is not the admin.
"""

from __future__ import annotations

import sys

from penstock.model.endpoints import bracketed
from penstock.stack import brokers, registry, secured
from penstock.stack.stack import Member, Service, Stack

NAME = "rest"


def _command(stack: Stack, member: Member) -> list[str]:
    """Its properties are written by it, too."""
    scheme = "https" if stack.is_secure else "http"
    properties = {
        "listeners": f"{scheme}://{bracketed(stack.host_of(member))}:{member.port}",
        "bootstrap.servers": brokers.bootstrap_of(stack),
        "id": member.name,
    }
    registries = stack.members_of(registry.NAME)
    if registries and not stack.is_secure:
        host, port = stack.address_of(registries[0])
        properties["schema.registry.url"] = f"http://{bracketed(host)}:{port}"
    command = [sys.executable, "-m", "penstock", "rest"]
    if stack.is_secure:
        properties |= {
            "ssl.keystore.location": str(secured.certificate(stack, member)),
            "confluent.rest.auth.propagate.method": "BASIC",
        }
        command += ["--command-config", str(secured.client_file(stack))]
    file = stack.data_of(member) / "kafka-rest.properties"
    secured.write_properties(file, properties)
    return [*command, "--config", str(file)]


SERVICE = Service(
    name=NAME,
    title="the REST proxy",
    plural="REST proxies",
    command=_command,
    health_check=registry.health,
    port=8082,
    port_option="--rest-port",
    needs=(brokers.NAME, registry.NAME),
    default_count=0,
)
