"""The row of the REST proxy, which is started only when it is asked for: `penstock up --with rest`.

In a secured stack it speaks https, and passes on the login of who asks, to the brokers and to the registry: they say who may do
what. It has no login of its own at the registry, so nobody does by it what they could not do there themselves.
"""

from __future__ import annotations

import sys

from penstock.model.endpoints import bracketed
from penstock.stack import brokers, http_settings, registry, registry_address, secured
from penstock.stack.stack import Member, Service, Stack

NAME = "rest"
OWN = frozenset(("listeners", "bootstrap.servers", "id", "schema.registry.url"))


def _command(stack: Stack, member: Member) -> list[str]:
    """Its properties are written by it, too."""
    scheme = "https" if stack.is_secure else "http"
    properties = {
        "listeners": f"{scheme}://{bracketed(stack.host_of(member))}:{member.port}",
        "bootstrap.servers": brokers.bootstrap_of(stack),
        "id": member.name,
    }
    registry_url = registry_address.url_of(stack)
    if registry_url is not None:
        properties["schema.registry.url"] = registry_url
    properties |= http_settings.settings_of(stack, NAME)
    command = [sys.executable, "-m", "penstock", "rest"]
    if stack.is_secure:
        properties |= {
            "ssl.keystore.location": str(secured.certificate(stack, member)),
            "confluent.rest.auth.propagate.method": "BASIC",
        }
        if registry_url is not None:
            properties["schema.registry.ssl.truststore.location"] = str(secured.authority_file(stack))
        command += ["--command-config", str(secured.client_file(stack))]
    file = stack.data_of(member) / "kafka-rest.properties"
    secured.write_properties(file, properties)
    return [*command, "--config", str(file)]


def _load(given: dict[str, str]) -> list[str]:
    from penstock.rest.options import load_rest

    return load_rest(given).warnings


def _docs() -> dict[str, str]:
    from penstock.rest.options import REST_OPTIONS

    return {option.name: option.doc for option in REST_OPTIONS if option.name not in OWN}


SERVICE = Service(
    name=NAME,
    title="the REST proxy",
    plural="REST proxies",
    command=_command,
    health_check=registry.health,
    port=8082,
    port_option="--rest-port",
    needs=(brokers.NAME,),
    uses=(registry.NAME,),
    default_count=0,
    check_settings=http_settings.check_settings(NAME),
    setting_problem=http_settings.checked_by(_load, own=OWN),
    setting_docs=_docs,
    own_files=r"kafka-rest\.properties",
)
